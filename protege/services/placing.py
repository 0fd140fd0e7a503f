"""A mail of ours gets its place: in the thread and the outbox, or among the drafts that wait for a person."""

from django.utils import timezone

from personas.models import ReplyMode
from protege.services import bounces, delivery, governor
from protege.services.wakeups import when_committed
from protege.signals import draft_created
from threads.models import Direction, EmailThread, Message, MessageStatus, Origin, Participant
from threads.models.message import LIVE_ANSWER

REPLACED = "replaced"
"""`last_code` of a draft whose place a newer one has taken."""


def place(message: Message) -> None:
    """Store a mail as queued, or as a draft where a person decides; call it in the transaction that makes it."""
    thread = lock(message.thread_id)
    if must_wait(message, thread):
        _wait_for_person(message, thread)
    else:
        queue(message)


def lock(thread_id: int) -> EmailThread:
    """The thread as it is now; nobody changes it until the transaction ends."""
    return EmailThread.objects.select_for_update(of=("self",)).select_related("persona").get(pk=thread_id)


def must_wait(message: Message, thread: EmailThread) -> bool:
    """True when a person decides on a mail.

    The mode of a thread also holds for the mails to others that its runs prepare. Mail to a recipient whose mail has
    come back waits, too, and so do what a run says that goes on while a person has stepped in, and what tools write
    over the governor's limits. An answer has passed the governor when its mail came.
    """
    threads = [thread]
    origin = message.run.message.thread_id if message.run is not None and message.run.message is not None else None
    if origin is not None and origin != thread.pk:
        threads.append(EmailThread.objects.select_related("persona").get(pk=origin))
    if any(one.paused_at or one.effective_reply_mode != ReplyMode.AUTO for one in threads):
        return True
    if message.origin == Origin.TOOL and governor.is_reached(thread):
        return True
    return bounces.is_failing(thread, *message.recipient_addresses)


def _wait_for_person(message: Message, thread: EmailThread) -> None:
    """A draft is part of nobody's history yet: it counts in the thread's revision when it is approved."""
    message.status = MessageStatus.DRAFT
    if message.thread_revision is None:
        message.thread_revision = thread.revision
    message.save()
    EmailThread.objects.filter(pk=thread.pk).update(last_activity=timezone.now())
    when_committed(lambda: draft_created.send_robust(sender=Message, message=message))


def queue(message: Message) -> None:
    """Store a mail on which no person decides, with its place in the thread and in the outbox."""
    message.status = MessageStatus.QUEUED
    message.sequence = EmailThread.objects.take_sequence(message.thread_id)
    message.save()
    let_out(message)


def let_out(message: Message) -> None:
    """What follows when a mail has its place in the thread: whom it reaches takes part, what it answers is answered."""
    for entry in (*message.to, *message.cc):
        Participant.objects.get_or_create(
            thread_id=message.thread_id, address=entry["address"].lower(), defaults={"name": entry.get("name", "")}
        )
    if message.origin == Origin.ANSWER and message.answers is not None:
        Message.objects.filter(pk=message.answers.pk).update(answered_by=message)
        _cover_earlier(message, message.answers)
    delivery.wake_delivery(message)


def _cover_earlier(message: Message, answered: Message) -> None:
    """The mails of the same sender whose drafts gave way to this answer are covered by it."""
    earlier = Message.objects.filter(
        thread=message.thread_id,
        direction=Direction.INBOUND,
        answered_by__isnull=True,
        from_address=answered.from_address,
        sequence__lt=answered.sequence,
    )
    drafted = Message.objects.filter(status=MessageStatus.DISCARDED, last_code=REPLACED).values("answers")
    answered_otherwise = Message.objects.filter(origin=Origin.ANSWER, status__in=LIVE_ANSWER, answers__isnull=False)
    earlier.filter(pk__in=drafted).exclude(pk__in=answered_otherwise.values("answers")).update(answered_by=message)
