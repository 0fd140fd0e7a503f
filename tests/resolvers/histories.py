"""Reading the history of a stored thread, and what must hold for it."""

from typing import Any

from protege.context import Context
from protege.messages import ModelMessage, TracedMessage
from resolvers import ResolverChain
from resolvers.builtin import ThreadHistoryResolver
from tests.factories import OutboundFactory
from threads.models import Message


def traced(current: Message, **options: Any) -> list[TracedMessage]:
    context = Context(persona=current.persona, message=current)
    return list(ResolverChain().use(ThreadHistoryResolver, **options).trace(context))


def history(current: Message, **options: Any) -> list[ModelMessage]:
    return [item.message for item in traced(current, **options)]


def sources(current: Message, **options: Any) -> list[tuple[str, ...]]:
    return [item.sources for item in traced(current, **options)]


def labels(*rows: Any) -> list[tuple[str, ...]]:
    """The sources of a list of turns: mails, tool uses, and tuples of tool uses for the turn that called them."""
    kind = {"Message": "message", "ToolUse": "tool_use"}
    groups = [row if isinstance(row, tuple) else (row,) for row in rows]
    return [tuple(f"{kind[type(row).__name__]}:{row.pk}" for row in group) for group in groups]


def assert_paired(messages: list[ModelMessage]) -> None:
    """Every call is answered right after it, once, in order, and no answer stands elsewhere."""
    open_calls: list[str] = []
    for message in messages:
        if message.role == "tool":
            assert open_calls
            assert message.tool_call_id == open_calls.pop(0)
            assert message.content
        else:
            assert not open_calls
            open_calls = [call.id for call in message.tool_calls]
            assert len(set(open_calls)) == len(open_calls)
    assert not open_calls


def answer(mail: Message, **fields: Any) -> Message:
    outbound: Message = OutboundFactory(thread=mail.thread, answers=mail, **fields)
    return outbound
