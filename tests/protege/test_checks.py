"""Each check speaks when it should, says what to do, and is silent on the project's own settings."""

import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import UserSettingsHolder, global_settings
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

import protege
from protege.apps import ProtegeConfig, refuse_hidden_siblings
from protege.checks import check_email_timeout

ROOT = Path(protege.__file__).resolve().parent.parent


def found(code: str) -> list[checks.CheckMessage]:
    return [message for message in checks.run_checks(tags=["protege"]) if message.id == f"protege.{code}"]


def test_the_projects_own_settings_pass() -> None:
    assert checks.run_checks(tags=["protege"]) == []


def test_an_unknown_key_is_refused_with_the_nearest_name(settings: Settings) -> None:
    settings.PROTEGE = {"OPERATOR": ["ops@example.com"]}
    [message] = found("E001")
    assert message.level == checks.ERROR
    assert "'OPERATOR'" in message.msg
    assert message.hint == "Did you mean 'OPERATORS'?"


def test_a_key_in_small_letters_is_unknown_too(settings: Settings) -> None:
    settings.PROTEGE = {"operators": []}
    assert found("E001")[0].hint == "Did you mean 'OPERATORS'?"


def test_a_key_that_is_like_none_gets_the_list(settings: Settings) -> None:
    settings.PROTEGE = {"ZZZZ": 1}
    assert "PROMPT_ROOT" in str(found("E001")[0].hint)


@pytest.mark.parametrize("value", [None, 0])
def test_mail_without_a_timeout_is_refused(settings: Settings, value: int | None) -> None:
    settings.EMAIL_TIMEOUT = value
    [message] = found("E002")
    assert "EMAIL_TIMEOUT = 30" in str(message.hint)


@pytest.mark.parametrize(
    "given",
    [
        {"OPERATORS": "ops@example.com"},
        {"OPERATORS": [1]},
        {"RUN_SECONDS": "ten"},
        {"RUN_SECONDS": True},
        {"TRUST_UNVERIFIED": "yes"},
        {"PROVIDERS": ["local"]},
        {"PROMPT_ROOT": 5},
        {"ON_NEW_MAIL": None},
    ],
)
def test_a_value_of_a_wrong_kind_is_refused(settings: Settings, given: dict[str, object]) -> None:
    settings.PROTEGE = given
    [message] = found("E003")
    assert next(iter(given)) in message.msg
    assert str(message.hint).startswith("It must be ")


def test_settings_that_are_no_dict_are_refused(settings: Settings) -> None:
    settings.PROTEGE = ["PROMPT_ROOT"]
    assert len(found("E003")) == 1


def test_values_of_the_right_kind_pass(settings: Settings) -> None:
    settings.PROTEGE = {
        "OPERATORS": ["ops@example.com"],
        "SHARED_MAILBOXES": ("info",),
        "PROMPT_ROOT": "/srv/prompts",
        "FILES_ROOT": Path("/srv/files"),
        "RETAIN": {"raw_mail": 30},
        "RUN_SECONDS": 60,
        "REDACT_MESSAGES": True,
    }
    assert found("E003") == []


def test_sqlite_without_immediate_is_warned_of(settings: Settings) -> None:
    sqlite = "django.db.backends.sqlite3"
    settings.DATABASES["host"] = {"ENGINE": sqlite, "OPTIONS": {"timeout": 20}}
    settings.DATABASES["careful"] = {"ENGINE": sqlite, "OPTIONS": {"transaction_mode": "immediate"}}
    settings.DATABASES["big"] = {"ENGINE": "django.db.backends.postgresql"}
    try:
        [message] = found("W001")
    finally:
        for alias in ("host", "careful", "big"):
            del settings.DATABASES[alias]
    assert "'host'" in message.msg
    assert (message.id, message.level) == ("protege.W001", checks.WARNING)


def test_trusting_unverified_senders_is_warned_of(settings: Settings) -> None:
    settings.PROTEGE = {"TRUST_UNVERIFIED": True}
    [message] = found("W002")
    assert message.level == checks.WARNING
    assert message.hint


def test_the_timeout_of_django_6_1_stands_in_mailers(monkeypatch: pytest.MonkeyPatch) -> None:
    smtp = {"BACKEND": "django.core.mail.backends.smtp.EmailBackend", "OPTIONS": {"timeout": 30}}
    host = UserSettingsHolder(global_settings)
    monkeypatch.setattr("protege.checks.settings", host)
    host.MAILERS = {"default": smtp, "other": {"BACKEND": "django.core.mail.backends.console.EmailBackend"}}
    assert check_email_timeout(None) == []
    host.MAILERS = {"default": {**smtp, "OPTIONS": {}}}
    assert [message.id for message in check_email_timeout(None)] == ["protege.E002"]


def test_our_packages_stand_beside_protege() -> None:
    ProtegeConfig("protege", protege)


def test_a_package_that_hides_ours_is_named_with_both_paths(tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured) as error:
        refuse_hidden_siblings(tmp_path)
    assert str(tmp_path / "personas") in str(error.value)
    assert str(ROOT / "personas") in str(error.value)


HOST = """
import django
from django.conf import settings

settings.configure(
    INSTALLED_APPS=[
        "protege", "personas", "threads", "resolvers", "django.contrib.auth", "django.contrib.contenttypes"
    ],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
)
django.setup()
"""


@pytest.mark.parametrize("module", ["threads/__init__.py", "resolvers.py"])
def test_a_host_with_a_package_of_that_name_does_not_start(tmp_path: Path, module: str) -> None:
    """As it happens: the host's folder stands on the path before ours."""
    (tmp_path / module).parent.mkdir(exist_ok=True)
    (tmp_path / module).write_text("")
    (tmp_path / "start.py").write_text(HOST)
    ran = subprocess.run(
        [sys.executable, "start.py"], cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert ran.returncode != 0
    last = ran.stderr.strip().splitlines()[-1]
    assert last.startswith("django.core.exceptions.ImproperlyConfigured")
    assert str(tmp_path.resolve()) in last
    assert str(ROOT) in last
