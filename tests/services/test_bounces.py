from typing import Any

import pytest

from personas.models import Persona
from protege.services import bounces, runs
from tests.factories import MessageFactory, OutboundFactory, ParticipantFactory, PersonaFactory, RunFactory
from tests.mail.bouncing import OURS, PLAIN, REPORT, bounce
from tests.mails import mail
from tests.services.receiving import HELPER, outcome, receive
from threads.models import EmailThread, InboundMail, Message, Participant, Run

pytestmark = pytest.mark.django_db

both_forms = pytest.mark.parametrize("form", [REPORT, PLAIN], ids=["report", "plain"])


@pytest.fixture
def answer() -> Message:
    """An answer of Helper's to Ana that is out in the world."""
    helper = PersonaFactory(slug="helper", address=HELPER)
    question = MessageFactory(thread__persona=helper, message_id="<first@client.example>")
    ParticipantFactory(thread=question.thread, address="ana@client.example")
    return OutboundFactory(thread=question.thread, answers=question, message_id=OURS)


def failing() -> list[str]:
    return list(Participant.objects.filter(failing_since__isnull=False).values_list("address", flat=True))


class TestA12:
    @both_forms
    def test_a_bounce_is_noted_on_its_thread_and_marks_the_recipient(self, answer: Message, form: str) -> None:
        inbound = receive(bounce(form), sender="")
        assert outcome(inbound) == ("ignored", "bounce")
        assert inbound.message is not None
        assert inbound.message.thread == answer.thread
        assert (inbound.message.status, inbound.message.last_code) == ("ignored", "bounce")
        assert failing() == ["ana@client.example"]
        assert bounces.is_failing(answer.thread, "Ana@client.example")
        assert not Run.objects.exists()

    @both_forms
    def test_the_daemon_takes_no_part_in_the_thread(self, answer: Message, form: str) -> None:
        receive(bounce(form), sender="")
        assert list(answer.thread.participants.values_list("address", flat=True)) == ["ana@client.example"]

    @both_forms
    def test_the_same_bounce_twice_is_one(self, answer: Message, form: str) -> None:
        receive(bounce(form), sender="")
        assert receive(bounce(form), sender="").status == "duplicate"

    def test_the_id_that_a_sending_service_gave_is_ours_too(self, answer: Message) -> None:
        Message.objects.filter(pk=answer.pk).update(provider_message_id="<0100@mail.service.example>")
        assert outcome(receive(bounce(ours="<0100@mail.service.example>"), sender="")) == ("ignored", "bounce")

    def test_who_may_write_is_no_question_for_a_daemon(self, answer: Message) -> None:
        Persona.objects.update(allowed_senders=["*@client.example"])
        raw = b"From: MAILER-DAEMON" + bounce().split(b"MAILER-DAEMON@mx.client.example", 1)[1]
        assert outcome(receive(raw, sender="")) == ("ignored", "bounce")


class TestWhatDoesNotCount:
    @both_forms
    @pytest.mark.parametrize(
        "facts",
        [{"ours": "<unknown@desk.example>"}, {"recipient": "cora@rival.example"}, {"status": "4.2.2"}],
        ids=["unknown id", "no recipient of it", "not failed for good"],
    )
    def test_it_marks_nobody_and_opens_no_thread(self, answer: Message, form: str, facts: dict[str, Any]) -> None:
        assert outcome(receive(bounce(form, **facts), sender="")) == ("ignored", "bounce_unknown")
        assert failing() == []
        assert EmailThread.objects.count() == 1
        assert answer.thread.messages.count() == 2

    def test_the_id_of_a_mail_that_we_received_is_no_proof(self, answer: Message) -> None:
        raw = bounce(ours="<first@client.example>", recipient=HELPER)
        assert receive(raw, sender="").reason == "bounce_unknown"

    def test_another_personas_mail_is_unknown(self, answer: Message) -> None:
        PersonaFactory(slug="billing", address="billing@desk.example")
        assert receive(bounce(), sender="", recipients=["billing@desk.example"]).reason == "bounce_unknown"
        assert failing() == []


class TestFailingRecipients:
    def test_a_later_mail_takes_the_mark_away(self, answer: Message) -> None:
        receive(bounce(), sender="")
        receive(mail(message_id="<2@client.example>", text="I am back."))
        assert failing() == []

    def test_an_automatic_answer_waits_for_a_person(self, answer: Message) -> None:
        receive(bounce(), sender="")
        run = RunFactory(message=MessageFactory(thread=answer.thread), status="queued")
        assert runs.execute(run.pk).outbound.get().status == "draft"

    def test_others_of_the_thread_are_answered(self, answer: Message) -> None:
        receive(bounce(), sender="")
        message = MessageFactory(thread=answer.thread, from_address="ben@client.example")
        run = RunFactory(message=message, status="queued")
        assert runs.execute(run.pk).outbound.get().status != "draft"

    def test_a_bounce_of_two_recipients_marks_the_one_that_failed(self, answer: Message) -> None:
        answer.cc = [{"name": "", "address": "ben@client.example"}]
        answer.save()
        receive(bounce(recipient="ben@client.example"), sender="")
        assert failing() == ["ben@client.example"]

    def test_an_inactive_persona_hears_of_it_later(self, answer: Message) -> None:
        Persona.objects.update(is_active=False)
        assert outcome(receive(bounce(), sender="")) == ("quarantined", "persona_inactive")
        assert InboundMail.objects.get().message is None
