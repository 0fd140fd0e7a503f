"""How many tokens a text is, estimated by its letters; source: measurements kept in `TokenRate`."""

from protege.messages import ImagePart, ModelMessage, TextPart
from protege.toolkit import canonical_json

DEFAULT_RATE = 3.5
"""Characters of Latin text a token, until a model has been measured."""

MIDDLE_RATE = 2.0
WIDE_TOKENS = 1.2
MESSAGE_OVERHEAD = 4
MARGIN = 1.10
FILE_TOKENS = 1_600
DEFAULT_WINDOW = 8_192
DEFAULT_RESERVE = 4_096

_FIRST_WIDE = 0x2E80
_MIDDLE = ((0x0370, 0x03FF), (0x0400, 0x052F), (0x0590, 0x05FF), (0x0600, 0x06FF), (0x0900, 0x097F), (0x0E00, 0x0E7F))
"""Greek, Cyrillic, Hebrew, Arabic, Devanagari, Thai."""


def estimate_text(text: str, rate: float = DEFAULT_RATE) -> int:
    """Tokens of `text`, at least 1."""
    wide = sum(1 for letter in text if ord(letter) >= _FIRST_WIDE)
    middle = 0 if text.isascii() else sum(1 for letter in text if _is_middle(ord(letter)))
    return max(1, round((len(text) - wide - middle) / rate + middle / MIDDLE_RATE + wide * WIDE_TOKENS))


def estimate_message(message: ModelMessage, rate: float = DEFAULT_RATE) -> int:
    """Tokens of one message with its frame; a picture or a document counts as such, never as Base64."""
    tokens = sum(
        estimate_text(call.name + canonical_json(call.to_dict()["input"]), rate) for call in message.tool_calls
    )
    for part in message.parts:
        tokens += estimate_text(part.text, rate) if isinstance(part, TextPart) else _file_tokens(part)
    return tokens + MESSAGE_OVERHEAD


def _file_tokens(part: object) -> int:
    """A picture is one page; a PDF's pages are counted where its text is known, so here it counts as one too."""
    return FILE_TOKENS if isinstance(part, ImagePart) else FILE_TOKENS + MESSAGE_OVERHEAD


def output_reserve(window: int, wanted: int | None) -> int:
    """Tokens kept for the answer: the same number is sent to the provider as its limit."""
    return wanted or min(DEFAULT_RESERVE, window // 4)


def _is_middle(point: int) -> bool:
    return any(first <= point <= last for first, last in _MIDDLE)
