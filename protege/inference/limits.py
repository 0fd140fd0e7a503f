"""How much work one run may make."""

import time
from dataclasses import dataclass, field

from protege.conf import Config
from protege.exceptions import RunRefusedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Model requests, tool calls and seconds of a run, and the seconds that one request may take."""

    requests: int = 10
    tool_calls: int = 30
    seconds: float = 600
    request_seconds: float = 120

    @classmethod
    def from_config(cls, config: Config) -> "Limits":
        return cls(
            requests=config.request_limit,
            tool_calls=config.tool_call_limit,
            seconds=config.run_seconds,
            request_seconds=config.request_seconds,
        )


@dataclass(slots=True)
class Spent:
    """What a run has used so far, held against its limits."""

    limits: Limits
    requests: int = 0
    tool_calls: int = 0
    turned_down: bool = False
    """True once a call was turned down: the model has one more request, in which to answer without calling."""
    started: float = field(default_factory=time.monotonic)

    def next_request(self) -> float:
        """Count a request and return the seconds that it may take; `RunRefusedError` when nothing is left."""
        if self.requests >= self.limits.requests:
            raise RunRefusedError(
                f"The run has made the {self.limits.requests} model requests that it may make.", code="request_limit"
            )
        left = self.limits.seconds - (time.monotonic() - self.started)
        if left <= 0:
            raise RunRefusedError(
                f"The run has taken the {self.limits.seconds:g} seconds that it may take.", code="time_limit"
            )
        self.requests += 1
        return min(left, self.limits.request_seconds)

    def may_call(self) -> bool:
        """Count a tool call; False when there is none left."""
        if self.tool_calls >= self.limits.tool_calls:
            self.turned_down = True
            return False
        self.tool_calls += 1
        return True
