"""The settings of Protege: one dict `PROTEGE`, read at use, never at import.

`load()` gives it as a frozen, typed `Config`. A key that is not a field of `Config` is refused by the system
check `protege.E001`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from django.conf import settings

from protege.exceptions import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings with their defaults; the key in `PROTEGE` is the field's name in capitals."""

    prompt_root: Path = field(default_factory=lambda: base_dir() / "prompts")
    """Folder of the prompt files that `load_file` may read."""

    files_root: Path = field(default_factory=lambda: base_dir() / "protege_files")
    """Folder of attachments, outside the public media; unused when `STORAGES["protege"]` is set."""

    providers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Aliases of model services: `{"local": {"base_url": "http://...", "api_key_env": "LOCAL_API_KEY"}}`."""

    operators: tuple[str, ...] = ()
    """Addresses that are told when a person is needed."""

    on_new_mail: str = "supersede"
    """`supersede` or `answer`: what a newer mail of the same sender does to a run that has not finished."""

    trust_unverified: bool = False
    """Lets records and history that belong to a sender be read for a sender nobody has verified."""

    principal_from_request: str = ""
    """Dotted path of a callable `(request) -> Principal`; empty for the built-in rule."""

    shared_mailboxes: tuple[str, ...] = ("info", "office", "team", "support", "sales", "contact")
    """Local parts behind which several people sit."""

    redact_messages: bool = False
    """Scrubs secrets out of mail bodies too, before they are stored."""

    retain: Mapping[str, int] = field(default_factory=dict)
    """Days to keep `raw_mail`, `unroutable` and `requests`."""

    record_limit: int = 50
    """How many records `load_record` reads at most."""

    request_limit: int = 10
    """Model requests a run may make."""

    tool_call_limit: int = 30
    """Tool calls a run may make."""

    run_seconds: int = 600
    """Seconds a run may take in all."""

    request_seconds: int = 120
    """Seconds one model request may take."""

    mail_size_limit: int = 35 * 1024 * 1024
    """Bytes of a raw mail."""

    delivery_attempts: int = 8
    """How often a mail is tried before it is `failed`."""

    delivery_header: str = ""
    """Header in which our own mail server writes the envelope recipient; empty: Delivered-To, X-Original-To."""


def base_dir() -> Path:
    """`settings.BASE_DIR`, or the working directory when the project does not define it."""
    return Path(getattr(settings, "BASE_DIR", Path.cwd()))


def known_keys() -> list[str]:
    return [item.name.upper() for item in fields(Config)]


def load() -> Config:
    """The settings as they are now; a value of a wrong kind is a `ConfigurationError`."""
    given: Mapping[str, Any] = getattr(settings, "PROTEGE", {})
    if not isinstance(given, Mapping):
        raise ConfigurationError("The setting PROTEGE must be a dict.")
    known = {item.name for item in fields(Config)}
    values = {key.lower(): value for key, value in given.items() if key.lower() in known}
    for name in ("prompt_root", "files_root"):
        if name in values:
            values[name] = Path(values[name])
    for name in ("operators", "shared_mailboxes"):
        if name in values:
            values[name] = tuple(values[name])
    return Config(**values)
