"""What `offline:echo` says: in plain words, what it was sent. No clock and no chance in it."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

SHOWN_CHARACTERS = 300

_FENCED = re.compile(r"<untrusted-text[^>]*>\n(.*?)\n</untrusted-text>", re.DOTALL)
_FILE = re.compile(r"^(?:- |File |Picture |Document )(.+? \([^()\n]*, id [0-9a-f-]{36}[^()\n]*\))", re.MULTILINE)


def echo(messages: Sequence[Mapping[str, Any]]) -> str:
    """The answer to a list of Chat Completions messages."""
    system = [_text(message) for message in messages if message["role"] == "system"]
    turns = [message for message in messages if message["role"] in ("user", "assistant")]
    at = max((place for place, turn in enumerate(turns) if turn["role"] == "user"), default=len(turns))
    last: Mapping[str, Any] = turns[at] if at < len(turns) else {"content": ""}
    earlier = [turn for turn in turns[:at] if _text(turn)]
    paragraphs = [
        "I am the offline model `offline:echo`. No language model has read your mail.",
        _told(system, last),
        _received(last),
        _documents(last),
        _earlier(earlier),
    ]
    return "\n\n".join(filter(None, paragraphs))


def _told(system: Sequence[str], last: Mapping[str, Any]) -> str:
    first = next((line.strip() for text in system for line in text.splitlines() if line.strip()), "")
    if first:
        return f'I was told: "{first}"'
    return f"I answer for {_header(_text(last), 'To') or 'a persona without instructions'}."


def _received(last: Mapping[str, Any]) -> str:
    text = _text(last)
    sender, subject = _header(text, "From"), _header(text, "Subject")
    if not sender:
        return f'I was asked: "{_shortened(text)}"'
    body = _body(text)
    quoted = f': "{_shortened(body)}"' if body else ", without a text."
    return f'I received a mail from {sender} with the subject "{subject}"{quoted}'


def _body(text: str) -> str:
    """What stands in the fence behind the header lines; a fence before them is a document's."""
    unfenced = _FENCED.sub(lambda fence: "\n" * len(fence[0]), text)
    headers = re.search(r"^From: ", unfenced, re.MULTILINE)
    start = headers.start() if headers else 0
    return next((fence[1] for fence in _FENCED.finditer(text) if fence.start() > start), "")


def _documents(last: Mapping[str, Any]) -> str:
    named = list(dict.fromkeys(_FILE.findall(_FENCED.sub("", _text(last)))))
    parts = last["content"] if isinstance(last["content"], list) else []
    shown = sum(part["type"] != "text" for part in parts)
    if not named and not shown:
        return "It came without documents."
    lines = "\n".join(f"- {name}" for name in named)
    return f"Documents that came with it ({shown} of them shown to me as files):\n\n{lines}"


def _earlier(turns: Sequence[Mapping[str, Any]]) -> str:
    if not turns:
        return "I was shown no earlier mails of this thread."
    mine = sum(turn["role"] == "assistant" for turn in turns)
    return f"I was also shown {len(turns)} earlier turns of this thread, {mine} of them my own."


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n\n".join(part["text"] for part in content if part["type"] == "text")


def _header(text: str, name: str) -> str:
    """A header line's value. What stands in a fence is a stranger's text, whatever it looks like."""
    found = re.search(rf"^{name}: (.*)$", _FENCED.sub("", text), re.MULTILINE)
    return found[1].strip() if found else ""


def _shortened(text: str) -> str:
    folded = " ".join(text.split())
    return folded if len(folded) <= SHOWN_CHARACTERS else folded[:SHOWN_CHARACTERS] + "..."
