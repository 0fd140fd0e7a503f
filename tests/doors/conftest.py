"""Secrets that the tests' doors ask for, and a mail server beside them."""

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from tests.doors.mailboxes import PASSWORD, ImapServer, Mailbox

SECRETS = {"TEST_RELAY_SECRET": "relay-4711", "TEST_DESK_SECRET": "desk-4712", "TEST_OTHER_SECRET": "other-4713"}


def basic(secret: str, *, user: str = "any") -> str:
    return "Basic " + base64.b64encode(f"{user}:{secret}".encode()).decode()


@pytest.fixture
def secrets(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One secret for every tenant, and one for each of two."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    settings.PROTEGE = {
        **settings.PROTEGE,
        "INBOUND_SECRETS": {
            "relay": {"secret_env": "TEST_RELAY_SECRET"},
            "desk": {"secret_env": "TEST_DESK_SECRET", "tenant": "desk"},
            "other": {"secret_env": "TEST_OTHER_SECRET", "tenant": "other"},
        },
    }


@pytest.fixture(scope="session")
def server() -> Iterator[ImapServer]:
    one = ImapServer()
    yield one
    one.stop()


@pytest.fixture
def mailbox(server: ImapServer, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Mailbox:
    monkeypatch.setenv("TEST_IMAP_PASSWORD", PASSWORD)
    return Mailbox(server, settings)
