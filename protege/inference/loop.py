"""Request, model, tool calls, results, request ... answer. Every call is answered, whatever it was.

The loop knows no tables: the caller's journal writes down what happens, and may stop the loop by raising.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Protocol

from protege.conf import Config
from protege.context import Context
from protege.exceptions import RunRefusedError
from protege.inference.adapter import send
from protege.inference.limits import Limits, Spent
from protege.inference.replies import Reply, RequestedCall, Usage, total_cost
from protege.inference.request import Request
from protege.messages import ModelMessage, Role, told_apart
from protege.toolkit import Tool, ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStart:
    """What the journal says before a tool runs: its key, and a result instead of running it, or None."""

    idempotency_key: str
    refusal: ToolResult | None = None


class Journal(Protocol):
    """The caller's record of a run; any method may raise `LeaseLostError`, and the loop stops there."""

    def before_request(self, turn: int, seconds: float) -> None:
        """A request is about to be made, and may take `seconds`."""

    def posted(self, turn: int, body: bytes) -> None:
        """These bytes are leaving."""

    def responded(self, turn: int, reply: Reply) -> None:
        """The model has answered, which has cost what `reply` says."""

    def started(self, turn: int, position: int, call: RequestedCall) -> ToolStart:
        """A call is about to be made."""

    def finished(self, turn: int, position: int, result: ToolResult) -> ToolResult:
        """Store a result; what is returned is what the model reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The closing text of a run, possibly empty, and what it took; `cost` is None when any part is unpriced."""

    text: str
    requests: int
    tool_calls: int
    usage: Usage
    cost: Decimal | None
    currency: str


def run_loop(
    request: Request,
    *,
    model: str,
    max_tokens: int,
    context: Context,
    config: Config,
    limits: Limits,
    journal: Journal,
    previous: int = 0,
) -> Answer:
    """Ask the model until it answers without calling a tool.

    `previous` is the number of turns that the journal holds already. Raises `ModelError` for a request that failed,
    `RunRefusedError` when a limit is reached (`request_limit`, `time_limit`, and `tool_limit` when the model calls
    on after it was told that no call is left), when the provider's filter stopped the answer (`filtered`), or when it
    was cut off by its length (`answer_truncated`): of a cut answer the calls are not made either, as their arguments
    may be cut. An answer without a text is returned as such, since a tool may have sent the mail already: whether it
    will do is for the caller to say.
    """
    spent = Spent(limits)
    messages = list(request.messages)
    replies: list[Reply] = []
    turn = previous
    while True:
        reply = _ask(Request(tuple(messages), request.tools), turn, spent, model, max_tokens, config, journal)
        replies.append(reply)
        if not reply.tool_calls:
            return _answer(reply, replies, spent)
        if spent.turned_down:
            raise RunRefusedError(
                f"The run has made the {limits.tool_calls} tool calls that it may make, and the model calls on.",
                code="tool_limit",
            )
        messages += _round(reply, turn, request.tools, context, spent, journal)
        turn += 1


def _ask(
    request: Request, turn: int, spent: Spent, model: str, max_tokens: int, config: Config, journal: Journal
) -> Reply:
    seconds = spent.next_request()
    journal.before_request(turn, seconds)
    reply = send(
        request,
        model=model,
        max_tokens=max_tokens,
        config=config,
        timeout=seconds,
        observe=lambda body: journal.posted(turn, body),
    )
    names = told_apart(call.id for call in reply.tool_calls)
    calls = [replace(call, id=name) for call, name in zip(reply.tool_calls, names, strict=True)]
    reply = replace(reply, tool_calls=tuple(calls))
    journal.responded(turn, reply)
    if reply.finish_reason == "content_filter":
        raise RunRefusedError("The provider's filter stopped the answer; a part is no answer.", code="filtered")
    if reply.finish_reason == "length":
        raise RunRefusedError(
            f"The answer was cut off at {max_tokens} tokens. Raise the persona's max_output_tokens.",
            code="answer_truncated",
        )
    return reply


def _answer(reply: Reply, replies: list[Reply], spent: Spent) -> Answer:
    cost = total_cost(replies)
    return Answer(
        text=reply.text,
        requests=spent.requests,
        tool_calls=spent.tool_calls,
        usage=sum((each.usage for each in replies), Usage()),
        cost=cost,
        currency=reply.currency if cost is not None else "",
    )


def _round(
    reply: Reply, turn: int, tools: Iterable[Tool], context: Context, spent: Spent, journal: Journal
) -> list[ModelMessage]:
    """The turn with the calls, and one result for each, in the order of the calls."""
    by_name = {tool.name: tool for tool in tools}
    messages = [reply.message]
    for position, call in enumerate(reply.tool_calls):
        start = journal.started(turn, position, call)
        result = start.refusal or _call(call, by_name, replace(context, idempotency_key=start.idempotency_key), spent)
        stored = journal.finished(turn, position, result)
        messages.append(ModelMessage(Role.TOOL, stored.text(), tool_call_id=call.id))
    return messages


def _call(call: RequestedCall, tools: dict[str, Tool], context: Context, spent: Spent) -> ToolResult:
    """One result, whatever is wrong with the call."""
    if not spent.may_call():
        return _failure("tool_limit", "No tool calls are left in this run. Answer with what you know.")
    tool = tools.get(call.name)
    if tool is None:
        known = ", ".join(tools) or "none"
        return _failure("unknown_tool", f"There is no tool {call.name!r}. Available: {known}.")
    if call.arguments is None:
        return _failure("bad_arguments", "The arguments are no JSON object. Call again with a JSON object.", retry=True)
    return tool.call(context, call.arguments)


def _failure(code: str, text: str, *, retry: bool = False) -> ToolResult:
    return ToolResult(outcome="retry" if retry else "failure", value=text, code=code)
