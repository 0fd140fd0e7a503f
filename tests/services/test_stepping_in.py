from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from protege.services import runs
from tests.factories import MessageFactory, OutboundFactory, ParticipantFactory, PersonaFactory
from tests.mails import mail
from tests.services.receiving import HELPER, outcome, receive, received
from threads.models import EmailThread, Message, Run

pytestmark = pytest.mark.django_db

DANA = "dana@desk.example"
ANSWER = "<answer@desk.example>"


@pytest.fixture
def thread() -> EmailThread:
    """Ana's thread with Helper, who has answered her and copied Dana, a colleague."""
    helper = PersonaFactory(slug="helper", address=HELPER, staff_senders=["*@desk.example"])
    question = MessageFactory(thread__persona=helper, readable_body="Hello")
    for address in ("ana@client.example", DANA):
        ParticipantFactory(thread=question.thread, address=address)
    OutboundFactory(thread=question.thread, answers=question, message_id=ANSWER)
    thread: EmailThread = question.thread
    return thread


def from_dana(**fields: Any) -> bytes:
    known = {
        "from_": DANA,
        "to": "ana@client.example",
        "Cc": HELPER,
        "message_id": "<dana@desk.example>",
        "text": "I take over.",
        "In_Reply_To": ANSWER,
    }
    return mail(**{**known, **fields})


def ana_again(**fields: Any) -> bytes:
    return mail(**{"message_id": "<2@client.example>", "In_Reply_To": ANSWER, "text": "Thank you both.", **fields})


class TestAColleagueAnswers:
    def test_the_thread_is_paused_and_the_mail_is_no_question(self, thread: EmailThread) -> None:
        inbound = receive(from_dana())
        assert outcome(inbound) == ("ignored", "staff_answer")
        thread.refresh_from_db()
        assert thread.paused_at is not None
        assert inbound.message is not None
        assert (inbound.message.thread, inbound.message.trust) == (thread, "unverified")
        assert not Run.objects.exists()

    def test_a_paused_thread_takes_mail_and_answers_nothing(self, thread: EmailThread) -> None:
        receive(from_dana())
        assert received(ana_again()).thread == thread
        assert not Run.objects.exists()

    def test_an_answer_that_is_queued_is_not_given(self, thread: EmailThread) -> None:
        receive(ana_again())
        receive(from_dana())
        assert runs.execute(Run.objects.get().pk).status == "queued"
        thread.refresh_from_db()
        assert thread.status == "answered"

    def test_it_does_so_without_taking_part_when_it_reaches_somebody_who_does(self, thread: EmailThread) -> None:
        thread.participants.filter(address=DANA).delete()
        message = received(from_dana())
        assert message.thread != thread
        thread.refresh_from_db()
        assert thread.paused_at is not None
        assert (message.last_code, Run.objects.count()) == ("staff_answer", 0)


class TestWhatPausesNothing:
    def paused(self) -> bool:
        return EmailThread.objects.filter(paused_at__isnull=False).exists()

    def test_a_question_of_a_colleague_in_a_thread_of_their_own(self, thread: EmailThread) -> None:
        EmailThread.objects.update(correspondent=DANA)
        assert receive(from_dana(to=HELPER)).status == "processed"
        assert not self.paused()

    def test_a_forward_to_the_persona_alone(self, thread: EmailThread) -> None:
        thread.participants.filter(address=DANA).delete()
        raw = mail(from_=DANA, message_id="<d@desk.example>", In_Reply_To=ANSWER, text="What is this?")
        assert receive(raw).status == "processed"
        assert not self.paused()

    def test_a_note_of_absence(self, thread: EmailThread) -> None:
        assert outcome(receive(from_dana(Auto_Submitted="auto-replied"))) == ("ignored", "auto_submitted")
        assert not self.paused()

    def test_mail_of_others(self, thread: EmailThread) -> None:
        receive(ana_again())
        assert not self.paused()


def test_a_mail_that_is_ignored_does_not_hide_the_state_of_its_thread(thread: EmailThread) -> None:
    Message.objects.filter(direction="inbound").update(answered_by=Message.objects.get(direction="outbound"))
    receive(ana_again(Auto_Submitted="auto-replied"), reached_at=timezone.now() - timedelta(days=1))
    thread.refresh_from_db()
    assert thread.status == "answered"
