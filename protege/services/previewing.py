"""The preview: a prepared request, laid open, with the exact body that would be posted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from protege.exceptions import ModelError
from protege.inference.adapter import capture
from protege.inference.tokens import MARGIN, estimate_message, estimate_text
from protege.inference.wire import Wire, redact_wire
from protege.messages import DocumentPart, ImagePart, ModelMessage, TextPart, TracedMessage
from protege.services.preparing import Prepared
from protege.toolkit import canonical_json
from resolvers.chain import StepOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What would be sent; `wire` is None when the chain failed, as nothing would be."""

    prepared: Prepared
    wire: Wire | None

    @property
    def is_complete(self) -> bool:
        """False when a step failed, or when a run would be refused before the model is called."""
        return self.prepared.refusal is None

    def to_dict(self, *, full: bool = False) -> dict[str, Any]:
        """The preview as JSON; the bytes of files stand as type, size and hash unless `full`."""
        prepared = self.prepared
        tokens = [estimate_message(traced.message) for traced in prepared.traced]
        return {
            "persona": prepared.persona.pk,
            "trigger": prepared.trigger,
            "model": prepared.model,
            "messages": [
                _message(traced, count, full=full) for traced, count in zip(prepared.traced, tokens, strict=True)
            ],
            "left_out": [],
            "steps": [_step(outcome, self._said_by(outcome, tokens)) for outcome in prepared.outcomes],
            "tokens": {
                "estimated": self._estimated(tokens),
                "window": prepared.window,
                "reserved": prepared.max_output_tokens,
            },
            "notices": [notice.to_dict() for notice in prepared.notices] + self._refusal(),
            "wire": None if self.wire is None else _wire(self.wire, full=full),
            "comparison": None,
        }

    def _said_by(self, outcome: StepOutcome, tokens: Sequence[int]) -> int:
        """Tokens of what a step said; `tokens` are those of the messages."""
        counted = zip(self.prepared.traced, tokens, strict=True)
        return sum(count for traced, count in counted if traced.step == outcome.position)

    def _estimated(self, tokens: Sequence[int]) -> int:
        """Tokens of the whole request, tool schemas and a margin of a tenth included."""
        schemas = sum(estimate_text(canonical_json(tool.schema())) for tool in self.prepared.tools)
        return round((sum(tokens) + schemas) * MARGIN)

    def _refusal(self) -> list[dict[str, Any]]:
        refusal = self.prepared.refusal
        return [] if refusal is None else [{"code": refusal.code, "message": str(refusal)}]


def preview(prepared: Prepared) -> Preview:
    """Capture the body that a run with `prepared` would post first, up to the socket.

    What the model's library refuses to post is a refusal as well, for a run would end on it.
    """
    if prepared.refusal is not None:
        return Preview(prepared=prepared, wire=None)
    try:
        wire = capture(
            prepared.request,
            model=prepared.model,
            max_tokens=prepared.max_output_tokens,
            config=prepared.context.config,
        )
    except ModelError as error:
        return Preview(prepared=replace(prepared, refusal=error), wire=None)
    return Preview(prepared=prepared, wire=wire)


def _message(traced: TracedMessage, tokens: int, *, full: bool) -> dict[str, Any]:
    return {
        **traced.message.to_dict(),
        "content": _content(traced.message, full=full),
        "step": traced.step,
        "tokens": tokens,
        "kept": "whole",
        "trust": None,
        "sources": list(traced.sources),
    }


def _content(message: ModelMessage, *, full: bool) -> Any:
    if isinstance(message.content, str):
        return message.content
    return [part.to_dict() if full or isinstance(part, TextPart) else _summary(part) for part in message.parts]


def _summary(part: ImagePart | DocumentPart) -> Mapping[str, Any]:
    kind = "image" if isinstance(part, ImagePart) else "document"
    return redact_wire({"type": kind, "media_type": part.media_type, "data": part.data})


def _step(outcome: StepOutcome, tokens: int) -> dict[str, Any]:
    return {
        "position": outcome.position,
        "resolver": outcome.key,
        "label": outcome.label,
        "enabled": outcome.enabled,
        "messages": len(outcome.messages),
        "tokens": tokens,
        "milliseconds": round(outcome.milliseconds, 1),
        "queries": outcome.queries,
        "error": str(outcome.error) if outcome.error is not None else None,
    }


def _wire(wire: Wire, *, full: bool) -> dict[str, Any]:
    return {
        "provider": wire.provider,
        "method": wire.method,
        "url": wire.url,
        "body": redact_wire(wire.body, full=full),
        "sha256": wire.sha256,
    }
