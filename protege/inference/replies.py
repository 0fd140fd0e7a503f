"""What comes back from a model."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from protege.messages import ModelMessage, Role, ToolCall
from protege.untrusted import storable

DEEPEST_ARGUMENTS = 100
"""Levels of nested arguments; the libraries between here and a provider stop at some 250."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens as the provider reports them; `input_tokens` includes those read from and written to its cache."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedCall:
    """A tool call as it arrived; `arguments` is None when the text was no JSON object that can be stored and sent."""

    id: str
    name: str
    raw_arguments: str
    arguments: Mapping[str, Any] | None

    @classmethod
    def parse(cls, *, id: str, name: str, raw_arguments: str) -> "RequestedCall":
        try:
            arguments = json.loads(raw_arguments or "{}", parse_constant=_refuse_constant, parse_float=_finite)
        except (ValueError, RecursionError):
            arguments = None
        usable = isinstance(arguments, dict) and _is_shallow(arguments, DEEPEST_ARGUMENTS)
        return cls(id=id, name=name, raw_arguments=raw_arguments, arguments=storable(arguments) if usable else None)

    def to_tool_call(self) -> ToolCall:
        """The call for the next request. Arguments that were no JSON stay as text beside valid JSON."""
        arguments = {"invalid_arguments": self.raw_arguments} if self.arguments is None else self.arguments
        return ToolCall(self.id, self.name, arguments)


def _refuse_constant(name: str) -> Any:
    """NaN and Infinity are no JSON, and no database stores them."""
    raise ValueError(name)


def _finite(literal: str) -> float:
    """1e999 is JSON, and yet it becomes Infinity, which is none."""
    number = float(literal)
    return number if math.isfinite(number) else _refuse_constant(literal)


def _is_shallow(value: Any, levels: int) -> bool:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(_is_shallow(item, levels - 1) for item in items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer of a model: text, tool calls, or both; `cost` is None when it has no known price."""

    text: str
    tool_calls: tuple[RequestedCall, ...] = ()
    usage: Usage = Usage()
    cost: Decimal | None = None
    currency: str = ""
    finish_reason: str = "stop"

    @property
    def message(self) -> ModelMessage:
        calls = [call.to_tool_call() for call in self.tool_calls]
        return ModelMessage(Role.ASSISTANT, self.text, tool_calls=calls)


def total_cost(replies: Sequence[Reply]) -> Decimal | None:
    """What `replies` cost together; None when any of them has no known price, which is not 0."""
    costs = [reply.cost for reply in replies]
    return None if None in costs else sum((cost for cost in costs if cost is not None), Decimal())
