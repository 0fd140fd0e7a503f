"""The life of a run: every change of its state stands here, and each is one conditional UPDATE.

`attempt` is the fencing token. A worker that lost its lease finds no row to update, and stops.
"""

from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from protege.exceptions import LeaseLostError
from protege.services import holding
from protege.services.wakeups import RUNS_QUEUE, coded_errors, task, wake, when_committed
from protege.signals import run_finished
from threads.models import EmailThread, Message, MessageStatus, Run, RunKind, RunStatus
from threads.models.attachment import TextStatus
from threads.status import refresh_status

CLAIM_SECONDS = 120
"""Lease of a run between its claim and its first model call, which renews it."""

LEASE_MARGIN = 60
"""Seconds by which a lease outlives the call it was taken for."""

ATTEMPT_LIMIT = 3
"""How many workers may lose a run before it is given up."""


def queue_reply(message: Message) -> Run:
    """Queue the answer to an inbound mail and wake a worker when that is committed."""
    run = Run.objects.create(
        persona=message.persona, thread=message.thread, message=message, kind=RunKind.REPLY, model=message.persona.model
    )
    wake(execute_task, run.pk)
    return run


@task(queue_name=RUNS_QUEUE)
def execute_task(run_id: int) -> None:
    """Wake-up for a queued run. The run's own row takes every outcome."""
    from protege.services import runs  # the use case above us: a wake-up calls back into it

    with coded_errors():
        runs.execute(run_id)


def claim(run_id: int) -> Run | None:
    """Take the run for this worker; None when it is not to be had.

    It is free when it is queued, or when the lease of the worker that had it has passed. Not while its thread is
    paused or text of the mail's documents is still being extracted, and not while another run works on the thread,
    which the database decides by a constraint.
    """
    free = Q(status=RunStatus.QUEUED) | Q(status=RunStatus.RUNNING, lease_expires_at__lt=Now())
    claimable = (
        Run.objects.filter(free, pk=run_id, attempt__lt=ATTEMPT_LIMIT)
        .exclude(held_back())
        .exclude(message__attachments__text_status=TextStatus.PENDING)
    )
    try:
        with transaction.atomic():
            claimed = claimable.update(
                status=RunStatus.RUNNING,
                attempt=F("attempt") + 1,
                lease_expires_at=_lease(CLAIM_SECONDS),
                started_at=Now(),
                code="",
                detail="",
            )
    except IntegrityError:
        return None
    if not claimed:
        return None
    run = Run.objects.select_related("persona", "message__thread__persona", "thread", "responsibility").get(pk=run_id)
    _refresh(run)
    return run


def held_back() -> Q:
    """The runs that wait until a person releases their thread.

    A subquery and no join: PostgreSQL checks the conditions on the run itself again when another worker was faster,
    and with a join Django would put them out of its sight.
    """
    paused = EmailThread.objects.filter(paused_at__isnull=False)
    return Q(kind=RunKind.REPLY, thread__in=paused.values("pk"))


def give_up_lost(run_id: int) -> bool:
    """End a run that three workers have lost; False when it is not one."""
    lost = Run.objects.filter(
        pk=run_id, status=RunStatus.RUNNING, attempt__gte=ATTEMPT_LIMIT, lease_expires_at__lt=Now()
    ).first()
    if lost is None:
        return False
    try:
        finish(lost, RunStatus.FAILED, code="worker_lost", detail="Three workers stopped in the midst of this run.")
    except LeaseLostError:
        return False  # another sweep has just done it
    return True


def renew(run: Run, seconds: float) -> None:
    """Set the lease to database time and `seconds` and a margin; `LeaseLostError` when the run is not ours."""
    write(run, lease_expires_at=_lease(seconds + LEASE_MARGIN))


def write(run: Run, **fields: Any) -> None:
    """Update the run if this worker still holds it, else raise `LeaseLostError`."""
    if mine(run).update(**fields) != 1:
        raise LeaseLostError(f"Run {run.pk} was taken over by another worker.")


def mine(run: Run) -> Any:
    """The row of the run, as long as this worker holds it."""
    return Run.objects.filter(pk=run.pk, attempt=run.attempt, status=RunStatus.RUNNING)


def finish(run: Run, status: RunStatus, *, code: str = "", detail: str = "") -> None:
    """End the run; mails that its tools prepared are released when it succeeded, and discarded when not.

    The sender of a mail whose run has failed or was refused may get the persona's holding sentence.

    Call it alone or, for a run that succeeded, as the first statement of the transaction that writes what it produced:
    the thread's status follows from that, and is refreshed there.
    """
    with transaction.atomic():
        write(
            run,
            status=status,
            code=code,
            detail=detail[:2_000],
            finished_at=Now(),
            lease_expires_at=None,
        )
        if status != RunStatus.SUCCEEDED:
            _end_without_answer(run, status, code)
    when_committed(lambda: _tell(run.pk))
    _wake_next(run)


def _end_without_answer(run: Run, status: RunStatus, code: str) -> None:
    _discard_held(run, code)
    if status in (RunStatus.FAILED, RunStatus.REFUSED):
        holding.write(run)
    _refresh(run)


def supersede_queued(thread_id: int, *, code: str) -> int:
    """Give up the queued runs of a thread for a newer one; returns how many."""
    queued = Run.objects.filter(thread=thread_id, kind=RunKind.REPLY, status=RunStatus.QUEUED)
    return queued.update(status=RunStatus.SUPERSEDED, code=code, finished_at=Now())


def interrupt(thread_id: int) -> int:
    """Take the runs of a paused thread from their workers, and let them wait in the queue; returns how many.

    The workers find their runs no longer running, and stop. What these runs have prepared is not mailed.
    """
    running = Run.objects.filter(held_back(), thread=thread_id, status=RunStatus.RUNNING)
    count = 0
    for run in running:
        with transaction.atomic():
            if mine(run).update(status=RunStatus.QUEUED, lease_expires_at=None) == 1:
                _discard_held(run, "interrupted")
                _refresh(run)
                count += 1
    return count


def _discard_held(run: Run, code: str) -> None:
    run.outbound.filter(status=MessageStatus.HELD).update(status=MessageStatus.DISCARDED, last_code=code)


def _wake_next(run: Run) -> None:
    """Another mail of the thread may have waited for this run."""
    if run.thread_id:
        waiting = Run.objects.filter(thread=run.thread_id, status=RunStatus.QUEUED).exclude(pk=run.pk)
        following = waiting.order_by("id").values_list("pk", flat=True).first()
        if following is not None:
            wake(execute_task, following)


def _tell(run_id: int) -> None:
    run_finished.send_robust(sender=Run, run=Run.objects.get(pk=run_id))


def _refresh(run: Run) -> None:
    if run.thread_id:
        refresh_status(run.thread_id)


def _lease(seconds: float) -> Any:
    """Database time: the clocks of the workers need not agree."""
    return Now() + timedelta(seconds=seconds)
