"""What was written in the thread before the mail that is being answered, and which tools were called over it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from django import forms
from django.db.models import Case, F, IntegerField, Q, When
from django.db.models.functions import Coalesce

from protege.messages import ModelMessage, Role
from resolvers.base import Resolver
from resolvers.registry import register_resolver
from threads.models import Attachment, Direction, Message, MessageStatus, ToolUse
from threads.models.message import OUT_IN_THE_WORLD
from threads.rounds import rounds
from threads.status import STAFF_ANSWER

if TYPE_CHECKING:
    from protege.context import Context

# Everything that `to_llm_text`, the order and the weaving need; never headers, raw mail or HTML.
MESSAGE_COLUMNS = (
    "thread_id", "sequence", "direction", "answers_id", "run_id", "from_address", "from_name", "to", "cc", "subject",
    "readable_body", "sent_at", "received_at", "trust",
)  # fmt: skip
FILE_COLUMNS = ("message_id", "public_id", "filename", "content_type", "size", "inline", "damaged")
TOOL_COLUMNS = (
    "run_id", "message_id", "turn_index", "position", "tool_call_id", "name", "input", "raw_input", "result",
)  # fmt: skip

IN_HISTORY = (
    Q(direction=Direction.INBOUND, status=MessageStatus.RECEIVED)
    # What a colleague wrote in the persona's stead is not answered, but the persona has to know it.
    | Q(direction=Direction.INBOUND, status=MessageStatus.IGNORED, last_code=STAFF_ANSWER)
    | Q(direction=Direction.OUTBOUND, status__in=OUT_IN_THE_WORLD)
)

SLOT = Case(
    When(
        direction=Direction.OUTBOUND,
        answers__thread=F("thread"),
        then=Coalesce("answers__sequence", "sequence"),
    ),
    default=F("sequence"),
    output_field=IntegerField(),
)
"""Where a mail stands: an answer right after the mail it answers, all others where they were received or sent."""


def prior_messages(message: Message, limit: int | None) -> Sequence[Message]:
    """The most recent `limit` mails before `message`, oldest first. By sequence, never by a clock. One query."""
    rows = Message.objects.filter(IN_HISTORY, thread_id=message.thread_id).annotate(slot=SLOT)
    if message.sequence is not None:
        rows = rows.filter(slot__lt=message.sequence)
    if message.pk is not None:
        rows = rows.exclude(pk=message.pk)
    # "inbound" sorts before "outbound", so an answer follows its mail.
    newest_first = rows.only(*MESSAGE_COLUMNS).order_by("-slot", "-direction", "-sequence", "-pk")
    return list(newest_first[:limit])[::-1]


def files_of(messages: Sequence[Message]) -> dict[int, list[Attachment]]:
    """The attachments of `messages`, by message. One query, by a range of sequences instead of a list of ids."""
    files: dict[int, list[Attachment]] = defaultdict(list)
    span = _span(messages)
    found = Attachment.objects.filter(message__thread_id=messages[0].thread_id, message__sequence__range=span)
    for file in found.only(*FILE_COLUMNS).order_by("message_id", "pk"):
        files[file.message_id].append(file)
    return files


class ToolUses:
    """The calls of a stretch of history: those that a mail triggered, and those of runs without a mail."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._by_message: dict[int, list[ToolUse]] = defaultdict(list)
        self._by_run: dict[int, list[ToolUse]] = defaultdict(list)
        for use in _tool_uses(messages):
            home = self._by_run[use.run_id] if use.message_id is None else self._by_message[use.message_id]
            home.append(use)

    def triggered_by(self, message: Message) -> list[ToolUse]:
        """The calls that follow an inbound mail."""
        return self._by_message.get(message.pk, [])

    def take_before(self, message: Message) -> list[ToolUse]:
        """The calls that stand before an outbound mail; of several mails of one run, the first takes them."""
        return self._by_run.pop(message.run_id, []) if message.run_id is not None else []


def _tool_uses(messages: Sequence[Message]) -> Iterable[ToolUse]:
    """All calls of runs of any status, in (run, turn, position) order. One query."""
    thread, span = messages[0].thread_id, _span(messages)
    by_mail = Q(message__thread_id=thread, message__sequence__range=span)
    sent = Message.objects.filter(thread_id=thread, sequence__range=span, direction=Direction.OUTBOUND)
    without_mail = Q(message__isnull=True, run__in=sent.filter(run__isnull=False).values("run"))
    found = ToolUse.objects.filter(by_mail | without_mail).only(*TOOL_COLUMNS)
    return found.order_by("run_id", "turn_index", "position")


def _span(messages: Sequence[Message]) -> tuple[int, int]:
    sequences = [message.sequence or 0 for message in messages]
    return min(sequences), max(sequences)


class ThreadHistoryForm(forms.Form):
    limit = forms.IntegerField(
        required=False, min_value=0, initial=50, help_text="How many of the latest mails; empty for all."
    )
    include_tool_calls = forms.BooleanField(
        required=False, initial=True, help_text="Show the tool calls of earlier answers too."
    )


@register_resolver
class ThreadHistoryResolver(Resolver):
    """Says the thread's mails before the current one as turns, with the tool calls that were made over them.

    `limit` is the number of the most recent mails, None for all of them. Tool calls go with the mail that triggered
    them, so no limit parts a result from its call.
    """

    name = "thread_history"
    label = "Thread history"
    description = "The mails of this thread before the current one, with the tool calls made over them."
    kind = "history"
    options_form = ThreadHistoryForm

    def __init__(self, limit: int | None = 50, include_tool_calls: bool = True) -> None:
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
            raise ValueError(f"`limit` is a number of mails from 0 on, or None for all, not {limit!r}.")
        self.limit = limit
        self.include_tool_calls = include_tool_calls

    def resolve(self, context: "Context") -> list[ModelMessage] | None:
        current = context.message
        if current is None or current.thread_id is None or self.limit == 0:
            return None
        messages = prior_messages(current, self.limit)
        if not messages:
            return None
        uses = ToolUses(messages) if self.include_tool_calls else None
        return list(self._turns(messages, files_of(messages), uses)) or None

    def _turns(
        self, messages: Sequence[Message], files: dict[int, list[Attachment]], uses: ToolUses | None
    ) -> Iterator[ModelMessage]:
        """The turns in order. An exchange is everything up to and with a mail of the persona."""
        exchange = 0
        for message in messages:
            if uses is not None and not message.is_inbound:
                yield from self._rounds(uses.take_before(message), exchange)
            turn = self._turn(message, files.get(message.pk, []), exchange)
            if turn is not None:
                yield turn
            if uses is not None and message.is_inbound:
                yield from self._rounds(uses.triggered_by(message), exchange)
            if turn is not None and not message.is_inbound:
                exchange += 1

    def _turn(self, message: Message, files: Sequence[Attachment], exchange: int) -> ModelMessage | None:
        if message.says_nothing(files):
            return None
        role = Role.USER if message.is_inbound else Role.ASSISTANT
        turn = ModelMessage(role, message.to_llm_text(files))
        return self._record(turn, sources=[f"message:{message.pk}"], exchange=exchange)

    def _rounds(self, uses: Iterable[ToolUse], exchange: int) -> Iterator[ModelMessage]:
        for traced in rounds(uses):
            yield self._record(traced.message, sources=traced.sources, exchange=exchange)
