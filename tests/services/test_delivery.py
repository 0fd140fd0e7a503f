import smtplib
from datetime import timedelta
from email import message_from_bytes
from typing import Any

import pytest
from django.core import mail as django_mail
from django.core.mail import EmailMultiAlternatives
from django.core.mail.backends.base import BaseEmailBackend
from django.db.models import F
from django.utils import timezone

from protege.exceptions import LeaseLostError, MailError
from protege.services import delivery
from protege.signals import message_sent
from tests.factories import AttachmentFactory, EmailThreadFactory, MessageFactory, OutboundFactory
from threads.models import EmailThread, Message

pytestmark = pytest.mark.django_db


class FailingBackend(BaseEmailBackend):
    """Raises what a test put into `error`."""

    error: Exception = OSError("unreachable")

    def send_messages(self, email_messages: Any) -> int:
        raise self.error


@pytest.fixture
def failing(settings: Any) -> type[FailingBackend]:
    settings.EMAIL_BACKEND = f"{__name__}.FailingBackend"
    return FailingBackend


def queued(**fields: Any) -> Message:
    inbound = MessageFactory(thread__persona__signature="Helper, Desk")
    return OutboundFactory(
        thread=inbound.thread,
        answers=inbound,
        status="queued",
        subject="Re: Where is my order?",
        text_body="It is **on its way**.",
        in_reply_to=inbound.message_id,
        references=[inbound.message_id],
        **fields,
    )


def test_a_queued_mail_goes_out_as_an_ordinary_mail() -> None:
    message = delivery.send(queued().pk)
    assert message.status == "sent"
    assert message.sent_at is not None
    (sent,) = django_mail.outbox
    parsed = message_from_bytes(sent.message().as_bytes())
    assert parsed["Message-ID"] == message.message_id
    assert parsed["In-Reply-To"] == message.in_reply_to
    assert parsed["References"] == message.references[0]
    assert parsed["Auto-Submitted"] == "auto-replied"
    assert parsed["X-Auto-Response-Suppress"] == "All"
    assert parsed["Subject"] == "Re: Where is my order?"
    assert sent.to == ["Ana Moßner <ana@client.example>"] or "ana@client.example" in sent.to[0]
    bodies = {
        part.get_content_type(): part.get_payload(decode=True) for part in parsed.walk() if not part.is_multipart()
    }
    assert b"It is **on its way**.\n\n-- \nHelper, Desk" in bodies["text/plain"].replace(b"\r\n", b"\n")
    assert b"<strong>on its way</strong>" in bodies["text/html"]


def test_attachments_go_along() -> None:
    message = queued()
    AttachmentFactory(message=message, data=b"notes")
    delivery.send(message.pk)
    files = [part for part in django_mail.outbox[0].message().walk() if part.get_filename()]
    assert [(part.get_filename(), part.get_payload(decode=True)) for part in files] == [("notes.txt", b"notes")]


def test_a_mail_is_sent_once() -> None:
    message = queued()
    delivery.send(message.pk)
    delivery.send(message.pk)
    assert len(django_mail.outbox) == 1


@pytest.mark.parametrize("status", ["draft", "held", "sent", "failed", "discarded"])
def test_only_what_is_queued_is_sent(status: str) -> None:
    delivery.send(OutboundFactory(status=status).pk)
    assert django_mail.outbox == []


def test_listeners_hear_of_it(django_capture_on_commit_callbacks: Any) -> None:
    heard: list[Message] = []
    listener = lambda message, **_: heard.append(message)  # noqa: E731
    message_sent.connect(listener)
    message = queued()
    with django_capture_on_commit_callbacks(execute=True):
        delivery.send(message.pk)
    assert heard == [message]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError("unreachable"), "connection"),
        (smtplib.SMTPResponseException(451, b"later"), "temporary"),
        (smtplib.SMTPRecipientsRefused({"ana@client.example": (450, b"greylisted")}), "temporary"),
        (RuntimeError("odd"), "error"),
    ],
)
def test_what_may_pass_is_tried_again_later(failing: Any, error: Exception, code: str) -> None:
    failing.error = error
    message = delivery.send(queued().pk)
    assert (message.status, message.last_code, message.attempts) == ("queued", code, 1)
    assert timedelta(0) < message.next_attempt_at - timezone.now() <= timedelta(minutes=1)
    assert delivery.send(message.pk).attempts == 1, "it is not due yet"


@pytest.mark.parametrize(
    "error",
    [
        smtplib.SMTPResponseException(550, b"no such user"),
        smtplib.SMTPRecipientsRefused({"ana@client.example": (550, b"no such user")}),
    ],
)
def test_a_permanent_no_fails_at_once(failing: Any, error: Exception) -> None:
    failing.error = error
    assert (message := delivery.send(queued().pk)).status == "failed"
    assert message.last_code == "refused"


def test_the_last_try_ends_in_failed_and_keeps_its_message_id(failing: Any, settings: Any) -> None:
    failing.error = OSError("unreachable")
    settings.PROTEGE = {**settings.PROTEGE, "DELIVERY_ATTEMPTS": 2}
    message = queued()
    delivery.send(message.pk)
    Message.objects.update(next_attempt_at=timezone.now() - timedelta(seconds=1))
    after = delivery.send(message.pk)
    assert (after.status, after.attempts, after.message_id) == ("failed", 2, message.message_id)


