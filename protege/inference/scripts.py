"""The script of `offline:scripted`: a queue of answers for tests, and a record of the requests it got."""

import json
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Say:
    """An answer in text; `finish="length"` is one that was cut off."""

    text: str
    finish: str = "stop"


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call; a text in place of the arguments is sent as it is, valid JSON or not."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str = ""

    def raw_arguments(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(dict(self.arguments))


@dataclass(frozen=True, slots=True)
class Calls:
    """Several tool calls in one turn, with text before them if you like."""

    calls: tuple[Call, ...]
    text: str = ""

    def __init__(self, *calls: Call, text: str = "") -> None:
        object.__setattr__(self, "calls", calls)
        object.__setattr__(self, "text", text)


@dataclass(frozen=True, slots=True)
class Fail:
    """An error answer of the provider."""

    status: int = 500
    body: Mapping[str, Any] = field(
        default_factory=lambda: {"error": {"message": "scripted failure", "code": "scripted"}}
    )


Line = Say | Call | Calls | Fail


class Script:
    """The lines that are left, and the parsed bodies of the requests so far."""

    def __init__(self, lines: tuple[Line, ...]) -> None:
        self.lines = deque(lines)
        self.requests: list[dict[str, Any]] = []

    def answer(self, body: dict[str, Any]) -> Line | None:
        """Record a request and take the next line; None when the script is used up."""
        self.requests.append(body)
        return self.lines.popleft() if self.lines else None


_running: list[Script] = []


@contextmanager
def scripted(*lines: Line) -> Iterator[Script]:
    """Let `offline:scripted` answer with these lines, in this process, for the length of a `with` block."""
    script = Script(lines)
    _running.append(script)
    try:
        yield script
    finally:
        _running.remove(script)


def running_script() -> Script | None:
    return _running[-1] if _running else None
