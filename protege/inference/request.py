"""The request: what the model reads and what it may call."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from protege.messages import ModelMessage, Part, Role
from protege.toolkit import Tool


@dataclass(frozen=True, slots=True)
class Request:
    """An ordered list of messages and the tools that are declared with it."""

    messages: tuple[ModelMessage, ...]
    tools: tuple[Tool, ...] = ()


def build_request(
    user_content: str | Sequence[Part] | None = None,
    tools: Iterable[Tool] = (),
    context_messages: Iterable[ModelMessage] = (),
) -> Request:
    """The context messages in their order, then one trailing user message when `user_content` is not None."""
    messages = tuple(context_messages)
    if user_content is not None:
        messages = (*messages, ModelMessage(Role.USER, user_content))
    return Request(messages, tuple(tools))
