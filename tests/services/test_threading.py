from typing import Any

import pytest

from personas.models import Persona
from protege.services import inbox
from tests.factories import OutboundFactory, PersonaFactory
from tests.mails import mail
from threads.models import EmailThread, InboundMail, Message, Run

pytestmark = pytest.mark.django_db


@pytest.fixture
def helper() -> Persona:
    return PersonaFactory(slug="helper", address="helper@desk.example", reply_mode="draft")


def receive(raw: bytes, **envelope: Any) -> InboundMail:
    (inbound,) = inbox.receive(raw, **envelope)
    return inbound


class TestThreading:
    def answered(self, helper: Persona) -> Message:
        first = receive(mail(), recipients=["helper@desk.example"]).message
        assert first is not None
        return OutboundFactory(thread=first.thread, answers=first, message_id="<answer@desk.example>")

    def test_a_reply_joins_its_thread(self, helper: Persona) -> None:
        answer = self.answered(helper)
        reply = receive(
            mail(message_id="<second@client.example>", In_Reply_To="<answer@desk.example>"),
            recipients=["helper@desk.example"],
        ).message
        assert reply is not None
        assert reply.thread == answer.thread
        assert reply.sequence == 3

    def test_a06_a_stranger_who_knows_an_id_gets_a_thread_of_their_own(self, helper: Persona) -> None:
        answer = self.answered(helper)
        stranger = receive(
            mail(from_="cora@rival.example", message_id="<c@rival.example>", In_Reply_To="<answer@desk.example>"),
            recipients=["helper@desk.example"],
        ).message
        assert stranger is not None
        assert stranger.thread != answer.thread
        assert "thread_claim_refused" in stranger.warnings
        assert not answer.thread.participants.filter(address="cora@rival.example").exists()

    def test_a07_references_know_what_in_reply_to_does_not(self, helper: Persona) -> None:
        first = receive(mail(), recipients=["helper@desk.example"]).message
        third = receive(
            mail(
                message_id="<m3@client.example>",
                In_Reply_To="<unseen@client.example>",
                References="<first@client.example> <unseen@client.example>",
            ),
            recipients=["helper@desk.example"],
        ).message
        assert first is not None
        assert third is not None
        assert third.thread == first.thread

    def test_a07_another_persona_starts_a_thread_of_its_own(self, helper: Persona) -> None:
        answer = self.answered(helper)
        PersonaFactory(slug="billing", address="billing@desk.example")
        forward = receive(
            mail(message_id="<f@client.example>", References="<answer@desk.example>"),
            recipients=["billing@desk.example"],
        ).message
        assert forward is not None
        assert forward.thread != answer.thread

    def test_c13_two_matters_are_two_threads_whatever_their_subject(self, helper: Persona) -> None:
        for number in range(2):
            receive(
                mail(message_id=f"<{number}@client.example>", subject="Question"), recipients=["helper@desk.example"]
            )
        assert EmailThread.objects.count() == 2

    def test_quotes_that_the_thread_holds_are_cut(self, helper: Persona) -> None:
        self.answered(helper)
        text = "And 78?\n\nOn Mon, 2 Mar 2026 at 09:05, Helper <helper@desk.example> wrote:\n> It is on its way.\n"
        reply = receive(
            mail(message_id="<2@client.example>", text=text, In_Reply_To="<answer@desk.example>"),
            recipients=["helper@desk.example"],
        ).message
        assert reply is not None
        assert reply.readable_body == "And 78?"
        assert "It is on its way." in reply.text_body


class TestDuplicates:
    def test_a08_the_same_mail_again_is_a_duplicate(self, helper: Persona) -> None:
        receive(mail(), recipients=["helper@desk.example"])
        again = receive(mail(), recipients=["helper@desk.example"])
        assert again.status == "duplicate"
        assert (Message.objects.count(), Run.objects.count()) == (1, 1)

    def test_an_added_footer_makes_no_other_mail(self, helper: Persona) -> None:
        receive(mail(), recipients=["helper@desk.example"])
        footer = mail(text="Where is order 77?\n\n-- \nScanned by a scanner")
        assert receive(footer, recipients=["helper@desk.example"]).status == "duplicate"

    def test_the_same_id_and_sender_with_another_text_waits_for_a_person(self, helper: Persona) -> None:
        receive(mail(), recipients=["helper@desk.example"])
        other = receive(mail(text="Something else entirely."), recipients=["helper@desk.example"])
        assert (other.status, other.reason) == ("quarantined", "duplicate_id")

    def test_the_same_id_from_another_sender_is_another_mail(self, helper: Persona) -> None:
        receive(mail(), recipients=["helper@desk.example"])
        theirs = receive(mail(from_="cora@rival.example"), recipients=["helper@desk.example"]).message
        assert theirs is not None
        assert theirs.message_id.endswith("@id.invalid>")
        assert theirs.claimed_message_id == "<first@client.example>"
        assert receive(mail(from_="cora@rival.example"), recipients=["helper@desk.example"]).status == "duplicate"

    def test_a04_mails_without_an_id_are_told_apart_by_their_content(self, helper: Persona) -> None:
        for text in ("Scan 1", "Scan 2", "Scan 1"):
            receive(mail(message_id=None, text=text), recipients=["helper@desk.example"])
        assert Message.objects.count() == 2
