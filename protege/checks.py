"""System checks; `docs/checks.md` has each id with its cure."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, get_origin

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

from protege import conf

Apps = Sequence[AppConfig] | None


@register("protege")
def check_setting_names(app_configs: Apps, **kwargs: Any) -> list[CheckMessage]:
    """E001: a key that nobody reads is a typing error, and silence would hide it."""
    known = conf.known_keys()
    return [
        Error(f"PROTEGE has an unknown key {key!r}.", hint=_nearest(key, known), id="protege.E001")
        for key in _given()
        if key not in known
    ]


def _nearest(key: object, known: list[str]) -> str:
    near = difflib.get_close_matches(str(key).upper(), known, n=1, cutoff=0.5)
    return f"Did you mean {near[0]!r}?" if near else f"Valid keys: {', '.join(known)}."


@register("protege")
def check_email_timeout(app_configs: Apps, **kwargs: Any) -> list[CheckMessage]:
    """E002: without a timeout a mail server that hangs holds a worker for ever."""
    if _has_email_timeout():
        return []
    return [
        Error(
            "EMAIL_TIMEOUT is not set: a mail server that does not answer would hold delivery up for ever.",
            hint='Set EMAIL_TIMEOUT = 30, or the option "timeout" of each SMTP entry of MAILERS.',
            id="protege.E002",
        )
    ]


def _has_email_timeout() -> bool:
    """From Django 6.1 on a project may have `MAILERS`, which takes the place of the `EMAIL_` settings."""
    mailers: Mapping[str, Mapping[str, Any]] | None = getattr(settings, "MAILERS", None)
    if not mailers:
        return bool(getattr(settings, "EMAIL_TIMEOUT", None))
    smtp = [mailer for mailer in mailers.values() if str(mailer.get("BACKEND", "")).endswith("smtp.EmailBackend")]
    return all(mailer.get("OPTIONS", {}).get("timeout") for mailer in smtp)


@register("protege")
def check_setting_kinds(app_configs: Apps, **kwargs: Any) -> list[CheckMessage]:
    """E003: a value of a wrong kind."""
    given = getattr(settings, "PROTEGE", {})
    if not isinstance(given, Mapping):
        return [Error("PROTEGE is no dict.", hint="Write PROTEGE = {}.", id="protege.E003")]
    wrong = [message for key, value in given.items() if (message := _wrong_kind(key, value))]
    return wrong or _load_error()


def _load_error() -> list[CheckMessage]:
    try:
        conf.load()
    except (conf.ConfigurationError, TypeError, ValueError) as error:
        return [Error(f"PROTEGE cannot be read: {error}", hint="See protege/conf.py.", id="protege.E003")]
    return []


def _wrong_kind(key: object, value: object) -> CheckMessage | None:
    wanted = next((item.type for item in fields(conf.Config) if item.name.upper() == key), None)
    if wanted is None:
        return None
    kinds, words = KINDS[get_origin(wanted) or wanted]
    if isinstance(value, kinds) and (wanted is bool or not isinstance(value, bool)) and _holds_texts(wanted, value):
        return None
    return Error(f"PROTEGE[{key!r}] has a wrong value.", hint=f"It must be {words}.", id="protege.E003")


def _holds_texts(wanted: object, value: object) -> bool:
    return get_origin(wanted) is not tuple or (
        isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
    )


KINDS: dict[Any, tuple[tuple[type, ...], str]] = {
    Path: ((str, Path), "a path"),
    str: ((str,), "a text"),
    int: ((int,), "a whole number"),
    bool: ((bool,), "True or False"),
    tuple: ((list, tuple), "a list of texts"),
    Mapping: ((Mapping,), "a dict"),
}


@register("protege")
def check_sqlite_transactions(app_configs: Apps, **kwargs: Any) -> list[CheckMessage]:
    """W001: two writers that both began as readers meet "database is locked", whatever the timeout."""
    return [
        Warning(
            f"The SQLite database {alias!r} does not begin its transactions with IMMEDIATE.",
            hint='Set OPTIONS = {"transaction_mode": "IMMEDIATE", "timeout": 20}, or use PostgreSQL.',
            id="protege.W001",
        )
        for alias, database in settings.DATABASES.items()
        if database.get("ENGINE", "").endswith("sqlite3")
        and str(database.get("OPTIONS", {}).get("transaction_mode", "")).upper() != "IMMEDIATE"
    ]


@register("protege")
def check_trust(app_configs: Apps, **kwargs: Any) -> list[CheckMessage]:
    """W002: a forged sender would be shown the records and the history of whom he claims to be."""
    if _given().get("TRUST_UNVERIFIED") is not True:
        return []
    return [
        Warning(
            "TRUST_UNVERIFIED is on: whoever forges a sender's address is answered from that sender's records.",
            hint="Let the receiving mail server verify senders (DMARC) and take the setting out.",
            id="protege.W002",
        )
    ]


def _given() -> Mapping[str, Any]:
    given = getattr(settings, "PROTEGE", {})
    return given if isinstance(given, Mapping) else {}
