"""What comes back from a model."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from protege.messages import ModelMessage, Role, ToolCall


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
    """A tool call as it arrived; `arguments` is None when the text was no JSON object."""

    id: str
    name: str
    raw_arguments: str
    arguments: Mapping[str, Any] | None

    @classmethod
    def parse(cls, *, id: str, name: str, raw_arguments: str) -> "RequestedCall":
        try:
            arguments = json.loads(raw_arguments or "{}", parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            arguments = None
        return cls(
            id=id,
            name=name,
            raw_arguments=raw_arguments,
            arguments=arguments if isinstance(arguments, dict) else None,
        )

    def to_tool_call(self) -> ToolCall:
        """The call for the next request. Arguments that were no JSON stay as text beside valid JSON."""
        arguments = {"invalid_arguments": self.raw_arguments} if self.arguments is None else self.arguments
        return ToolCall(self.id, self.name, arguments)


def _refuse_constant(name: str) -> Any:
    """NaN and Infinity are no JSON, and no database stores them."""
    raise ValueError(name)


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
