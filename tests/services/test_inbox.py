from typing import Any

import pytest
from django.db import DatabaseError, connection

from personas.models import Persona
from protege.services import inbox, recording
from protege.signals import mail_received
from tests.factories import PersonaAddressFactory, PersonaFactory
from tests.mails import fixture_mail, mail
from threads.models import Attachment, EmailThread, InboundMail, Message, RawMail, Run

pytestmark = pytest.mark.django_db


@pytest.fixture
def helper() -> Persona:
    return PersonaFactory(slug="helper", address="helper@desk.example", reply_mode="draft")


def receive(raw: bytes, **envelope: Any) -> InboundMail:
    (inbound,) = inbox.receive(raw, **envelope)
    return inbound


class TestRecording:
    def test_a_mail_becomes_a_message_of_a_new_thread_with_a_queued_run(self, helper: Persona) -> None:
        inbound = receive(mail(), recipients=["helper@desk.example"], source="test")
        assert (inbound.status, inbound.persona, inbound.tenant) == ("processed", helper, "desk")
        message = Message.objects.get()
        assert inbound.message == message
        assert (message.sequence, message.status, message.direction) == (1, "received", "inbound")
        assert (message.from_address, message.from_name) == ("ana@client.example", "Ana Moßner")
        assert message.to == [{"name": "", "address": "helper@desk.example"}]
        assert message.readable_body == "Where is order 77?"
        assert message.message_id == "<first@client.example>"
        assert message.thread.correspondent == "ana@client.example"
        assert message.thread.tenant == "desk"
        assert message.thread.revision == 1
        assert list(message.thread.participants.values_list("address", flat=True)) == ["ana@client.example"]
        assert (Run.objects.get().status, Run.objects.get().message) == ("queued", message)

    def test_the_raw_bytes_are_kept_as_they_came(self, helper: Persona) -> None:
        receive(mail(), recipients=["helper@desk.example"])
        assert RawMail.objects.get().unpack() == mail()

    def test_attachments_are_stored_under_a_key_of_ours(self, helper: Persona) -> None:
        receive(mail(files=[("../../x.txt", "text/plain", b"notes")]), recipients=["helper@desk.example"])
        stored = Attachment.objects.get()
        assert stored.filename == "x.txt"
        assert stored.file.name.startswith("attachments/")
        assert "x.txt" not in stored.file.name
        assert stored.file.read() == b"notes"
        assert stored.size == 5

    def test_listeners_hear_of_it_once_it_is_committed(
        self, helper: Persona, django_capture_on_commit_callbacks: Any
    ) -> None:
        heard: list[Message] = []
        listener = lambda message, **_: heard.append(message)  # noqa: E731
        mail_received.connect(listener)
        with django_capture_on_commit_callbacks(execute=False) as callbacks:
            receive(mail(), recipients=["helper@desk.example"])
        assert heard == []
        for callback in callbacks:
            callback()
        assert heard == [Message.objects.get(direction="inbound")]

    @pytest.mark.parametrize("mode", ["off"])
    def test_off_stores_and_queues_nothing(self, helper: Persona, mode: str) -> None:
        Persona.objects.update(reply_mode=mode)
        assert receive(mail(), recipients=["helper@desk.example"]).status == "processed"
        assert not Run.objects.exists()

    def test_a_paused_thread_joins_mail_and_queues_nothing(self, helper: Persona) -> None:
        receive(mail(), recipients=["helper@desk.example"])
        EmailThread.objects.update(paused_at="2026-03-02T09:00Z")
        receive(
            mail(message_id="<second@client.example>", In_Reply_To="<first@client.example>"),
            recipients=["helper@desk.example"],
        )
        assert Message.objects.filter(thread=EmailThread.objects.get()).count() == 2
        assert Run.objects.count() == 1


