"""Encoded words in headers (RFC 2047), put into a form that the standard parser reads rightly."""

import base64
import binascii
import re
from collections.abc import Iterator

from protege.mail.charsets import codec_of, is_known

_ENCODED_WORD = re.compile(r"=\?([^?\s]{1,64})\?([bBqQ])\?([^?\s]*)\?=")


def unknown_charset(value: str) -> bool:
    """True when a raw value has an encoded word whose charset label Python does not know."""
    return any(not is_known(word[1].split("*")[0]) for word in _ENCODED_WORD.finditer(value))


def repaired(value: str) -> str:
    """`value` with known labels in its encoded words, and words joined that were cut within a character."""
    return "".join(_joined_words(value))


def _joined_words(value: str) -> Iterator[str]:
    position, pending = 0, None
    for word in _ENCODED_WORD.finditer(value):
        between = value[position : word.start()]
        charset, encoding, payload = _label(word[1]), word[2].lower(), word[3]
        position = word.end()
        joined = _joined(pending, (charset, encoding, payload)) if pending and between.isspace() else None
        if joined:
            pending = joined
            continue
        yield (_word(pending) if pending else "") + between
        pending = (charset, encoding, payload)
    yield (_word(pending) if pending else "") + value[position:]


def _label(charset: str) -> str:
    return codec_of(charset.split("*")[0]) or charset


def _joined(first: tuple[str, str, str], second: tuple[str, str, str]) -> tuple[str, str, str] | None:
    """Two adjacent words of one charset as one; None when one of them is broken.

    The blank between them is no part of the text (RFC 2047, 6.2); in names the standard parser leaves it there.
    """
    if first[0] != second[0]:
        return None
    try:
        data = _payload(first) + _payload(second)
    except ValueError:
        return None
    return first[0], "b", base64.b64encode(data).decode("ascii")


def _payload(word: tuple[str, str, str]) -> bytes:
    if word[1] == "q":
        return binascii.a2b_qp(word[2].encode("utf-8", "surrogatepass"), header=True)
    return base64.b64decode(word[2], validate=True)


def _word(word: tuple[str, str, str]) -> str:
    return "=?{}?{}?{}?=".format(*word)
