"""The outbox: claim, send through Django's e-mail backend, retry with back-off, or fail visibly.

The Message-ID is made once, when the mail is written. A crash between the mail server's "yes" and our own commit
repeats the send once, under the same Message-ID.
"""

import logging
from datetime import timedelta
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.db import IntegrityError, transaction
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils import timezone

from protege import conf
from protege.exceptions import LeaseLostError, MailError, describe
from protege.mail.composing import Outgoing, Quote, compose
from protege.mail.headers import Mailbox
from protege.services import bounces, documents, posting
from protege.services.wakeups import MAIL_QUEUE, coded_errors, task, wake, when_committed
from protege.signals import message_sent
from threads.llm_text import dated
from threads.models import Message, MessageStatus, Origin, RunKind
from threads.status import refresh_status

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
    with coded_errors():
        send(message_id)


def send(message_id: int) -> Message:
    """Send a mail that is due; one that another worker has, or that is not due yet, is left alone."""
    message = _claim(message_id)
    if message is None:
        return Message.objects.get(pk=message_id)
    try:
        posted = posting.post(compose_message(message))
    except Exception as error:  # whatever the host's e-mail backend raises
        _record_failure(message, error)
    else:
        _record_success(message, posted)
    message.refresh_from_db()
    return message


def resend(message_id: int) -> Message:
    """Queue a failed mail once more, under its own Message-ID, with as many tries as a new one has.

    `MailError` when it has not failed, or when the mail that it answers has another answer by now.
    """
    failed = Message.objects.filter(pk=message_id, status=MessageStatus.FAILED)
    try:
        with transaction.atomic():
            message = failed.get()
            fields = {"attempts": _end_of_round(message.attempts), "next_attempt_at": None, "last_code": ""}
            queued = failed.filter(attempts=message.attempts).update(status=MessageStatus.QUEUED, **fields)
            wake_delivery(message)
    except IntegrityError:
        raise MailError("The mail has another answer by now. Nothing was sent.", code="answered_already") from None
    except Message.DoesNotExist:
        queued = 0
    if not queued:
        raise MailError(f"Message {message_id} has not failed. Reload it.", code="not_failed")
    return Message.objects.get(pk=message_id)


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
            quote=_quote(message),
        )
    )


def _quote(message: Message) -> Quote | None:
    """The mail that is answered, where the persona quotes it; never for people who were not sent it."""
    answered = message.answers
    if answered is None or message.origin != Origin.ANSWER or not message.persona.quote_history:
        return None
    asked_for = {entry["address"].lower() for entry in answered.reply_to}
    if not message.recipient_addresses <= {answered.from_address, *answered.recipient_addresses, *asked_for}:
        return None
    sender = Mailbox(answered.from_name, answered.from_address)
    return Quote(sender, dated(answered).astimezone(ZoneInfo(message.persona.timezone)), answered.text_body)


def _claim(message_id: int) -> Message | None:
    """Take the mail for this worker, for longer than the mail server may take to answer."""
    due = Q(status=MessageStatus.QUEUED) & (Q(next_attempt_at__isnull=True) | Q(next_attempt_at__lte=Now()))
    lost = Q(status=MessageStatus.SENDING, lease_expires_at__lt=Now())
    lease = Now() + timedelta(seconds=settings.EMAIL_TIMEOUT or 60) + LEASE_MARGIN
    claimed = Message.objects.filter(due | lost, pk=message_id).update(
        status=MessageStatus.SENDING, attempts=F("attempts") + 1, lease_expires_at=lease
    )
    if not claimed:
        return None
    return Message.objects.select_related("persona", "run", "thread", "answers").get(pk=message_id)


def _files(message: Message) -> list[tuple[str, str, bytes]]:
    found = []
    for attachment in message.attachments.all():
        data = documents.content_of(attachment)
        if data is None:
            raise MailError(f"Attachment {attachment.pk} is gone or damaged.", code="attachment_gone")
        found.append((attachment.filename, attachment.content_type, data))
    return found


def _record_success(message: Message, posted: posting.Posted) -> None:
    """It has left. Mail to recipients whom the mail server refused for good waits for a person from now on.

    The mail is not repeated for them: the others would get it twice.
    """
    with transaction.atomic():
        _write(
            message,
            status=MessageStatus.SENT,
            sent_at=Now(),
            last_code="partly_refused" if posted.refused else "",
            provider_message_id=posted.provider_id,
        )
        refresh_status(message.thread_id)
    if posted.refused:
        logger.warning("message %s was refused for %s of its recipients", message.pk, len(posted.refused))
        gone = [address for address, code in posted.refused.items() if code >= 500]
        bounces.mark_failing(bounces.Failure(message, gone))
    when_committed(lambda: message_sent.send_robust(sender=Message, message=message))


def _record_failure(message: Message, error: Exception) -> None:
    """Queue the next try, or end as `failed` when another one cannot help; the log names no address and no text."""
    code = posting.failure_code(error)
    last = message.attempts == _end_of_round(message.attempts)
    logger.warning("message %s was not sent at try %s: %s", message.pk, message.attempts, describe(error))
    if last or isinstance(error, MailError) or code == "refused":
        _give_up(message, code)
        return
    tries = (message.attempts - 1) % conf.load().delivery_attempts
    minutes = BACK_OFF_MINUTES[min(tries, len(BACK_OFF_MINUTES) - 1)]
    _write(
        message,
        status=MessageStatus.QUEUED,
        last_code=code,
        next_attempt_at=timezone.now() + timedelta(minutes=minutes),
    )


def _give_up(message: Message, code: str) -> None:
    """End as `failed`, and have the thread say so: nobody has got an answer."""
    with transaction.atomic():
        _write(message, status=MessageStatus.FAILED, last_code=code)
        refresh_status(message.thread_id)


def _end_of_round(attempts: int) -> int:
    """The number of the last try of the round that `attempts` is in.

    The count goes on over a resend and never starts again: it is the fencing token, and a worker that came to a halt
    in an earlier round must not find its own number in a later one.
    """
    limit = max(1, conf.load().delivery_attempts)
    return max(1, -(-attempts // limit)) * limit


def _write(message: Message, **fields: object) -> None:
    """Update the mail if this worker still holds it: `attempts` is the fencing token."""
    mine = Message.objects.filter(pk=message.pk, status=MessageStatus.SENDING, attempts=message.attempts)
    if mine.update(lease_expires_at=None, **fields) != 1:
        raise LeaseLostError(f"Message {message.pk} was taken over by another worker.")
