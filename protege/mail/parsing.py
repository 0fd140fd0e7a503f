"""Raw bytes to a `ParsedMail`, whatever the bytes are.

Nothing here raises: the raw mail is stored already, and what cannot be read is said by a warning code.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from email.message import Message
from email.parser import BytesParser
from itertools import islice

from protege.mail import limits
from protege.mail.attachments import ParsedAttachment
from protege.mail.authentication import marked_as_spam
from protege.mail.bounces import Bounce, bounce_of
from protege.mail.charsets import decode
from protege.mail.encoded_words import unknown_charset
from protege.mail.headers import (
    Mailbox,
    automatic_reason,
    date_of,
    decoded,
    list_id,
    mailboxes,
    message_ids,
    raw_value,
    raw_values,
    substitute_id,
)
from protege.mail.invitations import calendar_text
from protege.mail.text import html_to_text, picture_marker, tidy
from protege.mail.walking import Piece, Walk
from protege.untrusted import cut

_NOTES = {
    "application/pkcs7-mime": "[This mail is signed or encrypted as a whole (S/MIME) and cannot be read here.]",
    "application/x-pkcs7-mime": "[This mail is signed or encrypted as a whole (S/MIME) and cannot be read here.]",
    "application/pgp-encrypted": "[This mail is encrypted (OpenPGP) and cannot be read here.]",
    "application/ms-tnef": "[This mail came as winmail.dat, a format of Outlook's own, and cannot be read here.]",
    "application/vnd.ms-tnef": "[This mail came as winmail.dat, a format of Outlook's own, and cannot be read here.]",
}
_TO_OLD_SOFTWARE = re.compile(r"(?i)multi-?part\s+message|\bMIME\s+format|\bMIME\s+message")
_BOUNDARY = re.compile(rb"(?i)boundary=\"?([^\"\s;]{1,200})")
_MAX_BOUNDARIES = 50
# Fields that are kept when a header is too long: the others are traces of its way and marks for other software.
_READ_FIELDS = re.compile(
    rb"(?i)(from|to|cc|reply-to|subject|date|message-id|in-reply-to|references|content-[a-z-]+|mime-version|sender"
    rb"|auto-submitted|precedence|list-id|return-path|x-autoreply|x-autorespond|delivered-to|x-original-to"
    rb"|authentication-results|received|x-spam(?:-flag|-status)?):"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedMail:
    """A mail as it was read; every text fits its column and holds neither NUL nor a lone surrogate.

    `message_id` is the mail's own or, with `has_own_id` false, a substitute made of stable content. `references` has
    the newest last. `date` is aware, or None for an unusable one. `automatic` is the reason not to answer, `list_id`
    the mailing list, `delivered_to` what our own mail server noted as the recipient; `authentication_results` has the
    topmost field first. `html_body` is for conversion and is not stored.
    """

    from_: list[Mailbox] = field(default_factory=list)
    to: list[Mailbox] = field(default_factory=list)
    cc: list[Mailbox] = field(default_factory=list)
    reply_to: list[Mailbox] = field(default_factory=list)
    subject: str = ""
    message_id: str = ""
    has_own_id: bool = False
    in_reply_to: str = ""
    references: list[str] = field(default_factory=list)
    date: datetime | None = None
    text_body: str = ""
    html_body: str = ""
    attachments: list[ParsedAttachment] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    automatic: str | None = None
    list_id: str | None = None
    delivered_to: list[str] = field(default_factory=list)
    authentication_results: list[str] = field(default_factory=list)
    spam: bool = False
    bounce: Bounce | None = None


def parse(raw: bytes, *, sender: str | None = None) -> ParsedMail:
    """Read a mail; `sender` is the envelope's (`""`: the null path, None: unknown). Never raises."""
    walk = Walk()
    head, body = _split(raw)
    if len(raw) > limits.MAX_RAW_BYTES:
        walk.warn("too_large")
        body = b""
    msg = _message(_fitting(head, walk), body, walk)
    text, files = _content(msg, body, walk)
    mail = _with_headers(msg, body, walk, sender)
    bounce = _bounce(msg, text, sender, walk)
    return replace(
        mail,
        text_body=text,
        html_body="\n".join(walk.html),
        attachments=files,
        bounce=bounce,
        warnings=list(walk.warnings),
    )


