"""The brake on automatic answers: no mark of other people's software is needed to stop a loop.

Two mail robots that answer each other look like two busy people. So a persona gives so many automatic answers an hour
to one thread, one correspondent, one domain, and in all; what says the same again, and what comes faster than people
write, waits for a person. It takes the same number of queries whatever the data.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Q
from django.utils import timezone

from personas.models import ReplyMode
from protege import conf
from protege.services import alerts, policy
from threads.models import (
    Attachment,
    Direction,
    EmailThread,
    InboundMail,
    Message,
    MessageStatus,
    Origin,
    Run,
    RunKind,
    RunStatus,
)
from threads.models.message import OUT_IN_THE_WORLD

PERIOD = timedelta(hours=1)
REMEMBERED = timedelta(hours=24)
REMEMBERED_MAILS = 5
PACE = timedelta(seconds=60)
QUICK_MAILS = 3

CODES = {
    "thread": "too_many_in_thread",
    "correspondent": "too_many_for_correspondent",
    "domain": "too_many_for_domain",
    "persona": "too_many_for_persona",
}


def objection(message: Message, *, waived: Collection[str] = ()) -> str:
    """Why an unsaved inbound mail is not answered by itself; "" when nothing speaks against it.

    `waived` are the reasons that a person has set aside.
    """
    return next((reason for reason in _objections(message) if reason not in waived), "")


def is_reached(thread: EmailThread) -> bool:
    """True when the persona has given as many automatic mails as it may: what its tools write waits for a person."""
    limits = conf.load().governor
    counted = _answers(Message(persona=thread.persona, thread=thread), thread.correspondent)
    return any(counted[code] >= limits[name] for name, code in CODES.items())


def alert(inbound: InboundMail, reason: str) -> None:
    """Tell the operators that a limit was reached; the other rules stop one conversation and need no haste."""
    if reason in CODES.values() and inbound.persona is not None:
        alerts.tell_operators(
            inbound,
            f"The persona {inbound.persona} has given as many automatic answers as an hour may have ({reason}).\n"
            f"Its further mail is quarantined, from inbound mail {inbound.pk} on. Look whether two mail systems\n"
            "answer each other; mail of people can be released in the admin.",
        )


def _objections(message: Message) -> Iterator[str]:
    who = policy.correspondent_of(message).address
    if _is_near_duplicate(message, who):
        yield "near_duplicate"
    if _is_ping_pong(message):
        yield "ping_pong"
    counted, limits = _answers(message, who), conf.load().governor
    yield from (code for name, code in CODES.items() if counted[code] >= limits[name])


def _answers(message: Message, who: str) -> dict[str, int]:
    """The persona's automatic mails of the last hour and those that its queued runs will write, by the codes."""
    mails = Message.objects.filter(
        persona=message.persona,
        direction=Direction.OUTBOUND,
        status__in=OUT_IN_THE_WORLD,
        origin__in=(Origin.ANSWER, Origin.TOOL),
        received_at__gte=timezone.now() - PERIOD,
    )
    runs = Run.objects.filter(
        persona=message.persona,
        kind=RunKind.REPLY,
        status__in=(RunStatus.QUEUED, RunStatus.RUNNING),  # one that waits has a person looking at it
        thread__paused_at__isnull=True,
        thread__reply_mode__in=("", ReplyMode.AUTO),
    )
    sent = mails.aggregate(**_counts(message.thread, who, asked_by="answers__from_address"))
    coming = runs.aggregate(**_counts(message.thread, who, asked_by="message__from_address"))
    return {code: sent[code] + coming[code] for code in CODES.values()}


def _counts(thread: EmailThread, who: str, *, asked_by: str) -> Mapping[str, Any]:
    """An answer is one to a correspondent when they wrote the mail, or when the thread is theirs."""
    domain = "@" + who.rpartition("@")[2]
    root = _root(thread)
    return {
        CODES["thread"]: Count("pk", filter=Q(thread=root) | Q(thread__counted_with=root)),
        CODES["correspondent"]: Count("pk", filter=Q(**{asked_by: who}) | Q(thread__correspondent=who)),
        CODES["domain"]: Count(
            "pk", filter=Q(**{f"{asked_by}__endswith": domain}) | Q(thread__correspondent__endswith=domain)
        ),
        CODES["persona"]: Count("pk"),
    }


def _root(thread: EmailThread) -> int:
    """The id under which a thread counts; 0 for a new one that names none of ours."""
    return thread.counted_with_id or thread.pk or 0


def _is_near_duplicate(message: Message, who: str) -> bool:
    """Equal, numbers and blanks apart, to one of the last mails of this thread or of this sender.

    Threads that count together are one: a robot may answer ours from another address each time. The files are part
    of what a mail says: a scanner sends the same words with each page.
    """
    related = Q(from_address=message.from_address)
    if who != message.from_address:  # a contact form writes for everybody
        related &= Q(thread__correspondent=who)
    if root := _root(message.thread):
        related |= Q(thread=root) | Q(thread__counted_with=root)
    recent = Message.objects.filter(
        related,
        persona=message.persona,
        direction=Direction.INBOUND,
        received_at__gte=timezone.now() - REMEMBERED,
    ).order_by("-received_at", "-pk")
    earlier = list(recent.only("subject", "readable_body")[:REMEMBERED_MAILS])
    files = _files(earlier)
    said = _folded(message), {item.sha256 for item in message.unsaved_files}
    return any(said == (_folded(one), files.get(one.pk, set())) for one in earlier)


def _files(messages: Collection[Message]) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    rows = Attachment.objects.filter(message__in=[message.pk for message in messages])
    for message_id, sha256 in rows.values_list("message_id", "sha256"):
        found.setdefault(message_id, set()).add(sha256)
    return found


def _folded(message: Message) -> str:
    """What the mail says, in lower case, digits as 0, blanks as one; a mail without text says its subject."""
    return re.sub(r"\d", "0", " ".join((message.readable_body.strip() or message.subject).lower().split()))


def _is_ping_pong(message: Message) -> bool:
    """Three mails in a row in one thread, each right after a mail of ours and less than a minute later."""
    if message.thread.pk is None:
        return False
    placed = Message.objects.filter(thread=message.thread, sequence__isnull=False).order_by("-sequence")
    rows = placed.values_list("direction", "status", "received_at", "sent_at")[: 2 * QUICK_MAILS - 1]
    moments = [message.received_at, *(_moment(*row, outbound=not place % 2) for place, row in enumerate(rows))]
    if len(moments) < 2 * QUICK_MAILS or None in moments:
        return False
    pairs = zip(moments[::2], moments[1::2], strict=True)
    return all(theirs and ours and abs(theirs - ours) < PACE for theirs, ours in pairs)


def _moment(
    direction: str, status: str, received_at: datetime, sent_at: datetime | None, *, outbound: bool
) -> datetime | None:
    """When a mail came or left; None when it is not of the wanted direction, or has not left."""
    if (direction == Direction.OUTBOUND) != outbound:
        return None
    if not outbound:
        return received_at
    return sent_at if status == MessageStatus.SENT else None
