"""A thread as people read it: mails in the order they came and went, with the runs and tool calls between them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import Case, F, Q, When
from django.db.models.functions import Coalesce

from threads.admin import showing
from threads.models import Attachment, EmailThread, Message, Run, ToolUse

PAGE_SIZE = 50

COLUMNS = (
    "thread_id", "sequence", "direction", "status", "origin", "answers_id", "run_id", "from_address", "from_name",
    "to", "cc", "subject", "readable_body", "sent_at", "received_at", "trust", "last_code", "warnings",
)  # fmt: skip
FILE_COLUMNS = ("message_id", "filename", "content_type", "size", "inline", "damaged", "public_id")
RUN_COLUMNS = (
    "message_id", "kind", "status", "code", "model", "input_tokens", "output_tokens", "cached_tokens", "cost",
    "currency",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One tool call of a round."""

    name: str
    status: str
    arguments: str
    result: str


@dataclass(slots=True, kw_only=True)
class Entry:
    """One mail of the page, with what belongs to it. `rounds_before` are those of a run that no mail started."""

    message: Message
    files: list[Attachment] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    rounds_before: list[list[Call]] = field(default_factory=list)
    rounds: list[list[Call]] = field(default_factory=list)

    @property
    def sender(self) -> str:
        return showing.address(self.message.from_name, self.message.from_address) or "-"

    @property
    def recipients(self) -> str:
        return showing.addresses([*self.message.to, *self.message.cc])

    @property
    def subject(self) -> str:
        return showing.line(self.message.subject, 300)

    @property
    def body(self) -> str:
        return showing.text_block(self.message.readable_body.strip(), showing.BODY_LIMIT)

    @property
    def when(self) -> Any:
        return self.message.received_at if self.message.is_inbound else self.message.sent_at or self.message.received_at

    @property
    def is_pending(self) -> bool:
        """True for a mail that nobody has been sent."""
        return self.message.sequence is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """One page of a thread; the last page is the newest."""

    entries: Sequence[Entry]
    page: Page[Any]


def transcript(thread: EmailThread, number: str | None) -> Transcript:
    """The page called `number`, without one the newest. The number of queries does not depend on the thread."""
    pages = Paginator(_in_order(thread), PAGE_SIZE)
    page = pages.get_page(number or pages.num_pages)
    entries = [Entry(message=message) for message in page.object_list]
    _add_files(entries)
    _add_runs(entries)
    _add_rounds(entries)
    return Transcript(entries=entries, page=page)


def _in_order(thread: EmailThread) -> Any:
    """By sequence; what has none yet, such as a draft, stands behind the mail that it answers, else at the end."""
    place = Coalesce("sequence", "answers__sequence", F("thread__last_sequence") + 1)
    pending = Case(When(sequence__isnull=True, then=1), default=0)
    rows = Message.objects.filter(thread=thread).annotate(place=place, pending=pending)
    return rows.order_by("place", "pending", "pk").only(*COLUMNS)


def _add_files(entries: Sequence[Entry]) -> None:
    by_message = {entry.message.pk: entry for entry in entries}
    for file in Attachment.objects.filter(message__in=by_message).only(*FILE_COLUMNS).order_by("pk"):
        file.filename = showing.line(file.filename, 180)
        by_message[file.message_id].files.append(file)


def _add_runs(entries: Sequence[Entry]) -> None:
    by_message = {entry.message.pk: entry for entry in entries}
    for run in Run.objects.filter(message__in=by_message).only(*RUN_COLUMNS).order_by("pk"):
        if run.message_id is not None:
            by_message[run.message_id].runs.append(run)


def _add_rounds(entries: Sequence[Entry]) -> None:
    by_message = {entry.message.pk: entry for entry in entries}
    first_of_run: dict[int, Entry] = {}
    for entry in entries:
        if entry.message.run_id is not None and not entry.message.is_inbound:
            first_of_run.setdefault(entry.message.run_id, entry)
    uses = ToolUse.objects.filter(Q(message__in=by_message) | Q(message__isnull=True, run__in=first_of_run))
    for _, together in groupby(uses.order_by("run_id", "turn_index", "position"), key=_round):
        calls = list(together)
        trigger = calls[0].message_id
        if trigger is not None:
            by_message[trigger].rounds.append(_calls(calls))
        else:
            first_of_run[calls[0].run_id].rounds_before.append(_calls(calls))


def _round(use: ToolUse) -> tuple[int, int]:
    return use.run_id, use.turn_index


def _calls(uses: Iterable[ToolUse]) -> list[Call]:
    return [
        Call(
            name=showing.line(use.name),
            status=use.get_status_display(),
            arguments=showing.readable_json(use.raw_input or use.input),
            result=showing.readable_json(use.replay_result(showing.BODY_LIMIT)),
        )
        for use in uses
    ]
