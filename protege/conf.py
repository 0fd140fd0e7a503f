"""The settings of Protege: one dict `PROTEGE`, read at use, never at import.

`load()` gives it as a frozen, typed `Config`. A key that is not a field of `Config` is refused by the system
check `protege.E001`.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from django.conf import settings

from protege.exceptions import ConfigurationError

QUARANTINE_FINDINGS = ("dmarc_fail", "spam")
GOVERNOR_LIMITS: Mapping[str, int] = {"thread": 10, "correspondent": 10, "domain": 30, "persona": 200}


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

    tool_seconds: int = 600
    """Seconds one tool call may take before another worker may take its run over."""

    mail_size_limit: int = 35 * 1024 * 1024
    """Bytes of a raw mail."""

    delivery_attempts: int = 8
    """How often a mail is tried before it is `failed`."""

    authserv_ids: tuple[str, ...] = ()
    """Names by which our own mail servers sign `Authentication-Results`; empty: every sender is unverified."""

    quarantine: tuple[str, ...] = QUARANTINE_FINDINGS
    """For which of these findings of our mail server a mail waits for a person."""

    mail_age_limit: int = 5
    """Days between a mail server's taking a mail and our receiving it, beyond which a person decides."""

    governor: Mapping[str, int] = field(default_factory=lambda: dict(GOVERNOR_LIMITS))
    """A persona's automatic answers an hour to one `thread`, `correspondent`, `domain`, and of one `persona`."""

    delivery_header: str = ""
    """Header in which our own mail server writes the envelope recipient; empty: Delivered-To, X-Original-To."""

    inbound_secrets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Who may post mail, by labels of your own: `{"relay": {"secret_env": "RELAY_SECRET", "tenant": "desk"}}`.

    `secret_env` names the environment variable that holds the secret. With `tenant`, nothing that comes with this
    secret is routed outside that tenant.
    """

    imap_accounts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Mailboxes that `fetch_imap` reads, by labels of your own.

    Each has `host`, `user`, `password_env` (the environment variable) and may have `port`, `folder` (INBOX), `tls`
    (`tls`, `starttls` or `none`), `tenant`, and `recipients`: whom its mail is for, whatever the headers say.
    """


DOOR_KEYS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "inbound_secrets": (frozenset({"secret_env"}), frozenset({"tenant"})),
    "imap_accounts": (
        frozenset({"host", "user", "password_env"}),
        frozenset({"port", "folder", "tls", "tenant", "recipients"}),
    ),
}
"""What an entry of these settings must have, and what it may have."""


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
    for name in ("operators", "shared_mailboxes", "authserv_ids", "quarantine"):
        if name in values:
            values[name] = tuple(values[name])
    if not set(values.get("quarantine", ())) <= set(QUARANTINE_FINDINGS):
        raise ConfigurationError(f'PROTEGE["QUARANTINE"] takes {", ".join(QUARANTINE_FINDINGS)} and nothing else.')
    values["governor"] = _governor_limits(values.get("governor", {}))
    for name in DOOR_KEYS.keys() & values.keys():
        _check_doors(name, values[name])
    return Config(**values)


def _check_doors(name: str, entries: Any) -> None:
    if not isinstance(entries, Mapping):
        raise ConfigurationError(f'PROTEGE["{name.upper()}"] must be a dict.')
    required, optional = DOOR_KEYS[name]
    for label, entry in entries.items():
        _check_door(f'PROTEGE["{name.upper()}"][{label!r}]', entry, required=required, optional=optional)


def _check_door(place: str, entry: Any, *, required: Set[str], optional: Set[str]) -> None:
    """A misspelt `tenant` would open a door to all tenants, so nothing unknown and nothing empty passes."""
    if not isinstance(entry, Mapping) or not required <= entry.keys() <= required | optional:
        may_have = f"; it may have {', '.join(sorted(optional))}" if optional else ""
        raise ConfigurationError(f"{place} must have {', '.join(sorted(required))}{may_have}.")
    kinds: Mapping[str, type | tuple[type, ...]] = {"port": int, "recipients": (list, tuple)}
    wrong = [key for key, value in entry.items() if not value or not isinstance(value, kinds.get(key, str))]
    if wrong:
        raise ConfigurationError(f"{place} has no usable value for {', '.join(sorted(wrong))}.")


def _governor_limits(given: Mapping[str, Any]) -> dict[str, int]:
    """All four limits; those that the project does not set have their defaults."""
    if not isinstance(given, Mapping) or not given.keys() <= GOVERNOR_LIMITS.keys():
        raise ConfigurationError(f'PROTEGE["GOVERNOR"] takes {", ".join(GOVERNOR_LIMITS)} and no other key.')
    if any(isinstance(value, bool) or not isinstance(value, int) or value < 0 for value in given.values()):
        raise ConfigurationError('PROTEGE["GOVERNOR"] takes whole numbers of answers an hour, from 0 on.')
    return {**GOVERNOR_LIMITS, **given}
