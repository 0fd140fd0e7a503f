"""A walk over the parts of a mail: what is text, what is a file, in order."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from email.message import Message
from email.parser import BytesParser
from itertools import islice
from urllib.parse import unquote

from protege.mail import limits
from protege.mail.attachments import (
    ParsedAttachment,
    clean_filename,
    content_type_of,
    declared_filename,
    decode_base64,
    default_filename,
    payload,
)
from protege.mail.charsets import decode, is_known
from protege.mail.headers import raw_value
from protege.mail.text import picture_marker
from protege.untrusted import one_line

# Text parts that are data, or another rendering of the same text, rather than what somebody wrote.
_NO_BODY = {"text/calendar", "text/csv", "text/vcard", "text/x-vcard", "text/directory", "text/x-amp-html", "text/xml"}
_NO_BODY |= {"text/rfc822-headers", "text/css", "text/javascript", "text/x-patch"}
_SIGNATURES = {"application/pkcs7-signature", "application/x-pkcs7-signature", "application/pgp-signature"}
_CHARSET = re.compile(r"charset\*?\s{0,9}=\s{0,9}(?:us-ascii''|utf-8'')?\"?([^\s\";]+)", re.IGNORECASE)
# Python reads it in some cases, other software in others: what was meant is a guess.
_UNQUOTED_BOUNDARY = re.compile(r"boundary=[^\"\s;]{0,200}[=?:/(),@\[\]<>]", re.IGNORECASE)
_CID = re.compile(r"cid:([^\"'\s>)]{1,255})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Piece:
    """Something that stands in the body: `kind` is `plain`, `html` or `marker`."""

    kind: str
    text: str


@dataclass(slots=True)
class Walk:
    """Collects files, warnings and all HTML while it goes through a mail once."""

    warnings: list[str] = field(default_factory=list)
    files: list[ParsedAttachment] = field(default_factory=list)
    html: list[str] = field(default_factory=list)
    calendars: list[str] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)
    """Text outside of all parts: a word to old software, or a part whose delimiter was damaged."""
    parts: int = 0

    def warn(self, code: str) -> None:
        if code not in self.warnings:
            self.warnings.append(code)

    def pieces(self, part: Message, *, depth: int = 0, parent: str = "") -> list[Piece]:
        """The body pieces of `part` and what is below it."""
        self.parts += 1
        if self.parts > limits.MAX_PARTS or depth > limits.MAX_NESTING:
            self.warn("too_many_parts")
            return []
        if part.defects or _UNQUOTED_BOUNDARY.search(raw_value(part, "Content-Type")[:4_000]):
            self.warn("broken_mime")
        kind = part.get_content_type()
        if kind in ("message/rfc822", "message/global"):
            return self._attached_mail(part)
        if part.is_multipart() and kind.startswith("multipart/"):
            return self._children(part, kind, depth)
        if part.is_multipart():  # message/delivery-status is parsed into blocks of fields
            return self._file(part, _source(part), damaged=False)
        if kind.startswith("multipart/") or "boundary=" in raw_value(part, "Content-Type").lower():
            return self._unsplit(part, depth)
        return self._leaf(part, kind, parent)

    def _children(self, part: Message, kind: str, depth: int) -> list[Piece]:
        self.strays += [text for text in (part.preamble, part.epilogue) if text and text.strip()]
        below = (child for child in part.get_payload() if isinstance(child, Message))
        children = list(islice(below, limits.MAX_PARTS + 1))
        found = [self.pieces(child, depth=depth + 1, parent=kind) for child in children]
        if kind == "multipart/alternative":
            return _best(found)
        return [piece for pieces in found for piece in pieces]

    def _unsplit(self, part: Message, depth: int) -> list[Piece]:
        """A multipart that the parser could not split: by the boundary that its lines show, else it is text."""
        self.warn("broken_mime")
        source = payload(part)[0]
        first = re.search(rb"^--([^\r\n]{1,200}?)[ \t]*\r?$", source, re.MULTILINE)
        if first and b'"' not in first[1]:
            head = b'Content-Type: multipart/mixed; boundary="' + first[1].replace(b"\\", b"\\\\") + b'"\n\n'
            again = BytesParser().parsebytes(head + source)
            if again.is_multipart():
                return self.pieces(again, depth=depth + 1)
        return [Piece("plain", self._decoded(part, source))]

    def _leaf(self, part: Message, kind: str, parent: str) -> list[Piece]:
        if kind in _SIGNATURES and parent == "multipart/signed":
            return []
        data, damaged = payload(part)
        if kind == "text/calendar":
            self.calendars.append(self._decoded(part, data))
        if _is_body(part, kind, parent):
            if damaged:
                self.warn("damaged_text")
            return self._text(part, kind, data)
        if kind == "text/x-amp-html":
            return []
        return self._file(part, data, damaged=damaged, in_text=parent != "multipart/related")

    def _text(self, part: Message, kind: str, data: bytes) -> list[Piece]:
        text = self._decoded(part, data)
        if kind in ("text/html", "application/xhtml+xml"):
            self.html.append(text)
            return [Piece("html", text)]
        return [Piece("plain", text)]

    def _decoded(self, part: Message, data: bytes) -> str:
        charset = _charset(part)
        if charset and not is_known(charset):
            self.warn("unknown_charset")
        if len(data) > limits.MAX_TEXT_BYTES:
            self.warn("text_cut")
        return decode(data[: limits.MAX_TEXT_BYTES], charset).replace("\r\n", "\n").replace("\r", "\n")

    def _attached_mail(self, part: Message) -> list[Piece]:
        inner = _source(part)
        if raw_value(part, "Content-Transfer-Encoding").lower().strip() == "base64":
            inner = decode_base64(inner)[0] or inner
        return self._file(part, inner, damaged=not inner, in_text=False)

    def _file(self, part: Message, data: bytes, *, damaged: bool, in_text: bool = True) -> list[Piece]:
        if len(self.files) >= limits.MAX_ATTACHMENTS:
            self.warn("too_many_attachments")
            return []
        declared = part.get_content_type()
        name = clean_filename(declared_filename(part))
        mail = declared in ("message/rfc822", "message/global")
        kind = "message/rfc822" if mail else content_type_of(data, _declared_type(part), name)
        if mail and name and not name.lower().endswith(".eml"):
            name = clean_filename(f"{name}.eml")
        name = name or default_filename(kind, len(self.files) + 1)
        if damaged:
            self.warn("damaged_attachment")
        self.files.append(ParsedAttachment(name, kind, _content_id(part), False, data, damaged))
        shown = in_text and kind.startswith("image/") and _disposition(part) != "attachment"
        return [Piece("marker", picture_marker(name))] if shown else []

    def referred_to(self) -> set[str]:
        """The Content-IDs that the HTML shows."""
        return {unquote(found) for html in self.html for found in _CID.findall(html)}


def _best(found: list[list[Piece]]) -> list[Piece]:
    """Of several renderings of one text: the plain one unless blank, else the last that says something."""
    wanted: list[Callable[[Piece], bool]] = [
        lambda piece: piece.kind == "plain" and bool(piece.text.strip()),
        lambda piece: piece.kind == "html" and bool(piece.text.strip()),
    ]
    for test in wanted:
        matching = [pieces for pieces in found if any(test(piece) for piece in pieces)]
        if matching:
            return matching[0] if test is wanted[0] else matching[-1]
    return next((pieces for pieces in found if pieces), [])


def _is_body(part: Message, kind: str, parent: str) -> bool:
    if kind == "application/xhtml+xml":
        return parent == "multipart/alternative"
    if not kind.startswith("text/") or kind in _NO_BODY or _disposition(part) == "attachment":
        return False
    # A name makes a file of a text, except where only the text itself can stand.
    return parent in ("", "multipart/alternative") or not declared_filename(part)


def _disposition(part: Message) -> str:
    return re.split(r"[;\s]", raw_value(part, "Content-Disposition").strip(), maxsplit=1)[0].lower()


def _declared_type(part: Message) -> str:
    """The declared media type, empty when none is: the parser's own default is no claim of the sender's."""
    return re.split(r"[;\s]", raw_value(part, "Content-Type").strip(), maxsplit=1)[0]


def _charset(part: Message) -> str:
    found = _CHARSET.search(raw_value(part, "Content-Type")[:4_000])
    return found[1] if found else ""


def _content_id(part: Message) -> str:
    return one_line(raw_value(part, "Content-ID"), limits.CONTENT_ID_LENGTH).strip("<> ")


def _source(part: Message) -> bytes:
    """The bytes of the mail, or of the field blocks, inside `part`; empty when they cannot be put together."""
    inner = part.get_payload()
    try:
        blocks = [block.as_bytes() for block in inner if isinstance(block, Message)]
    except Exception:  # the standard generator on what the standard parser has made of broken mail
        return b""
    return b"\n".join(blocks)
