"""Mailboxes that cannot be read, and mails that a server does not hand over."""

import io
from datetime import UTC, datetime
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from personas.models import Persona
from protege.exceptions import ConfigurationError
from protege.services import fetching
from tests.doors.cases import HELPER
from tests.doors.mailboxes import PASSWORD, Mailbox, fetch, free_port, numbered
from tests.factories import PersonaFactory
from threads.models import Message, RawMail

pytestmark = pytest.mark.django_db


@pytest.fixture
def helper() -> Persona:
    return PersonaFactory(slug="helper", address=HELPER, reply_mode="off")


class Refusing:
    """What a mail server answers that has a damaged mail: the library's client over answers written down."""

    def __init__(self, answers: dict[str, tuple[str, list[Any]]]) -> None:
        self.client, self.answers = self, answers

    def uid(self, command: str, uid: str, items: str) -> tuple[str, list[Any]]:
        return next(answer for key, answer in self.answers.items() if key in items)


class TestDamaged:
    FACTS = ("OK", [b'1 (UID 7 INTERNALDATE "02-Mar-2026 08:30:15 +0000" RFC822.SIZE 10)'])

    @pytest.mark.parametrize("answer", [("NO", [b"corrupt"]), ("OK", [b'1 (UID 7 BODY[] "")'])])
    def test_what_the_server_does_not_hand_over_is_kept_as_such(self, answer: tuple[str, list[Any]]) -> None:
        mail = fetching._read(Refusing({"SIZE": self.FACTS, "PEEK": answer}), 7)
        assert mail is not None
        assert (mail.fault, mail.raw) == ("unreadable_at_server", b"X-Imap-Uid: 7\r\n\r\n")
        assert mail.reached_at == datetime(2026, 3, 2, 8, 30, 15, tzinfo=UTC)

    def test_even_without_its_size(self) -> None:
        mail = fetching._read(Refusing({"SIZE": ("NO", [b"corrupt"])}), 7)
        assert mail is not None
        assert mail.fault == "unreadable_at_server"

    @pytest.mark.parametrize("answer", [("OK", [None]), ("OK", [b"2 (FLAGS () UID 8)"])])
    def test_one_that_is_gone_is_none(self, answer: tuple[str, list[Any]]) -> None:
        assert fetching._read(Refusing({"SIZE": self.FACTS, "PEEK": answer}), 7) is None
        assert fetching._read(Refusing({"SIZE": answer}), 7) is None

    def test_a_fault_is_kept_as_failed_and_never_processed(self, mailbox: Mailbox, helper: Persona) -> None:
        account = fetching.accounts()[0]
        (inbound,) = fetching._receive(account, fetching._Mail(raw=numbered(1), reached_at=None, fault="x"), dated=True)
        assert (inbound.status, inbound.reason) == ("failed", "x")
        assert RawMail.objects.exists()
        assert not Message.objects.exists()


class TestErrors:
    @pytest.mark.parametrize(
        ("entry", "said"),
        [({"folder": "Nowhere"}, "folder Nowhere"), ({"user": "nobody"}, "nobody at 127.0.0.1"),
         ({"port": free_port()}, "cannot be read"), ({"tls": "tls"}, "cannot be read"),
         ({"tls": "starttls"}, "cannot be read"), ({"tls": "ssl"}, "use one of tls, starttls, none"),
         ({"password_env": "TEST_UNSET"}, "set TEST_UNSET")],
    )  # fmt: skip
    def test_they_name_the_account_and_say_what_is_wrong(
        self, mailbox: Mailbox, entry: dict[str, Any], said: str, capsys: Any
    ) -> None:
        mailbox.bind(**entry)
        err = io.StringIO()
        with pytest.raises(CommandError, match="Not fetched: desk"):
            call_command("fetch_imap", stderr=err)
        assert said in err.getvalue()
        assert "'desk'" in err.getvalue()
        assert PASSWORD not in err.getvalue()

    def test_an_account_that_fails_holds_up_no_other(self, mailbox: Mailbox, helper: Persona, settings: Any) -> None:
        accounts = settings.PROTEGE["IMAP_ACCOUNTS"]
        broken = {**accounts["desk"], "folder": "Nowhere"}
        settings.PROTEGE = {**settings.PROTEGE, "IMAP_ACCOUNTS": {"broken": broken, **accounts}}
        call_command("fetch_imap", "desk", stdout=io.StringIO())
        mailbox.put(numbered(1))
        with pytest.raises(CommandError, match="Not fetched: broken"):
            fetch()
        assert Message.objects.count() == 1

    def test_unknown_accounts(self, mailbox: Mailbox, settings: Any) -> None:
        with pytest.raises(CommandError, match="no nobody; it has: desk"):
            call_command("fetch_imap", "nobody")
        settings.PROTEGE = {**settings.PROTEGE, "IMAP_ACCOUNTS": {}}
        with pytest.raises(CommandError, match="no account; it has: none"):
            call_command("fetch_imap")

    def test_a_misspelt_key_is_refused(self, mailbox: Mailbox) -> None:
        mailbox.bind(tennant="desk")
        with pytest.raises(ConfigurationError, match=r"IMAP_ACCOUNTS.*desk.*tenant"):
            fetching.accounts()
