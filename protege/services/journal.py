"""What the loop does, written into the run's rows as it happens, under the run's fencing token."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from protege.context import Context
from protege.exceptions import LeaseLostError, ToolFailure, describe
from protege.inference.loop import ToolStart
from protege.inference.replies import Reply, RequestedCall, total_cost
from protege.inference.wire import wire_sha256
from protege.services import run_life
from protege.toolkit import Tool, ToolResult
from protege.untrusted import storable
from threads.models import Run, ToolUse, ToolUseStatus

_STATUS = {"success": ToolUseStatus.OK, "failure": ToolUseStatus.ERROR, "retry": ToolUseStatus.ERROR}


class RunJournal:
    """The database side of `protege.inference.loop.Journal`; every method raises `LeaseLostError` when taken over."""

    def __init__(self, run: Run, context: Context, tools: Sequence[Tool], *, first_turn: int = 0) -> None:
        self.run = run
        self.first_turn = first_turn
        self.context = context
        self.tools = {tool.name: tool for tool in tools}
        self.replies: list[Reply] = []

    def before_request(self, turn: int, seconds: float) -> None:
        run_life.renew(self.run, seconds)

    def posted(self, turn: int, body: bytes) -> None:
        """Keep the hash of the first body: it is what the preview can be held against."""
        if not self.replies and turn == self.first_turn:
            run_life.write(self.run, wire_sha256=wire_sha256(body))

    def responded(self, turn: int, reply: Reply) -> None:
        self.replies.append(reply)
        cost = total_cost(self.replies)
        usage: dict[str, Any] = {
            "cost": cost,
            "currency": reply.currency if cost is not None else "",
            "input_tokens": F("input_tokens") + reply.usage.input_tokens,
            "output_tokens": F("output_tokens") + reply.usage.output_tokens,
            "cached_tokens": F("cached_tokens") + reply.usage.cached_tokens,
        }
        run_life.write(self.run, **usage)

    def started(self, turn: int, position: int, call: RequestedCall) -> ToolStart:
        """A row stands before the tool runs, so that a crash leaves a trace of the call; the lease is renewed."""
        with transaction.atomic():
            run_life.renew(self.run, self.context.config.tool_seconds)
            ToolUse.objects.create(
                run=self.run,
                message=self.run.message,
                turn_index=turn,
                position=position,
                tool_call_id=call.id[:255],
                name=call.name[:255],
                input=storable(call.arguments or {}),
                raw_input="" if call.arguments is not None else storable(call.raw_arguments),
                status=ToolUseStatus.STARTED,
                started_at=Now(),
            )
        return ToolStart(idempotency_key=f"{self.run.pk}:{turn}:{position}", refusal=self._refusal(call.name))

    def finished(self, turn: int, position: int, result: ToolResult) -> ToolResult:
        """Store the result together with what the tool writes; what fails in that moment becomes the result."""
        try:
            return self._store(turn, position, result)
        except LeaseLostError:
            raise
        except ToolFailure as failure:
            return self._store(turn, position, ToolResult(outcome="failure", value=str(failure), code=failure.code))
        except Exception as error:  # a tool is the host's code, and so is what it does while it is recorded
            self.context.logger.warning("the record of a call raised %s", describe(error))
            text = f"The call could not be recorded ({type(error).__name__}). It did nothing."
            return self._store(turn, position, ToolResult(outcome="failure", value=text, code="exception"))

    def _store(self, turn: int, position: int, result: ToolResult) -> ToolResult:
        with transaction.atomic():
            run_life.write(self.run, status=self.run.status)
            if result.on_record is not None:
                result.on_record()
            status = ToolUseStatus.REFUSED if result.code == "denied" else _STATUS[result.outcome]
            stored = ToolUse.objects.filter(run=self.run, turn_index=turn, position=position).update(
                status=status, result=storable(result.text()), finished_at=Now()
            )
            if stored != 1:
                raise LeaseLostError(f"The call {turn}:{position} of run {self.run.pk} is no longer ours.")
        return replace(result, on_record=None)

    def _refusal(self, name: str) -> ToolResult | None:
        """The persona's policy. A call that a person would have to decide is refused while nobody can be asked."""
        policy = self.context.persona.tool_policies.get(name, "allow")
        if name not in self.tools or policy == "allow":
            return None
        text = f"The tool {name} may not be used here: the policy of this persona is {policy!r}."
        return ToolResult(outcome="failure", value=text, code="denied")
