"""Bytes to text under labels that lie, and texts that a database column can hold."""

import codecs

from protege.untrusted import storable

_ALIASES = {
    "uft-8": "utf-8",
    "utf-8mb4": "utf-8",
    "utf8mb4": "utf-8",
    "unicode-1-1-utf-8": "utf-8",
    "iso-8859-8-i": "iso-8859-8",
    "iso-8859-8-e": "iso-8859-8",
    "windows-874": "cp874",
    "x-windows-874": "cp874",
    "x-sjis": "cp932",
    "x-gbk": "gbk",
    "gb2312": "gb18030",
    "x-mac-roman": "mac_roman",
    "ansi": "cp1252",
    "x-ansi": "cp1252",
    "cp-850": "cp850",
}
# Text codecs in Python's sense that no mail uses in good faith: they raise, grow or interpret escapes.
_REFUSED = {"undefined", "idna", "punycode", "unicode_escape", "raw_unicode_escape", "mbcs", "oem"}


def codec_of(label: str) -> str | None:
    """The name of the Python codec for a charset label, or None when there is none that is fit for mail."""
    name = label.strip().strip("\"'").lower()
    try:
        codec = codecs.lookup(_ALIASES.get(name, name)) if 0 < len(name) <= 64 else None
    except Exception:  # LookupError, ValueError for NUL, and what odd labels make of an import
        return None
    if codec is None or codec.name.replace("-", "_") in _REFUSED or not getattr(codec, "_is_text_encoding", True):
        return None
    return codec.name


def is_known(label: str) -> bool:
    """True when Python itself knows the label; one that only our table corrects is worth a warning."""
    return label.strip().strip("\"'").lower() not in _ALIASES.keys() - {"gb2312"} and codec_of(label) is not None


def decode(data: bytes, label: str = "") -> str:
    """`data` as storable text: by its label, else as UTF-8, else as Windows-1252. Never raises."""
    codec = codec_of(label) if label else None
    if codec in (None, "ascii", "utf-8"):
        return storable(_decode_unlabelled(data))
    try:
        return storable(data.decode(str(codec), "replace"))
    except Exception:  # some codecs raise on odd lengths whatever `errors` says
        return storable(_decode_unlabelled(data))


def _decode_unlabelled(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # A cut within the last character is no reason to read the whole as another charset.
        if error.start >= len(data) - 3 and error.reason == "unexpected end of data":
            return data.decode("utf-8-sig", "replace")
        return _mostly_utf8(data) or data.decode("cp1252", "replace")


def _mostly_utf8(data: bytes) -> str | None:
    """The text when only a few bytes are no UTF-8 and many are: a damaged text rather than another charset."""
    text = data.decode("utf-8-sig", "replace")
    wrong = text.count("\ufffd")
    sound = sum(1 for character in text[:100_000] if character > "\x7f") - wrong
    return text if sound > 4 * wrong else None
