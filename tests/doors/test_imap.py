"""Mail fetched from a real IMAP server."""

import io
import os
import re
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from django.utils import timezone

from personas.models import Persona
from protege.exceptions import ConfigurationError
from protege.services import fetching
from tests.doors.cases import ANA, HELPER, DoorContract, crlf_mail
from tests.doors.mailboxes import PASSWORD, USER, ImapServer, free_port
from tests.factories import PersonaFactory
from threads.models import ImapCursor, InboundMail, Message, RawMail

pytestmark = pytest.mark.django_db

NUMBERS = count(1)


@pytest.fixture(scope="session")
def server() -> Iterator[ImapServer]:
    one = ImapServer()
    yield one
    one.stop()


class Mailbox:
    """A folder of the server, which is the account `desk` of the settings."""

    def __init__(self, server: ImapServer, settings: Any) -> None:
        self.server, self.settings = server, settings
        self.folder = f"Folder{next(NUMBERS)}"
        server.create(self.folder)
        self.bind(recipients=[HELPER])

    def bind(self, **entry: Any) -> None:
        account = {
            "host": "127.0.0.1", "port": self.server.port, "user": USER, "password_env": "TEST_IMAP_PASSWORD",
            "folder": self.folder, "tls": "none",
        }  # fmt: skip
        self.settings.PROTEGE = {**self.settings.PROTEGE, "IMAP_ACCOUNTS": {"desk": {**account, **entry}}}

    def put(self, raw: bytes, **options: Any) -> int:
        return self.server.append(self.folder, raw, **options)

    def renumber(self) -> None:
        self.server.delete(self.folder)
        self.server.create(self.folder)