def attached_mail_text(data: bytes, *, depth: int = 1) -> str:
    """An attached mail as text: who, when, about what, its body and the names of its files; at most 3 deep."""
    mail = parse(data)
    lines = [
        f"From: {', '.join(_shown(box) for box in mail.from_)}",
        f"Date: {mail.date.isoformat(sep=' ', timespec='minutes') if mail.date else 'unknown'}",
        f"Subject: {mail.subject}",
        *(["Attachments: " + ", ".join(one.filename for one in mail.attachments)] if mail.attachments else []),
        "",
        mail.text_body,
    ]
    inner = [one for one in mail.attachments if one.content_type == "message/rfc822"]
    if depth < limits.MAX_ATTACHED_MAIL_DEPTH:
        lines += [
            f"\n[Attached mail {one.filename}:]\n{attached_mail_text(one.data, depth=depth + 1)}" for one in inner
        ]
    return cut("\n".join(lines).strip(), limits.MAX_READABLE)


def _shown(box: Mailbox) -> str:
    return f"{box.name} <{box.address}>" if box.name else box.address


def _split(raw: bytes) -> tuple[bytes, bytes]:
    """Header block and body; the line `From ` that mailbox files put first is no header."""
    raw = re.sub(rb"\A(?:\xef\xbb\xbf)?\s*(?:>?From [^\n]*\r?\n)?", b"", raw, count=1)
    end = re.search(rb"\r?\n\r?\n|\r\r", raw)
    return (raw[: end.start()] + b"\n", raw[end.end() :]) if end else (raw, b"")


def _fitting(head: bytes, walk: Walk) -> bytes:
    """The header block within its limits: what nobody reads goes first."""
    if len(head) <= limits.MAX_HEADER_BYTES and head.count(b"\n") <= limits.MAX_HEADER_LINES:
        return head
    walk.warn("headers_cut")
    kept, size, lines = [], 0, 0
    for found in re.finditer(rb"[^\n]*\n(?:[ \t][^\n]*\n)*", head):
        one = found[0]
        size, lines = size + len(one), lines + one.count(b"\n")
        if not _READ_FIELDS.match(one) or size > limits.MAX_HEADER_BYTES or lines > limits.MAX_HEADER_LINES:
            size, lines = size - len(one), lines - one.count(b"\n")
            continue
        kept.append(one)
    return b"".join(kept)


def _message(head: bytes, body: bytes, walk: Walk) -> Message:
    for source in (head + b"\n" + _bounded(head, body, walk), head + b"\n"):
        try:
            return BytesParser().parsebytes(source)
        except Exception:  # nesting of more than 1,000 levels raises RecursionError
            walk.warn("broken_mime")
    return Message()


def _bounded(head: bytes, body: bytes, walk: Walk) -> bytes:
    """The body up to twice the parts that are looked at: the standard parser builds an object for each."""
    for boundary in set(_BOUNDARY.findall(head)) | set(islice(_boundaries(body), _MAX_BOUNDARIES)):
        delimiter = b"--" + boundary
        if body.count(delimiter) > 2 * limits.MAX_PARTS:
            walk.warn("too_many_parts")
            body = delimiter.join(body.split(delimiter, 2 * limits.MAX_PARTS)[:-1])
    return body


def _boundaries(body: bytes) -> Iterator[bytes]:
    return (found[1] for found in _BOUNDARY.finditer(body))


def _content(msg: Message, body: bytes, walk: Walk) -> tuple[str, list[ParsedAttachment]]:
    try:
        pieces = walk.pieces(msg)
    except Exception:  # whatever crafted structures still find; the raw text is the last resort
        walk.warn("broken_mime")
        pieces = []
    shown = walk.referred_to()
    files = [replace(one, inline=bool(one.content_id) and one.content_id in shown) for one in walk.files]
    names = {one.content_id: one.filename for one in files if one.content_id}
    markers = {picture_marker(one.filename) for one in files if one.inline}
    text = _joined([piece for piece in pieces if piece.text not in markers], names)
    return text or _instead_of_text(msg, body, walk), files


def _joined(pieces: list[Piece], pictures: dict[str, str]) -> str:
    """All pieces in order; nothing when there are only markers, which answer no question."""
    texts = [html_to_text(one.text, pictures) if one.kind == "html" else tidy(one.text) for one in pieces]
    if not any(text.strip() and one.kind != "marker" for text, one in zip(texts, pieces, strict=True)):
        return ""
    return "\n\n".join(text.strip("\n") for text in texts if text.strip())


