"""The stand-alone project's settings: closed when the environment says nothing, quiet in its logs."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from protege.logs import QuietFormatter

ROOT = Path(__file__).resolve().parent.parent.parent

SHOW = """
import json
from django.conf import settings as s
print(json.dumps({
    "debug": s.DEBUG, "backend": s.EMAIL_BACKEND, "timeout": s.EMAIL_TIMEOUT, "tasks": s.TASKS["default"],
    "options": s.DATABASES["default"].get("OPTIONS"), "engine": s.DATABASES["default"]["ENGINE"],
    "redirect": s.SECURE_SSL_REDIRECT, "key": bool(s.SECRET_KEY),
}))
"""


def settings_with(**environment: str) -> dict[str, object]:
    # An empty value counts as unset for what a `.env` of this checkout may hold.
    ran = subprocess.run(
        [sys.executable, "-c", SHOW],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "DJANGO_SETTINGS_MODULE": "protege.settings", **environment},
        capture_output=True,
        text=True,
    )
    if ran.returncode:
        raise RuntimeError(ran.stderr.strip().splitlines()[-1])
    return dict(json.loads(ran.stdout))


def test_without_a_secret_key_nothing_starts() -> None:
    with pytest.raises(RuntimeError, match="Set SECRET_KEY"):
        settings_with(SECRET_KEY="")


def test_debug_brings_a_key_and_prints_mail() -> None:
    found = settings_with(DEBUG="1", SECRET_KEY="", EMAIL_URL="consolemail://")
    assert found["key"] is True
    assert found["backend"] == "django.core.mail.backends.console.EmailBackend"
    assert found["redirect"] is False


def test_production_is_the_default() -> None:
    found = settings_with(SECRET_KEY="x" * 60, DATABASE_URL="sqlite:///x.sqlite3", DEBUG="0")
    assert found["debug"] is False
    assert found["redirect"] is True
    assert found["timeout"] == 30
    assert found["tasks"] == {
        "BACKEND": "django_tasks_db.DatabaseBackend",
        "QUEUES": ["protege-mail", "protege-runs"],
    }
    assert found["options"]["transaction_mode"] == "IMMEDIATE"  # type: ignore[index]


def test_postgresql_gets_no_options_of_sqlite() -> None:
    found = settings_with(SECRET_KEY="x" * 60, DATABASE_URL="postgres://u:p@localhost/protege")
    assert found["engine"] == "django.db.backends.postgresql"
    assert not found["options"]


def test_an_unknown_queue_is_refused_by_name() -> None:
    with pytest.raises(RuntimeError, match="PROTEGE_TASKS is 'kafka'"):
        settings_with(SECRET_KEY="x" * 60, PROTEGE_TASKS="kafka")


def test_a_traceback_in_the_log_does_not_say_what_the_exception_says() -> None:
    body = "Dear Ada, the code is 4711"
    try:
        try:
            raise KeyError(body)
        except KeyError as error:
            raise ValueError(body) from error
    except ValueError:
        record = logging.LogRecord("protege", logging.ERROR, __file__, 1, "run %s failed", (7,), sys.exc_info())
    line = QuietFormatter().format(record)
    assert "run 7 failed" in line
    assert "builtins.ValueError" in line
    assert "builtins.KeyError" in line
    assert "4711" not in line.replace(f"body = {body!r}", "")
