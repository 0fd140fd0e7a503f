"""Ids of tool calls as every provider takes them; what is stored keeps the id that its own provider gave."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from protege.messages import ModelMessage

_LEGAL = re.compile(r"[A-Za-z0-9_-]{1,40}")
"""The strictest of the large providers: the letters are Anthropic's, the length is OpenAI's of old."""


def with_legal_ids(messages: Iterable[ModelMessage]) -> Iterator[ModelMessage]:
    """The messages with call ids that are legal and used once in the list; a result keeps to the last call before it.

    A legal id that is new stays as it is, and what comes later in the list changes nothing before it.
    """
    sent: dict[str, str] = {}
    taken: set[str] = set()
    for message in messages:
        calls = []
        for call in message.tool_calls:
            sent[call.id] = _legal(call.id, taken)
            taken.add(sent[call.id])
            calls.append(replace(call, id=sent[call.id]))
        answered = message.tool_call_id
        yield replace(message, tool_calls=calls, tool_call_id=answered and sent.get(answered, answered))


def _legal(call_id: str, taken: set[str]) -> str:
    name = call_id if _LEGAL.fullmatch(call_id) else _hashed(call_id)
    return name if name not in taken else _hashed(f"{call_id} {len(taken)}")


def _hashed(text: str) -> str:
    return "call_" + hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]
