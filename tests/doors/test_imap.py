"""Mail fetched from a real IMAP server."""

import io
import os
import re
import signal
import threading
import time
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from django.utils import timezone

from personas.models import Persona
from tests.doors.cases import ANA, HELPER, DoorContract
from tests.doors.mailboxes import USER, Mailbox, fetch, numbered
from tests.factories import PersonaFactory
from threads.models import ImapCursor, InboundMail, Message

pytestmark = pytest.mark.django_db


@pytest.fixture
def helper() -> Persona:
    return PersonaFactory(slug="helper", address=HELPER, reply_mode="off")


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