def _instead_of_text(msg: Message, body: bytes, walk: Walk) -> str:
    """What stands for the text of a mail that has none: an invitation, a line that says what it is, the raw text."""
    for source in walk.calendars:
        if text := calendar_text(source):
            return text
    kinds = [msg.get_content_type(), *(one.content_type for one in walk.files)]
    kinds += ["application/ms-tnef" for one in walk.files if one.filename.lower() == "winmail.dat"]
    for kind in kinds:
        if kind in _NOTES:
            return _NOTES[kind]
    if walk.calendars:
        return "[This mail is a calendar entry that cannot be read here.]"
    strays = [text for text in walk.strays if not _TO_OLD_SOFTWARE.search(text[:1_000])]
    if strays:
        walk.warn("broken_mime")
        stray = "\n\n".join(strays)[: limits.MAX_TEXT_BYTES]
        return tidy(decode(stray.encode("utf-8", "surrogateescape")).replace("\r\n", "\n"))
    if walk.files or "broken_mime" not in walk.warnings:
        return ""
    return tidy(decode(body[: limits.MAX_TEXT_BYTES]).replace("\r\n", "\n").replace("\r", "\n"))


def _with_headers(msg: Message, body: bytes, walk: Walk, sender: str | None) -> ParsedMail:
    own_ids = message_ids(_long(msg, "Message-ID"))
    parents = message_ids(_long(msg, "In-Reply-To"))
    date = date_of(msg)
    if date is None:
        walk.warn("bad_date" if raw_value(msg, "Date") else "no_date")
    if not own_ids:
        walk.warn("no_message_id")
    return ParsedMail(
        from_=mailboxes(msg, "From"),
        to=mailboxes(msg, "To"),
        cc=mailboxes(msg, "Cc"),
        reply_to=mailboxes(msg, "Reply-To"),
        subject=_subject(msg, walk),
        message_id=own_ids[0] if own_ids else substitute_id(*_identity(msg), _digestible(body)),
        has_own_id=bool(own_ids),
        in_reply_to=parents[0] if parents else "",
        references=message_ids(_long(msg, "References"))[-limits.MAX_REFERENCES :],
        date=date,
        automatic=automatic_reason(msg, sender),
        list_id=list_id(msg),
        delivered_to=list(_delivered_to(msg)),
        authentication_results=raw_values(msg, "Authentication-Results"),
        spam=marked_as_spam(msg),
    )


def _bounce(msg: Message, text: str, sender: str | None, walk: Walk) -> Bounce | None:
    try:
        return bounce_of(msg, text, sender=sender)
    except Exception:  # what the standard parser has made of crafted structures
        walk.warn("broken_mime")
        return None


def _long(msg: Message, name: str) -> str:
    return raw_value(msg, name)[-limits.MAX_HEADER_BYTES :]


def _subject(msg: Message, walk: Walk) -> str:
    raw = raw_value(msg, "Subject")
    if unknown_charset(raw[: limits.MAX_HEADER_VALUE]):
        walk.warn("unknown_charset")
    subject = decoded(raw)
    if len(subject) <= limits.SUBJECT_LENGTH:
        return subject
    walk.warn("subject_cut")
    return cut(subject, limits.SUBJECT_LENGTH)


def _identity(msg: Message) -> Iterator[str]:
    """What makes a mail the same mail wherever and however often it arrives; never traces of its way."""
    for name in ("From", "To", "Cc", "Subject", "Date"):
        yield "\n".join(" ".join(value.split()) for value in raw_values(msg, name))


def _digestible(body: bytes) -> str:
    """The body with the line ends that transports change made equal."""
    return body.replace(b"\r\n", b"\n").rstrip().decode("latin-1")


def _delivered_to(msg: Message) -> Iterator[str]:
    """What our mail server wrote on top of its own `Received` line; a sender's claims stand below it."""
    seen: set[str] = set()
    above = True
    for name, value in msg.raw_items():
        field_name = name.lower()
        above = above and field_name != "received"
        if field_name not in ("delivered-to", "x-original-to") or field_name in seen or (seen and not above):
            continue
        seen.add(field_name)
        one: Message = Message()
        one["To"] = re.sub(r"[\r\n]+", " ", str(value))
        yield from (box.address for box in mailboxes(one, "To"))
