"""The status of a thread, told from its newest inbound mail; in a thread without one, from its run."""

from threads.models.message import Direction, Message, MessageStatus, Origin
from threads.models.run import Run, RunStatus
from threads.models.thread import EmailThread, ThreadStatus

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
    newest = (
        Message.objects.filter(thread=thread_id, direction=Direction.INBOUND)
        .order_by("-sequence")
        .only("status", "answered_by", "sequence")
        .first()
    )
    if newest is None:
        return _of_runs(thread_id=thread_id)
    if newest.status == MessageStatus.IGNORED:
        return ThreadStatus.IGNORED
    if newest.answered_by_id or _answered_by_person(thread_id, newest):
        return ThreadStatus.ANSWERED
    if newest.answered_with.filter(status=MessageStatus.DRAFT).exists():
        return ThreadStatus.DRAFTED
    return _of_runs(message_id=newest.pk)


def _answered_by_person(thread_id: int, newest: Message) -> bool:
    return Message.objects.filter(
        thread=thread_id, direction=Direction.OUTBOUND, origin=Origin.PERSON, sequence__gt=newest.sequence
    ).exists()


def _of_runs(**which: int) -> ThreadStatus:
    last = Run.objects.filter(**which).order_by("-id").only("status").first()
    if last is None:
        return ThreadStatus.WAITING
    return _BY_RUN.get(RunStatus(last.status), ThreadStatus.FAILED)
