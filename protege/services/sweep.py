"""Whatever was left queued, leased too long or due goes on: the rows are the queue, and this finds what nobody woke."""

import logging
from datetime import timedelta
from typing import Any

from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from protege.exceptions import describe
from protege.services import delivery, inbox, run_life
from threads.models import InboundMail, InboundStatus, Message, MessageStatus, Run, RunStatus

logger = logging.getLogger("protege.sweep")

GRACE = timedelta(minutes=1)
"""How long a door and a first wake-up are given before the sweep steps in."""

BATCH = 500
"""Rows of each kind that one sweep wakes; the next one takes the rest."""


def sweep() -> dict[str, int]:
    """Wake all that waits; returns how many rows of each kind: `mails`, `runs`, `lost_runs`, `sends`."""
    return {
        "mails": _wake_all(inbox.process_task, _received_mails()),
        "lost_runs": sum(run_life.give_up_lost(run_id) for run_id in _lost_runs()),
        "runs": _wake_all(run_life.execute_task, _waiting_runs()),
        "sends": _wake_all(delivery.send_task, _due_sends()),
    }


def _wake_all(work: Any, row_ids: list[int]) -> int:
    return sum(_wake(work, row_id) for row_id in row_ids)


def _wake(work: Any, row_id: int) -> bool:
    """Enqueue one row; a queue that fails on it must not keep the other rows waiting."""
    try:
        work.enqueue(row_id)
    except Exception as error:  # whatever the queue library raises
        logger.error("row %s could not be woken: %s", row_id, describe(error))
        return False
    return True


def _received_mails() -> list[int]:
    left = InboundMail.objects.filter(status=InboundStatus.RECEIVED, received_at__lt=timezone.now() - GRACE)
    return list(left.order_by("id").values_list("pk", flat=True)[:BATCH])


def _lost_runs() -> list[int]:
    lost = Run.objects.filter(status=RunStatus.RUNNING, lease_expires_at__lt=Now(), attempt__gte=run_life.ATTEMPT_LIMIT)
    return list(lost.values_list("pk", flat=True)[:BATCH])


def _waiting_runs() -> list[int]:
    queued = Q(status=RunStatus.QUEUED, created_at__lt=timezone.now() - GRACE)
    expired = Q(status=RunStatus.RUNNING, lease_expires_at__lt=Now())
    waiting = Run.objects.filter(queued | expired).exclude(run_life.held_back())
    return list(waiting.order_by("id").values_list("pk", flat=True)[:BATCH])


def _due_sends() -> list[int]:
    due = Q(status=MessageStatus.QUEUED) & (Q(next_attempt_at__isnull=True) | Q(next_attempt_at__lte=Now()))
    lost = Q(status=MessageStatus.SENDING, lease_expires_at__lt=Now())
    return list(Message.objects.filter(due | lost).order_by("id").values_list("pk", flat=True)[:BATCH])
