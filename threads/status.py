"""The status of a thread, told from its newest inbound mail; in a thread without one, from its run.

A mail that was ignored, such as a note of absence or of failure, says nothing about a thread with others in it.
"""

from django.db.models import Q

from threads.models.message import Direction, Message, MessageStatus, Origin
from threads.models.run import Run, RunStatus
from threads.models.thread import EmailThread, ThreadStatus

STAFF_ANSWER = "staff_answer"
"""`last_code` of a colleague's mail that answers in the persona's stead."""

_BY_RUN = {
    RunStatus.QUEUED: ThreadStatus.WAITING,
    RunStatus.RUNNING: ThreadStatus.RUNNING,
    RunStatus.WAITING: ThreadStatus.RUNNING,
    RunStatus.SUPERSEDED: ThreadStatus.WAITING,
    RunStatus.SUCCEEDED: ThreadStatus.ANSWERED,
}


def refresh_status(thread_id: int) -> None:
    """Work the status out from the rows and store it; call it in the transaction that changed them."""
    EmailThread.objects.filter(pk=thread_id).update(status=current_status(thread_id))


def current_status(thread_id: int) -> ThreadStatus:
    inbound = Message.objects.filter(thread=thread_id, direction=Direction.INBOUND)
    newest = (
        inbound.alias(ignored=Q(status=MessageStatus.IGNORED))
        .order_by("ignored", "-sequence")
        .select_related("answered_by")
        .only("status", "sequence", "answered_by__status")
        .first()
    )
    if newest is None:
        return _of_runs(thread_id=thread_id)
    if newest.status == MessageStatus.IGNORED:
        return ThreadStatus.IGNORED
    if newest.answered_by is not None and newest.answered_by.status == MessageStatus.FAILED:
        return ThreadStatus.FAILED
    if newest.answered_by_id or _answered_by_person(thread_id, newest):
        return ThreadStatus.ANSWERED
    if newest.answered_with.filter(status=MessageStatus.DRAFT).exists():
        return ThreadStatus.DRAFTED
    status = _of_runs(message_id=newest.pk)
    # Its run has ended well, and yet nothing answers it: a person has thrown the draft away.
    return ThreadStatus.WAITING if status == ThreadStatus.ANSWERED else status


def _answered_by_person(thread_id: int, newest: Message) -> bool:
    """By a draft of their own, or by a mail to the people in the thread."""
    wrote = Q(direction=Direction.OUTBOUND, origin=Origin.PERSON) | Q(last_code=STAFF_ANSWER)
    return Message.objects.filter(wrote, thread=thread_id, sequence__gt=newest.sequence).exists()


def _of_runs(**which: int) -> ThreadStatus:
    last = Run.objects.filter(**which).order_by("-id").only("status").first()
    if last is None:
        return ThreadStatus.WAITING
    return _BY_RUN.get(RunStatus(last.status), ThreadStatus.FAILED)
