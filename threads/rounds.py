"""Stored tool uses as the turns a model reads: per round one call turn, then one result a call."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

from protege.messages import ModelMessage, Role, TracedMessage, told_apart
from threads.models import ToolUse


def rounds(uses: Iterable[ToolUse], *, exchange: int | None = None) -> Iterator[TracedMessage]:
    """The rounds of `uses`, which come in (run, turn, position) order; never half a round.

    A call without a result gets one that says so. Two calls of a round that share a provider's id are told apart.
    """
    for _, group in groupby(uses, key=lambda use: (use.run_id, use.turn_index)):
        yield from _round(list(group), exchange)


def _round(uses: list[ToolUse], exchange: int | None) -> Iterator[TracedMessage]:
    names = told_apart(use.tool_call_id for use in uses)
    calls = [replace(use.to_tool_call(), id=name) for use, name in zip(uses, names, strict=True)]
    sources = tuple(f"tool_use:{use.pk}" for use in uses)
    yield TracedMessage(message=ModelMessage(Role.ASSISTANT, "", tool_calls=calls), sources=sources, exchange=exchange)
    for use, call, source in zip(uses, calls, sources, strict=True):
        result = ModelMessage(Role.TOOL, use.replay_result(), tool_call_id=call.id)
        yield TracedMessage(message=result, sources=(source,), exchange=exchange)