@pytest.fixture
def mailbox(server: ImapServer, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Mailbox:
    monkeypatch.setenv("TEST_IMAP_PASSWORD", PASSWORD)
    return Mailbox(server, settings)


@pytest.fixture
def helper() -> Persona:
    return PersonaFactory(slug="helper", address=HELPER, reply_mode="off")


def fetch(**options: Any) -> str:
    out, err = io.StringIO(), io.StringIO()
    call_command("fetch_imap", stdout=out, stderr=err, **options)
    return out.getvalue() + err.getvalue()


def numbered(number: int, **fields: Any) -> bytes:
    return crlf_mail(message_id=f"<{number}@client.example>", **fields)


class TestImap(DoorContract):
    source = "imap:desk"
    knows_sender = False

    @pytest.fixture(autouse=True)
    def own_mailbox(self, mailbox: Mailbox) -> None:
        self.mailbox = mailbox
        fetch()

    def deliver(
        self, raw: bytes, *, to: Sequence[str] = (HELPER,), sender: str = ANA, tenant: str | None = None
    ) -> None:
        self.mailbox.bind(recipients=list(to), **({"tenant": tenant} if tenant else {}))
        self.mailbox.put(raw)
        fetch()


class TestCursor:
    def test_the_first_fetch_starts_now(self, mailbox: Mailbox, helper: Persona) -> None:
        mailbox.put(numbered(1))
        assert "desk: 0 fetched" in fetch()
        cursor = ImapCursor.objects.get()
        assert cursor.account == f"{USER}@127.0.0.1/{mailbox.folder}"
        assert cursor.fetched_at is not None
        mailbox.put(numbered(2))
        assert re.search(r"desk: UID \d+: inbound mail \d+: processed as message \d+ for desk/helper", fetch())
        assert [message.message_id for message in Message.objects.all()] == ["<2@client.example>"]
        assert "desk: 0 fetched" in fetch()

    def test_nothing_is_marked(self, mailbox: Mailbox, helper: Persona) -> None:
        fetch()
        mailbox.put(numbered(1))
        fetch()
        assert Message.objects.count() == 1
        assert b"\\Seen" not in mailbox.server.flags(mailbox.folder)

    def test_since_takes_what_arrived_from_that_day_on(self, mailbox: Mailbox, helper: Persona) -> None:
        for number, day in ((1, 1), (2, 10), (3, 11)):
            mailbox.put(numbered(number), reached_at=datetime(2026, 3, day, 12, tzinfo=UTC))
        assert "desk: 2 fetched" in fetch(since=date(2026, 3, 10))
        assert sorted(Message.objects.values_list("message_id", flat=True)) == [
            "<2@client.example>", "<3@client.example>",
        ]  # fmt: skip
        assert set(InboundMail.objects.values_list("reached_at", flat=True)) == {None}
        assert "desk: 0 fetched" in fetch()

    def test_since_skips_nothing_that_is_new(self, mailbox: Mailbox, helper: Persona) -> None:
        fetch()
        mailbox.put(numbered(1), reached_at=datetime(2026, 3, 1, 12, tzinfo=UTC))
        mailbox.put(numbered(2))
        assert "desk: 2 fetched" in fetch(since=timezone.now().date())

    def test_the_servers_date_is_passed_on(self, mailbox: Mailbox, helper: Persona) -> None:
        fetch()
        reached_at = datetime(2026, 3, 2, 8, 30, 15, tzinfo=UTC)
        mailbox.put(numbered(1), reached_at=reached_at)
        fetch()
        assert InboundMail.objects.get().reached_at == reached_at

    def test_a_mail_that_was_removed_leaves_no_trace(self, mailbox: Mailbox, helper: Persona) -> None:
        fetch()
        gone = mailbox.put(numbered(1))
        mailbox.put(numbered(2))
        mailbox.server.remove(mailbox.folder, gone)
        assert "desk: 1 fetched" in fetch()

    def test_it_moves_past_a_mail_only_once_that_is_stored(self, mailbox: Mailbox, helper: Persona) -> None:
        fetch()
        first = mailbox.put(numbered(1))
        mailbox.put(numbered(2, subject="second"))
        stored = count(1)

        def away(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
            if sql.startswith("INSERT") and "protege_threads_rawmail" in sql and next(stored) == 2:
                raise OperationalError("gone: second")
            return execute(sql, params, many, context)

        with connection.execute_wrapper(away), pytest.raises(CommandError, match="Not fetched: desk"):
            fetch()
        assert ImapCursor.objects.get().last_uid == first
        assert "desk: 1 fetched" in fetch()
        assert list(InboundMail.objects.order_by("id").values_list("status", flat=True)) == ["processed"] * 2

    def test_the_cursor_is_never_set_back(self, mailbox: Mailbox, helper: Persona) -> None:
        mailbox.put(numbered(1))
        fetch()
        ImapCursor.objects.update(last_uid=10_000)
        fetch(since=timezone.now().date())
        assert ImapCursor.objects.get().last_uid == 10_000


class TestRenumbering:
    """The server says that all its UIDs are new (UIDVALIDITY)."""

    def test_dates_tell_what_is_new_and_ids_what_is_not(self, mailbox: Mailbox, helper: Persona) -> None:
        fetch()
        mailbox.put(numbered(1))
        fetch()
        old = ImapCursor.objects.get().uid_validity
        mailbox.renumber()
        mailbox.put(numbered(0), reached_at=timezone.now() - timedelta(hours=1))
        mailbox.put(numbered(1))
        mailbox.put(numbered(2))
        fetch()
        cursor = ImapCursor.objects.get()
        assert cursor.uid_validity != old
        assert list(InboundMail.objects.order_by("id").values_list("status", flat=True)) == [
            "processed", "duplicate", "processed",
        ]  # fmt: skip
        assert not Message.objects.filter(message_id="<0@client.example>").exists()
        mailbox.put(numbered(3))
        assert "desk: 1 fetched" in fetch()

    def test_an_empty_mailbox_starts_anew(self, mailbox: Mailbox, helper: Persona) -> None:
        mailbox.put(numbered(1))
        fetch()
        mailbox.renumber()
        assert "desk: 0 fetched" in fetch()
        mailbox.put(numbered(2))
        assert "desk: 1 fetched" in fetch()


class TestSize:
    def test_of_a_mail_over_the_limit_only_the_beginning_is_read(
        self, mailbox: Mailbox, helper: Persona, settings: Any
    ) -> None:
        settings.PROTEGE = {**settings.PROTEGE, "MAIL_SIZE_LIMIT": 2_000}
        fetch()
        mailbox.put(numbered(1, text="x" * 5_000))
        mailbox.put(numbered(2))
        fetch()
        first, second = InboundMail.objects.order_by("id")
        assert (first.status, first.reason, second.status) == ("failed", "too_large", "processed")
        assert first.raw is not None
        assert b"Message-ID: <1@client.example>" in first.raw.unpack()


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


@pytest.mark.django_db(transaction=True)
def test_the_loop_goes_on_until_it_is_told_to_stop(mailbox: Mailbox, helper: Persona) -> None:
    def said(text: str) -> bool:
        end = time.monotonic() + 20
        while text not in out.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
        return text in out.getvalue()

    def meanwhile() -> None:
        if said("0 fetched"):
            mailbox.put(numbered(1))
            said("1 fetched")
        os.kill(os.getpid(), signal.SIGTERM)

    out, before = io.StringIO(), signal.getsignal(signal.SIGTERM)
    other = threading.Thread(target=meanwhile, daemon=True)
    try:
        # Until the command listens for it, the signal would end the tests.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        other.start()
        call_command("fetch_imap", loop=0.05, stdout=out)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert Message.objects.count() == 1
