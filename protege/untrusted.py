"""Text that strangers wrote, made safe to stand in a prompt.

A header value becomes one cleaned line. A body stands in a fence, and whatever in it looks like that fence, or is
invisible, is replaced visibly, so that nobody can write his way out of it.
"""

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

FENCE = "untrusted-text"

INVISIBLE_MARK = "�"
LOOKALIKE_MARK = "(look-alike of a fence removed)"

# Tag characters, bidirectional embeddings, overrides and isolates: they hide text from people.
_HIDING = re.compile("[\U000e0000-\U000e007f\u202a-\u202e\u2066-\u2069\u061c\u200e\u200f]")
# Zero-width characters are part of emoji and of several scripts; between ASCII characters they only split words.
_STRAY_ZERO_WIDTH = re.compile(
    "(?<=[\x00-\x7f])[\u200b\u200c\u200d\u2060\ufeff]+(?=[\x00-\x7f]|$)|^[\u200b\u2060\ufeff]+"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_LOOKALIKE = re.compile(
    r"[<＜﹤‹〈⟨《«][\s/／⁄∕]{0,4}untrusted[\s_\-‐-―−]{0,3}text[^>＞﹥›〉⟩》»\n]{0,200}[>＞﹥›〉⟩》»]?", re.IGNORECASE
)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_BLANKS = re.compile(r"\s+")


def visible(text: str) -> str:
    """`text` with invisible and control characters replaced by U+FFFD; line breaks and tabs stay."""
    text = _CONTROL.sub(INVISIBLE_MARK, text.replace("\r\n", "\n").replace("\r", "\n"))
    return _STRAY_ZERO_WIDTH.sub(INVISIBLE_MARK, _HIDING.sub(INVISIBLE_MARK, text))


def one_line(value: str, limit: int) -> str:
    """`value` as one line of at most `limit` characters, without control and invisible characters."""
    cleaned = _STRAY_ZERO_WIDTH.sub("", _HIDING.sub("", value))
    cleaned = _BLANKS.sub(" ", _CONTROL.sub(" ", cleaned)).strip()
    return cleaned if len(cleaned) <= limit else cut(cleaned, limit - 1) + "…"


def cut(text: str, limit: int) -> str:
    """The first `limit` characters of `text` at most, never splitting a joined emoji or an accent from its letter."""
    end = limit
    while 0 < end < len(text) and _continues(text, end):
        end -= 1
    return text[:end]


def _continues(text: str, index: int) -> bool:
    """True when the character at `index` belongs to the one before it."""
    joiners = "\u200d\ufe0e\ufe0f"
    return (
        text[index] in joiners
        or text[index - 1] == "\u200d"
        or unicodedata.combining(text[index]) != 0
        or ("\U0001f3fb" <= text[index] <= "\U0001f3ff")
    )


def fence(text: str, *, label: str) -> str:
    """`text` between the two lines of the fence; `label` is ours and says what it is ("body of a mail")."""
    inner = _LOOKALIKE.sub(LOOKALIKE_MARK, visible(text))
    return f'<{FENCE} what="{label}">\n{inner}\n</{FENCE}>'


def storable(value: Any) -> Any:
    """`value`, text or JSON, without NUL and lone surrogates, which PostgreSQL and UTF-8 refuse."""
    if isinstance(value, str):
        return _UNSTORABLE.sub(INVISIBLE_MARK, value)
    if isinstance(value, Mapping):
        return {storable(key): storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    return value