class TestRouting:
    @pytest.mark.parametrize("address", ["HELPER@desk.example", "helper+q3@desk.example", "help@desk.example"])
    def test_case_tags_and_aliases_reach_the_persona(self, helper: Persona, address: str) -> None:
        PersonaAddressFactory(persona=helper, address="help@desk.example")
        assert receive(mail(to="x@y.example"), recipients=[address]).persona == helper

    def test_a14_only_the_envelope_names_the_persona(self, helper: Persona) -> None:
        assert receive(mail(to="undisclosed-recipients:;"), recipients=["helper@desk.example"]).persona == helper
        noted = mail(to="undisclosed-recipients:;", message_id="<2@x.example>", X_Original_To="helper@desk.example")
        assert receive(noted).persona == helper

    def test_a14_the_header_of_another_tenant_creates_nothing_there(self, helper: Persona) -> None:
        PersonaFactory(tenant="other", slug="helper", address="helper@other.example")
        receive(mail(to="helper@other.example"), recipients=["helper@desk.example"])
        assert [message.persona for message in Message.objects.all()] == [helper]

    def test_headers_route_only_while_there_is_one_tenant(self, helper: Persona) -> None:
        assert receive(mail()).persona == helper
        PersonaFactory(tenant="other")
        assert receive(mail(message_id="<2@x.example>")).status == "unroutable"

    def test_a_door_bound_to_a_tenant_stays_inside_it(self, helper: Persona) -> None:
        inbound = receive(mail(), recipients=["helper@desk.example"], tenant="other")
        assert (inbound.status, inbound.reason) == ("unroutable", "no_persona")
        assert not Message.objects.exists()

    def test_two_personas_get_one_row_each_over_the_same_raw_mail(self, helper: Persona) -> None:
        billing = PersonaFactory(slug="billing", address="billing@desk.example")
        rows = inbox.receive(
            mail(), recipients=["helper@desk.example", "billing@desk.example", "helper+x@desk.example"]
        )
        assert [row.persona for row in rows] == [helper, billing]
        assert {row.status for row in rows} == {"processed"}
        assert RawMail.objects.count() == 1
        assert set(Message.objects.values_list("persona", flat=True)) == {helper.pk, billing.pk}

    def test_an_inactive_persona_keeps_its_mail_for_later(self, helper: Persona) -> None:
        Persona.objects.update(is_active=False)
        inbound = receive(mail(), recipients=["helper@desk.example"])
        assert (inbound.status, inbound.reason) == ("quarantined", "persona_inactive")


class TestWhoMayWrite:
    def test_a10_automatic_mail_is_stored_and_not_answered(self, helper: Persona) -> None:
        inbound = receive(mail(Auto_Submitted="auto-replied"), recipients=["helper@desk.example"])
        assert (inbound.status, inbound.reason) == ("ignored", "auto_submitted")
        assert Message.objects.get().status == "ignored"
        assert Message.objects.get().thread.status == "ignored"
        assert not Run.objects.exists()

    def test_a10_auto_submitted_no_is_an_ordinary_mail(self, helper: Persona) -> None:
        receive(mail(Auto_Submitted="no"), recipients=["helper@desk.example"])
        assert Run.objects.exists()

    def test_a13_a_persona_does_not_answer_itself_or_another(self, helper: Persona) -> None:
        PersonaFactory(slug="billing", address="billing@desk.example")
        inbound = receive(mail(from_="BILLING+x@desk.example"), recipients=["helper@desk.example"])
        assert (inbound.status, inbound.reason) == ("ignored", "own_address")
        assert not Run.objects.exists()

    def test_a_denied_sender_wins_over_an_allowed_one(self, helper: Persona) -> None:
        Persona.objects.update(denied_senders=["*@client.example"], allowed_senders=["ana@client.example"])
        inbound = receive(mail(), recipients=["helper@desk.example"])
        assert (inbound.status, inbound.reason) == ("ignored", "denied_sender")

    def test_outside_an_allow_list_a_person_decides(self, helper: Persona) -> None:
        Persona.objects.update(allowed_senders=["*@partner.example"])
        inbound = receive(mail(), recipients=["helper@desk.example"])
        assert (inbound.status, inbound.reason) == ("quarantined", "sender_not_allowed")

    @pytest.mark.parametrize("from_", ["", "ana@client.example, ben@client.example"])
    def test_no_or_several_senders_wait_for_a_person(self, helper: Persona, from_: str) -> None:
        assert receive(mail(from_=from_), recipients=["helper@desk.example"]).reason == "no_single_sender"


