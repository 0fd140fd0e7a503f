"""The loop, and a journal that keeps a list where the real one keeps rows."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from protege.conf import Config
from protege.context import Context
from protege.exceptions import LeaseLostError
from protege.inference import build_request
from protege.inference.limits import Limits
from protege.inference.loop import Answer, ToolStart, run_loop
from protege.inference.replies import Reply, RequestedCall
from protege.testing import Call, Calls, Script
from protege.toolkit import Tool, ToolResult
from tests.factories import PersonaFactory
from tests.toolbox import LookUp

MAX_TOKENS = 50


ROUND = Calls(Call("look_up", {"order": 1}, id="a"), Call("look_up", {"order": 2}, id="b"), text="I look.")


def results(script: Script, request: int = 1) -> list[tuple[str, Any]]:
    """The ids and results that stand in a later request."""
    messages = script.requests[request]["messages"]
    return [(item["tool_call_id"], json.loads(item["content"])) for item in messages if item["role"] == "tool"]


class ListJournal:
    """`lines` are the names of what happened, with turn and position; the rest is what came with it."""

    def __init__(
        self,
        *,
        refuse: str = "",
        lost_at: str = "",
        rewrite: Callable[[ToolResult], ToolResult] | None = None,
    ) -> None:
        self.lines: list[str] = []
        self.seconds: list[float] = []
        self.bodies: list[bytes] = []
        self.replies: list[Reply] = []
        self.calls: list[RequestedCall] = []
        self.results: list[ToolResult] = []
        self.refuse = refuse
        self.lost_at = lost_at
        self.rewrite = rewrite

    def before_request(self, turn: int, seconds: float) -> None:
        self.seconds.append(seconds)
        self._write("before_request", turn)

    def posted(self, turn: int, body: bytes) -> None:
        self.bodies.append(body)
        self._write("posted", turn)

    def responded(self, turn: int, reply: Reply) -> None:
        self.replies.append(reply)
        self._write("responded", turn)

    def started(self, turn: int, position: int, call: RequestedCall) -> ToolStart:
        self.calls.append(call)
        self._write("started", turn, position)
        denied = ToolResult(outcome="failure", value="The policy says no.", code="denied")
        return ToolStart(idempotency_key=f"9:{turn}:{position}", refusal=denied if call.name == self.refuse else None)

    def finished(self, turn: int, position: int, result: ToolResult) -> ToolResult:
        self.results.append(result)
        self._write("finished", turn, position)
        return self.rewrite(result) if self.rewrite else replace(result, on_record=None)

    def _write(self, what: str, *at: int) -> None:
        self.lines.append(" ".join([what, *map(str, at)]))
        if what == self.lost_at:
            raise LeaseLostError("Another worker has it.")


class Break(Tool):
    name = "break_down"
    description = "Fails."

    def __init__(self) -> None:
        self.contexts: list[Context] = []

    def run(self, context: Context) -> Any:
        self.contexts.append(context)
        raise ZeroDivisionError("the customer's secret text")


def looped(
    journal: ListJournal,
    *,
    tools: Sequence[Tool] | None = None,
    limits: Limits | None = None,
    model: str = "offline:scripted",
    **options: Any,
) -> Answer:
    """Run the loop for one question; the script that runs says what the model answers."""
    tools = [LookUp(), Break()] if tools is None else tools
    options = {"config": Config(), "max_tokens": MAX_TOKENS, **options}
    return run_loop(
        build_request("Where is order 77?", tools=tools),
        model=model,
        context=Context(persona=PersonaFactory.build()),
        limits=limits or Limits(),
        journal=journal,
        **options,
    )
