"""Checking a step as the admin, the API and imports do: what passes here can be stored."""

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ValidationError

from protege.exceptions import UnknownResolverError
from resolvers.base import Resolver
from resolvers.forms import clean_by
from resolvers.registry import resolvers

STEP_KEYS = ("resolver", "options", "enabled", "on_error")
ON_ERROR = ("fail", "skip")


def resolver_class(key: str) -> type[Resolver]:
    """The resolver registered under `key`; `UnknownResolverError` names it and the known ones."""
    found = resolvers.get(key)
    if found is None:
        known = ", ".join(resolvers.names()) or "none"
        raise UnknownResolverError(
            f"No installed app registers the resolver {key!r}. Install the app that has it, or take the step out of "
            f"the chain. Registered: {known}."
        )
    return found


def clean_options(key: str, options: object) -> dict[str, Any]:
    """The given options as the resolver's form cleans them, as plain JSON.

    Raises `UnknownResolverError` for a key nobody registers, and `ValidationError` for an option that the resolver
    does not have (naming the legal ones) or that its form refuses (by field). Absent options stay absent.
    """
    return clean_by(resolver_class(key).options_form, options, owner=key)


def step_shape(step: object, index: int) -> dict[str, Any]:
    """The step with all of its four keys; a wrong shape is a `ValidationError`. The options are not looked into."""
    if not isinstance(step, Mapping):
        raise ValidationError(f"Step {index + 1} must be a JSON object.", code="step")
    unknown = sorted(str(key) for key in step if key not in STEP_KEYS)
    if unknown:
        legal = ", ".join(STEP_KEYS)
        raise ValidationError(f"Step {index + 1} has no key {unknown[0]!r}. Use: {legal}.", code="step")
    shaped = {"options": {}, "enabled": True, "on_error": "fail", **step}
    complaint = _step_complaint(shaped)
    if complaint:
        raise ValidationError(f"Step {index + 1}: {complaint}", code="step")
    return {key: shaped[key] for key in STEP_KEYS}


def _step_complaint(step: Mapping[str, Any]) -> str | None:
    if not isinstance(step.get("resolver"), str) or not step["resolver"]:
        return "`resolver` must be the name of a resolver."
    if not isinstance(step["options"], Mapping):
        return "`options` must be a JSON object."
    if not isinstance(step["enabled"], bool):
        return "`enabled` must be true or false."
    if step["on_error"] not in ON_ERROR:
        return f"`on_error` must be one of: {', '.join(ON_ERROR)}."
    return None
