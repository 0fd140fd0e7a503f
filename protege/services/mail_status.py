"""The state of the mail in numbers: what a person or a monitor looks at first."""

from datetime import datetime
from typing import Any

from django.db.models import Count, Min, QuerySet
from django.utils import timezone

from threads.models import Direction, InboundMail, InboundStatus, Message, MessageStatus, Run, RunStatus


def mail_status() -> dict[str, Any]:
    """Counts by state of `inbound`, `runs` and `outbound`, and how many seconds the oldest of each kind has waited.

    Six queries, whatever there is; nothing of a mail is read.
    """
    outbound = Message.objects.filter(direction=Direction.OUTBOUND)
    received = InboundMail.objects.filter(status=InboundStatus.RECEIVED)
    now = timezone.now()
    return {
        "inbound": _counts(InboundMail.objects.all()),
        "runs": _counts(Run.objects.all()),
        "outbound": _counts(outbound),
        "oldest_seconds": {
            "received mail": _age(received, "received_at", now),
            "queued run": _age(Run.objects.filter(status=RunStatus.QUEUED), "created_at", now),
            "queued send": _age(outbound.filter(status=MessageStatus.QUEUED), "received_at", now),
        },
    }


def _counts(rows: QuerySet[Any]) -> dict[str, int]:
    counted = rows.order_by().values("status").annotate(number=Count("pk")).order_by("status")
    return {row["status"]: row["number"] for row in counted}


def _age(rows: QuerySet[Any], column: str, now: datetime) -> int | None:
    oldest = rows.order_by().aggregate(oldest=Min(column))["oldest"]
    return None if oldest is None else int((now - oldest).total_seconds())
