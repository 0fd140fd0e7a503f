"""The outbox: claim, send through Django's e-mail backend, retry with back-off, or fail visibly.

The Message-ID is made once, when the mail is written. A crash between the mail server's "yes" and our own commit
repeats the send once, under the same Message-ID.
"""

import logging
import smtplib
from datetime import timedelta

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils import timezone

from protege import conf
from protege.exceptions import LeaseLostError, MailError, describe
from protege.mail.composing import Outgoing, compose
from protege.mail.headers import Mailbox
from protege.services import documents
from protege.services.wakeups import MAIL_QUEUE, task, wake, when_committed
from protege.signals import message_sent
from threads.models import Message, MessageStatus, RunKind

logger = logging.getLogger("protege.delivery")

LEASE_MARGIN = timedelta(minutes=2)
BACK_OFF_MINUTES = (1, 5, 15, 60, 120, 240, 480)
"""How long to wait after the first, second, ... failed try."""


def wake_delivery(message: Message) -> None:
    """Have a queued mail sent once the transaction that queued it has committed."""
    wake(send_task, message.pk)


@task(queue_name=MAIL_QUEUE)
def send_task(message_id: int) -> None:
    """Wake-up for a queued mail. The mail's own row takes every outcome."""
    send(message_id)


def send(message_id: int) -> Message:
    """Send a mail that is due; one that another worker has, or that is not due yet, is left alone."""
    message = _claim(message_id)
    if message is None:
        return Message.objects.get(pk=message_id)
    try:
        provider_id = _post(compose_message(message))
    except Exception as error:
        _record_failure(message, error)
    else:
        _write(message, status=MessageStatus.SENT, sent_at=Now(), last_code="", provider_message_id=provider_id)
        when_committed(lambda: message_sent.send_robust(sender=Message, message=message))
    message.refresh_from_db()
    return message


def compose_message(message: Message) -> EmailMultiAlternatives:
    """The stored mail as Django sends it: the same bytes at every try, Date apart."""
    scheduled = message.run is not None and message.run.kind == RunKind.RESPONSIBILITY
    return compose(
        Outgoing(
            message_id=message.message_id,
            from_=Mailbox(message.from_name, message.from_address),
            to=[Mailbox.from_dict(entry) for entry in message.to],
            cc=[Mailbox.from_dict(entry) for entry in message.cc],
            subject=message.subject,
            text=message.text_body,
            signature=message.persona.signature,
            in_reply_to=message.in_reply_to,
            references=list(message.references),
            auto="auto-generated" if scheduled else "auto-replied",
            attachments=_files(message),
        )
    )


def _claim(message_id: int) -> Message | None:
    """Take the mail for this worker, for longer than the mail server may take to answer."""
    due = Q(status=MessageStatus.QUEUED) & (Q(next_attempt_at__isnull=True) | Q(next_attempt_at__lte=Now()))
    lost = Q(status=MessageStatus.SENDING, lease_expires_at__lt=Now())
    lease = Now() + timedelta(seconds=settings.EMAIL_TIMEOUT or 60) + LEASE_MARGIN
    claimed = Message.objects.filter(due | lost, pk=message_id).update(
        status=MessageStatus.SENDING, attempts=F("attempts") + 1, lease_expires_at=lease
    )
    return Message.objects.select_related("persona", "run", "thread").get(pk=message_id) if claimed else None


def _post(email: EmailMultiAlternatives) -> str:
    """Hand the mail to the backend; the id that a sending service gave it, or ""."""
    email.send(fail_silently=False)
    status = getattr(email, "anymail_status", None)
    provider_id = getattr(status, "message_id", None)
    return str(provider_id)[:255] if provider_id else ""


def _files(message: Message) -> list[tuple[str, str, bytes]]:
    found = []
    for attachment in message.attachments.all():
        data = documents.content_of(attachment)
        if data is None:
            raise MailError(f"Attachment {attachment.pk} is gone or damaged.", code="attachment_gone")
        found.append((attachment.filename, attachment.content_type, data))
    return found


def _record_failure(message: Message, error: Exception) -> None:
    """Queue the next try, or end as `failed` when another one cannot help; the log names no address and no text."""
    code = failure_code(error)
    final = isinstance(error, MailError) or code == "refused" or message.attempts >= conf.load().delivery_attempts
    logger.warning("message %s was not sent at try %s: %s", message.pk, message.attempts, describe(error))
    if final:
        _write(message, status=MessageStatus.FAILED, last_code=code)
        return
    minutes = BACK_OFF_MINUTES[min(message.attempts, len(BACK_OFF_MINUTES)) - 1]
    _write(
        message,
        status=MessageStatus.QUEUED,
        last_code=code,
        next_attempt_at=timezone.now() + timedelta(minutes=minutes),
    )


def failure_code(error: Exception) -> str:
    """`refused` for a permanent no of the mail server, `temporary` for a no that may change, else what failed."""
    if isinstance(error, MailError):
        return error.code
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        codes = [code for code, _ in error.recipients.values()]
        return "refused" if all(code >= 500 for code in codes) else "temporary"
    if isinstance(error, smtplib.SMTPResponseException):
        return "refused" if error.smtp_code >= 500 else "temporary"
    return "connection" if isinstance(error, OSError) else "error"


def _write(message: Message, **fields: object) -> None:
    """Update the mail if this worker still holds it: `attempts` is the fencing token."""
    mine = Message.objects.filter(pk=message.pk, status=MessageStatus.SENDING, attempts=message.attempts)
    if mine.update(lease_expires_at=None, **fields) != 1:
        raise LeaseLostError(f"Message {message.pk} was taken over by another worker.")
