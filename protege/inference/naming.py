"""Model strings: `provider:model` as the LLM library has them, aliases of the settings, and the offline models."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from protege.conf import Config
from protege.exceptions import MissingExtraError, ModelError, ModelNameError

OFFLINE = "offline"
OFFLINE_MODELS = ("echo", "scripted")
COMPATIBLE = "openai-compatible"
OLLAMA_URL = "http://localhost:11434/v1"
PLACEHOLDER_KEY = "placeholder"
"""Stands for the key in a preview: no credential is read for it."""

_OUR_EXTRAS = {"openai", "anthropic", "google"}
_ALIAS_KEYS = {"base_url", "api_key_env", "kind"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTarget:
    """Where a model string leads: `provider` is its first half, `kind` the library's provider that speaks to it."""

    provider: str
    kind: str
    model: str
    base_url: str | None = None
    api_key_env: str | None = None

    def key(self) -> str | None:
        """The key that an alias names by its environment variable; None leaves it to the provider's own."""
        if self.api_key_env is None:
            return PLACEHOLDER_KEY if self.kind == COMPATIBLE else None
        key = os.environ.get(self.api_key_env)
        if not key:
            raise ModelError(f"Set the environment variable {self.api_key_env}.", code="authentication")
        return key


def target_of(name: str, config: Config) -> ModelTarget:
    """Read a model string; `ModelNameError` says what is wrong with it."""
    provider, _, model = name.partition(":")
    if not provider or not model:
        raise ModelNameError(
            f"{name!r} is no model string. Write provider:model, such as anthropic:claude-sonnet-4-5 or offline:echo."
        )
    if provider == OFFLINE:
        return _offline(model)
    if provider in config.providers:
        return _alias(provider, model, config.providers[provider])
    if provider == "ollama":
        return ModelTarget(
            provider=provider, kind=provider, model=model, base_url=os.environ.get("OLLAMA_BASE_URL") or OLLAMA_URL
        )
    return ModelTarget(provider=provider, kind=provider, model=model)


def check_model(name: str, config: Config) -> None:
    """Raise `ModelNameError` or `MissingExtraError` for a model that could not be built; needs no key."""
    from protege.inference.adapter import build_model, closed_client

    build_model(target_of(name, config), key=PLACEHOLDER_KEY, http_client=closed_client())


def provider_class(target: ModelTarget) -> Any:
    """The library's provider class; unknown names and missing SDKs say what to do."""
    from pydantic_ai.providers import infer_provider_class

    try:
        return infer_provider_class(target.kind)
    except ImportError:
        raise _missing(target.kind) from None
    except ValueError:
        raise ModelNameError(_unknown(target.kind)) from None


def _missing(kind: str) -> MissingExtraError:
    """The SDKs that have no extra of ours come with one of the library's."""
    extra = kind.rpartition("/")[2].partition("-")[0]
    package = "protege" if extra in _OUR_EXTRAS else "pydantic-ai-slim"
    return MissingExtraError(f"The SDK for {kind!r}", extra, package=package)


def _offline(model: str) -> ModelTarget:
    if model not in OFFLINE_MODELS:
        raise ModelNameError(f"There is no offline model {model!r}. Use offline:echo or offline:scripted.")
    return ModelTarget(provider=OFFLINE, kind=OFFLINE, model=model)


def _alias(provider: str, model: str, alias: Mapping[str, Any]) -> ModelTarget:
    """An alias. Without a `kind`, a built-in name keeps its own interface and any other speaks Chat Completions."""
    kind = alias.get("kind") if isinstance(alias, Mapping) else None
    kind = kind or (provider if provider in _known_providers() else COMPATIBLE)
    if complaint := _complaint(alias, kind):
        raise ModelNameError(f"PROTEGE['PROVIDERS'][{provider!r}] {complaint}")
    return ModelTarget(
        provider=provider,
        kind=kind,
        model=model,
        base_url=alias.get("base_url"),
        api_key_env=alias.get("api_key_env"),
    )


def _complaint(alias: object, kind: str) -> str:
    """What is wrong with an alias, or ""."""
    if not isinstance(alias, Mapping):
        return "must be a dict with base_url, api_key_env and kind."
    unknown = sorted(set(alias) - _ALIAS_KEYS)
    if unknown:
        return f"has an unknown key {unknown[0]!r}. Use {', '.join(sorted(_ALIAS_KEYS))}."
    if kind == OFFLINE:
        return "cannot be of the kind 'offline'."
    base_url = alias.get("base_url")
    if kind == COMPATIBLE and not base_url:
        return "needs a base_url."
    if base_url and not str(base_url).startswith(("http://", "https://")):
        return "has a base_url that begins with neither http:// nor https://."
    return ""


def _known_providers() -> set[str]:
    """The library's providers, without its model for tests, which no persona can have."""
    from pydantic_ai.models import known_model_names

    return {name.partition(":")[0] for name in known_model_names() if ":" in name} | {"ollama"}


def _unknown(kind: str) -> str:
    known = sorted(_known_providers() | {OFFLINE})
    near = get_close_matches(kind, known, n=1)
    hint = f"Did you mean {near[0]!r}?" if near else f"Known providers: {', '.join(known)}."
    return f"There is no model provider {kind!r}. {hint}"