class TestNothingIsLost:
    def test_a_failure_after_the_commit_leaves_a_row_to_run_again(
        self, helper: Persona, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*args: Any) -> None:
            raise DatabaseError("gone")

        with monkeypatch.context() as patched:
            patched.setattr(recording, "_store", broken)
            inbound = receive(mail(), recipients=["helper@desk.example"])
        assert (inbound.status, inbound.reason, inbound.attempts) == ("failed", "error", 1)
        assert inbound.raw is not None
        assert inbound.raw.unpack() == mail()

    def test_one_failing_delivery_does_not_block_the_other(
        self, helper: Persona, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        billing = PersonaFactory(slug="billing", address="billing@desk.example")
        store = recording._store

        def broken_for_helper(inbound: InboundMail, persona: Persona, parsed: Any) -> None:
            if persona == helper:
                raise DatabaseError("gone")
            store(inbound, persona, parsed)

        monkeypatch.setattr(recording, "_store", broken_for_helper)
        rows = inbox.receive(mail(), recipients=["helper@desk.example", "billing@desk.example"])
        assert [row.status for row in rows] == ["failed", "processed"]
        assert Message.objects.get().persona == billing

    def test_a_mail_that_is_too_large_is_kept_by_its_headers(self, helper: Persona, settings: Any) -> None:
        settings.PROTEGE = {**settings.PROTEGE, "MAIL_SIZE_LIMIT": 1_000}
        inbound = receive(mail(text="x" * 2_000), recipients=["helper@desk.example"])
        assert (inbound.status, inbound.reason) == ("failed", "too_large")
        assert inbound.raw is not None
        assert b"Subject: Where is my order?" in inbound.raw.unpack()
        assert len(inbound.raw.unpack()) < 1_000

    def test_a_mail_is_recorded_once_whoever_comes_second(self, helper: Persona) -> None:
        inbound = receive(mail(), recipients=["helper@desk.example"])
        stale = InboundMail.objects.get(pk=inbound.pk)
        stale.status = "received"
        assert inbox._deliver(stale, inbox.parse_mail(mail())).status == "processed"
        assert Message.objects.count() == 1

    def test_a_mail_of_garbage_is_stored(self, helper: Persona) -> None:
        inbound = receive(b"\x00\xff garbage", recipients=["helper@desk.example"])
        assert inbound.status == "quarantined"


class TestParse:
    def test_it_writes_nothing_and_finds_the_thread(self, helper: Persona) -> None:
        first = receive(mail(), recipients=["helper@desk.example"]).message
        assert first is not None
        with connection.execute_wrapper(_no_writes):
            message = inbox.parse(
                mail(
                    message_id="<2@client.example>",
                    In_Reply_To="<first@client.example>",
                    files=[("a.txt", "text/plain", b"x")],
                ),
                helper,
            )
        assert message.pk is None
        assert message.thread == first.thread
        assert message.sequence == 2
        assert "a.txt" in message.to_llm_text()

    def test_a_new_mail_has_a_thread_that_is_not_stored(self, helper: Persona) -> None:
        message = inbox.parse(fixture_mail("html_with_pdf.eml"), helper)
        assert message.thread.pk is None
        assert message.to_llm_text().startswith("From: ")


def _no_writes(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
    assert sql.lstrip().upper().startswith("SELECT"), sql
    return execute(sql, params, many, context)
