"""A preview as text for a terminal."""

import json
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

WIDTH = 100
SHOWN_LINES = 14
"""Lines of one message that a table shows; the JSON form has them all."""


def step_table(steps: Sequence[Mapping[str, Any]]) -> str:
    """One line a step of the chain."""
    lines = ["step  resolver              messages  tokens  queries"]
    for step in steps:
        state = "" if step["enabled"] else "  (disabled)"
        if step["error"]:
            state = f"  {step['error']}"
        lines.append(
            f"{step['position']:>4}  {step['resolver']:<20}  {step['messages']:>8}  {step['tokens']:>6}"
            f"  {step['queries']:>7}{state}"
        )
    return "\n".join([*lines, ""])


def message_table(messages: Sequence[Mapping[str, Any]]) -> str:
    """Every message under a line with its role, its step and its tokens."""
    return "\n".join(_message(number, message) for number, message in enumerate(messages, start=1))


def _message(number: int, message: Mapping[str, Any]) -> str:
    said_by = "the engine" if message["step"] is None else f"step {message['step']}"
    head = f"-- {number}. {message['role']}, said by {said_by}, {message['tokens']} tokens "
    return "\n".join([head.ljust(WIDTH, "-"), *_body(message), ""])


def _body(message: Mapping[str, Any]) -> list[str]:
    lines = [line for part in _texts(message) for line in _wrapped(part)]
    hidden = len(lines) - SHOWN_LINES
    return lines if hidden <= 0 else [*lines[:SHOWN_LINES], f"   ... {hidden} more lines"]


def _texts(message: Mapping[str, Any]) -> list[str]:
    content = message["content"]
    texts = [content] if isinstance(content, str) else [_part(part) for part in content]
    return [*texts, *(f"calls {call['name']} {json.dumps(call['input'])}" for call in message["tool_calls"])]


def _part(part: Mapping[str, Any]) -> str:
    if part["type"] == "text":
        return str(part["text"])
    return f"[{part['type']}: {part['media_type']}, {part.get('bytes', '?')} bytes]"


def _wrapped(text: str) -> list[str]:
    wrapped = (textwrap.wrap(line, WIDTH - 3, drop_whitespace=False) or [""] for line in text.splitlines())
    return [f"   {line}" for lines in wrapped for line in lines]
