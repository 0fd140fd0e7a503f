"""The facts of one run, handed to every resolver and tool. Frozen: a resolver reads it and never changes it."""

import logging
import uuid
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.utils import timezone

from protege import conf
from protege.principals import Principal

if TYPE_CHECKING:
    from personas.models import Persona, Responsibility
    from threads.models import Message


class CorrelationLogger(logging.LoggerAdapter[logging.Logger]):
    """Adds the correlation id to every record, as text and as `extra`."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        correlation_id = (self.extra or {})["correlation_id"]
        kwargs["extra"] = {**(kwargs.get("extra") or {}), "correlation_id": correlation_id}
        return f"{msg} [{correlation_id}]", kwargs


def correlation_logger(correlation_id: str) -> CorrelationLogger:
    return CorrelationLogger(logging.getLogger("protege"), {"correlation_id": correlation_id})


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Everything a resolver or tool may know; built by keyword, all but `persona` have a default.

    In a reply run `message` is the mail being answered and `responsibility` is None; in a scheduled run it is the
    other way round. `now` is the run's one clock. `idempotency_key` (`run:turn:position`) is set for tools only.
    """

    persona: "Persona"
    message: "Message | None" = None
    responsibility: "Responsibility | None" = None
    now: datetime = field(default_factory=timezone.now)
    config: conf.Config = field(default_factory=conf.load)
    correlation_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    logger: CorrelationLogger = None  # type: ignore[assignment]  # filled in from the correlation id
    principal: Principal = None  # type: ignore[assignment]  # filled in from persona and message
    run_id: int | None = None
    idempotency_key: str | None = None

    def __post_init__(self) -> None:
        if timezone.is_naive(self.now):
            raise ValueError("`now` must be an aware datetime.")
        if self.logger is None:
            object.__setattr__(self, "logger", correlation_logger(self.correlation_id))
        if self.principal is None:
            object.__setattr__(self, "principal", self._acting_for())

    def _acting_for(self) -> Principal:
        sender = self.message.from_address.lower() if self.message is not None else None
        return Principal(tenant=self.persona.tenant, correspondent=sender or None, persona=self.persona.pk)
