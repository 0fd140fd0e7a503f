"""Tasks are wake-ups: the rows say what there is to do, and the sweep finds what nobody woke."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from django.db import transaction

from protege.exceptions import ProtegeError, describe

try:
    from django.tasks import task
except ImportError:  # Django 5.2
    from django_tasks import task  # type: ignore[no-redef]  # Django 6 has it itself

MAIL_QUEUE = "protege-mail"
RUNS_QUEUE = "protege-runs"

__all__ = ["MAIL_QUEUE", "RUNS_QUEUE", "coded_errors", "task", "wake", "when_committed"]


def wake(work: Any, row_id: int) -> None:
    """Enqueue the task `work` for a row once the transaction that wrote the row has committed.

    A queue that is away must not undo what was stored: the failure is logged, and the sweep wakes the row later.
    """
    when_committed(partial(work.enqueue, row_id))


def when_committed(callback: Callable[[], Any]) -> None:
    transaction.on_commit(callback, robust=True)


@contextmanager
def coded_errors() -> Iterator[None]:
    """End the body of a task in an error without text: queues log and store what a task raises, traceback and all."""
    try:
        yield
    except Exception as error:  # whatever it is: only its class and code may reach the queue
        raise ProtegeError(describe(error)) from None
