"""A person steps in: a paused thread stores and joins mail and answers nothing, until it is released."""

import logging
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from personas.models import ReplyMode
from protege.services import run_life
from protege.services.wakeups import when_committed
from threads.models import Direction, EmailThread, Message, MessageStatus, Origin, Run
from threads.models.message import OUT_IN_THE_WORLD
from threads.models.run import UNFINISHED
from threads.status import STAFF_ANSWER, refresh_status

if TYPE_CHECKING:
    from django.contrib.auth.base_user import AbstractBaseUser

logger = logging.getLogger("protege.pausing")

RELEASED = "thread_released"
"""Code of a run that waited in a paused thread and was replaced by the one for the newest mail."""


def pause(thread: EmailThread | int, *, author: "AbstractBaseUser | None" = None) -> bool:
    """Answer nothing in the thread, given as a row or by its id, until it is released; False when it is paused.

    Runs that are queued wait. One that a worker is doing is taken from it and waits too: what it has prepared to be
    mailed is discarded, since it does not know what the person is about to write. What stands in the outbox already
    has been said, and leaves.
    """
    thread_id = thread if isinstance(thread, int) else thread.pk
    running = EmailThread.objects.filter(pk=thread_id, paused_at__isnull=True)
    if running.update(paused_at=Now()) != 1:
        return False
    # In a transaction of its own: runs are locked before threads everywhere else.
    when_committed(lambda: run_life.interrupt(thread_id))
    _log("paused", thread_id, author)
    return True


def release(thread: EmailThread | int, *, author: "AbstractBaseUser | None" = None) -> Run | None:
    """Let the thread be answered again: the newest mail that nobody has answered gets a run, the earlier ones none.

    The run reads what the person wrote, as it reads all that stands in the thread. None when there is nothing to
    answer, or when the thread was not paused: of two releases at once, one queues a run.
    """
    thread_id = thread if isinstance(thread, int) else thread.pk
    with transaction.atomic():
        paused = EmailThread.objects.filter(pk=thread_id, paused_at__isnull=False)
        if paused.update(paused_at=None) != 1:
            return None
        run_life.supersede_queued(thread_id, code=RELEASED)
        run = _answer_newest(EmailThread.objects.select_related("persona").get(pk=thread_id))
        refresh_status(thread_id)
    _log("released", thread_id, author)
    return run


def _answer_newest(thread: EmailThread) -> Run | None:
    """A queued run for the newest unanswered mail; the one that waits for a person's decision stays as it is."""
    newest = newest_unanswered(thread)
    if newest is None or thread.effective_reply_mode == ReplyMode.OFF:
        return None
    unfinished = newest.runs.filter(status__in=UNFINISHED).first()
    return unfinished or run_life.queue_reply(newest)


def newest_unanswered(thread: EmailThread) -> Message | None:
    """The newest mail to the persona, unless the persona or a person has answered it already."""
    placed = Message.objects.filter(thread=thread, sequence__isnull=False).select_related("thread", "persona")
    received = placed.filter(direction=Direction.INBOUND, status=MessageStatus.RECEIVED)
    newest = received.exclude(last_code=STAFF_ANSWER).order_by("-sequence").first()
    if newest is None or newest.answered_by_id is not None:
        return None
    by_person = Q(origin=Origin.PERSON, status__in=OUT_IN_THE_WORLD) | Q(last_code=STAFF_ANSWER)
    return None if placed.filter(by_person, sequence__gt=newest.sequence).exists() else newest


def _log(what: str, thread_id: int, author: "AbstractBaseUser | None") -> None:
    logger.info("thread %s was %s by user %s", thread_id, what, author.pk if author is not None else None)