def test_a_gone_attachment_fails_visibly() -> None:
    message = queued()
    AttachmentFactory(message=message).file.delete(save=False)
    assert delivery.send(message.pk).last_code == "attachment_gone"
    assert django_mail.outbox == []


def test_a_send_whose_worker_died_is_taken_over_under_the_same_id() -> None:
    message = queued(attempts=1)
    Message.objects.update(status="received")
    Message.objects.filter(pk=message.pk).update(
        status="sending", lease_expires_at=timezone.now() - timedelta(seconds=1)
    )
    assert delivery.send(message.pk).status == "sent"
    assert django_mail.outbox[0].message()["Message-ID"] == message.message_id


def test_a_worker_that_lost_its_lease_writes_nothing() -> None:
    message = queued()
    claimed = delivery._claim(message.pk)
    assert claimed is not None
    Message.objects.filter(pk=message.pk).update(attempts=2)
    with pytest.raises(LeaseLostError):
        delivery._write(claimed, status="sent")
    assert Message.objects.get(pk=message.pk).status == "sending"


def test_no_address_and_no_text_in_a_log_line(failing: Any, caplog: Any) -> None:
    failing.error = smtplib.SMTPRecipientsRefused({"ana@client.example": (450, b"Where is order 77?")})
    delivery.send(queued().pk)
    assert "SMTPRecipientsRefused" in caplog.text
    assert "ana@" not in caplog.text
    assert "order" not in caplog.text


def answer_in(thread: EmailThread, **fields: Any) -> Message:
    """A queued answer of a persona that quotes what it answers."""
    thread.persona.quote_history = True
    thread.persona.save()
    question = MessageFactory(
        thread=thread, text_body="Where is order 77?\n> Hello", sent_at="2026-03-02T08:00:00Z", from_name="Ana Moßner"
    )
    return OutboundFactory(
        thread=thread, answers=question, status="queued", text_body="It is **on its way**.", **fields
    )


class TestQuote:
    def sent(self, **fields: Any) -> EmailMultiAlternatives:
        thread = EmailThreadFactory(persona__signature="Helper", persona__timezone="Europe/Vienna")
        delivery.send(answer_in(thread, **fields).pk)
        (mail,) = django_mail.outbox
        return mail

    def test_the_mail_that_is_answered_stands_below_the_answer(self) -> None:
        assert self.sent().body == (
            "It is **on its way**.\n\n-- \nHelper\n\n"
            "On 2026-03-02 09:00 CET, Ana Moßner <ana@client.example> wrote:\n> Where is order 77?\n>> Hello"
        )

    def test_not_for_people_who_were_not_sent_it(self) -> None:
        assert "order 77" not in self.sent(cc=[{"address": "ben@client.example"}]).body

    def test_not_below_what_is_no_answer(self) -> None:
        assert "order 77" not in self.sent(origin="tool").body

    def test_not_unless_the_persona_says_so(self) -> None:
        delivery.send(queued().pk)
        assert "order 77" not in django_mail.outbox[0].body


class TestResend:
    def failed(self, **fields: Any) -> Message:
        message = queued(**fields)
        Message.objects.filter(pk=message.pk).update(status="failed", last_code="connection", attempts=8)
        return message

    def test_it_leaves_under_its_own_id(self, django_capture_on_commit_callbacks: Any) -> None:
        message = self.failed()
        with django_capture_on_commit_callbacks(execute=True):
            delivery.resend(message.pk)
        message.refresh_from_db()
        assert (message.status, message.last_code) == ("sent", "")
        assert [one.extra_headers["Message-ID"] for one in django_mail.outbox] == [message.message_id]

    def test_it_has_as_many_tries_as_a_new_one(self, failing: Any) -> None:
        failing.error = OSError("unreachable")
        message = self.failed()
        delivery.resend(message.pk)
        for _ in range(7):
            assert delivery.send(message.pk).status == "queued"
            Message.objects.update(next_attempt_at=None)
        assert delivery.send(message.pk).status == "failed"

    def test_the_first_wait_is_short_again(self, failing: Any) -> None:
        failing.error = OSError("unreachable")
        message = self.failed()
        delivery.resend(message.pk)
        assert delivery.send(message.pk).next_attempt_at - timezone.now() <= timedelta(minutes=1)

    @pytest.mark.parametrize("tries", [1, 8])
    def test_a_worker_of_an_earlier_round_writes_nothing(self, tries: int) -> None:
        message = queued(attempts=tries - 1)
        old = delivery._claim(message.pk)
        assert old is not None
        Message.objects.filter(pk=message.pk).update(status="failed", attempts=F("attempts") + (8 - tries))
        delivery.resend(message.pk)
        for _ in range(8):
            Message.objects.filter(pk=message.pk).update(status="queued", next_attempt_at=None)
            assert delivery._claim(message.pk) is not None
            with pytest.raises(LeaseLostError):
                delivery._write(old, status="sent")

    @pytest.mark.parametrize("status", ["queued", "sending", "sent"])
    def test_only_what_has_failed(self, status: str) -> None:
        message = queued()
        Message.objects.filter(pk=message.pk).update(status=status)
        with pytest.raises(MailError) as caught:
            delivery.resend(message.pk)
        assert caught.value.code == "not_failed"

    def test_not_beside_another_answer(self) -> None:
        message = self.failed()
        OutboundFactory(thread=message.thread, answers=message.answers)
        with pytest.raises(MailError) as caught:
            delivery.resend(message.pk)
        assert caught.value.code == "answered_already"
