"""A mail of ours, as Django sends it. Nothing that a model or a stranger wrote can add a header."""

import email.policy
import html as entities
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from email.encoders import encode_base64
from email.mime.base import MIMEBase
from typing import Any

import django
import nh3
from django.core.mail import EmailMultiAlternatives
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML

from protege.exceptions import MailError
from protege.mail import limits
from protege.mail.attachments import clean_filename, default_filename
from protege.mail.headers import Mailbox, is_address, message_ids
from protege.untrusted import cut, one_line, storable

DJANGO_FOLDS_BY_POLICY = django.VERSION >= (6,)
LINE_LIMIT = 998
"""Characters of a line at most, by RFC 5322."""

AUTO_REPLIED = "auto-replied"
AUTO_GENERATED = "auto-generated"

QUOTE_LENGTH = 20_000
"""Characters of a mail that are quoted below the answer to it."""

_REPLY_MARKS = re.compile(r"(?:(?:re|aw|antw|sv|odp)\s?(?:\[\d{1,4}\])?\s?[:\uff1a]\s*)+", re.IGNORECASE)
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9.+_-]*/[a-z0-9][a-z0-9.+_-]*")
_TAGS = {"a", "b", "blockquote", "br", "code", "dd", "del", "div", "dl", "dt", "em", "h1", "h2", "h3", "h4", "h5", "h6"}
_TAGS |= {"hr", "i", "li", "ol", "p", "pre", "s", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr"}
_TAGS |= {"u", "ul"}
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}
_SCHEMES = {"http", "https", "mailto"}


@dataclass(frozen=True, slots=True)
class Quote:
    """The mail that is answered, to be quoted below the answer. `date` is aware, in the zone in which it is shown."""

    sender: Mailbox
    date: datetime
    text: str

    def introduction(self) -> str:
        who = header_text(self.sender.name, limits.NAME_LENGTH)
        whole = f"{who} <{self.sender.address}>" if who else self.sender.address
        return f"On {self.date:%Y-%m-%d %H:%M %Z}, {whole} wrote:"

    def lines(self) -> list[str]:
        text = _normalised(self.text)
        return [*cut(text, QUOTE_LENGTH).split("\n"), *(["[...]"] if len(text) > QUOTE_LENGTH else [])]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A mail to be sent: `text` is the model's Markdown, `auto` one of `auto-replied` and `auto-generated`.

    `attachments` holds (file name, media type, bytes).
    """

    message_id: str
    from_: Mailbox
    to: Sequence[Mailbox]
    subject: str
    text: str
    cc: Sequence[Mailbox] = ()
    signature: str = ""
    in_reply_to: str = ""
    references: Sequence[str] = field(default_factory=tuple)
    auto: str = AUTO_REPLIED
    attachments: Sequence[tuple[str, str, bytes]] = ()
    quote: Quote | None = None

    def __post_init__(self) -> None:
        if self.auto not in (AUTO_REPLIED, AUTO_GENERATED):
            raise ValueError(f"`auto` must be {AUTO_REPLIED!r} or {AUTO_GENERATED!r}, not {self.auto!r}.")


def compose(outgoing: Outgoing) -> EmailMultiAlternatives:
    """The mail with its text, its HTML alternative and its files; `MailError` for an address that is none."""
    mail = _UnfoldedMail(
        subject=header_text(outgoing.subject, limits.SUBJECT_LENGTH),
        body=plain_text(outgoing.text, outgoing.signature, outgoing.quote),
        from_email=_formatted(outgoing.from_),
        to=[_formatted(box) for box in outgoing.to],
        cc=[_formatted(box) for box in outgoing.cc],
        headers=_headers(outgoing),
    )
    mail.attach_alternative(html_text(outgoing.text, outgoing.signature, outgoing.quote), "text/html")
    for number, (filename, media_type, data) in enumerate(outgoing.attachments, start=1):
        kind = _sendable_type(media_type, data)
        name = clean_filename(filename) or default_filename(kind, number)
        if kind.startswith("text/"):
            mail.attach(_text_file(name, kind, data))
        else:
            mail.attach(name, data, kind)
    return mail


class _UnfoldedMail(EmailMultiAlternatives):
    """A mail whose headers are folded only where RFC 5322 forces it, at 998 characters.

    From Django 6 on a policy of the standard library folds at 78, and takes a Message-ID that is longer to pieces.
    """

    def message(self, **kwargs: Any) -> Any:
        if DJANGO_FOLDS_BY_POLICY:
            policy = kwargs.get("policy", email.policy.default)
            kwargs["policy"] = policy.clone(max_line_length=LINE_LIMIT)
        return super().message(**kwargs)


def _text_file(filename: str, kind: str, data: bytes) -> MIMEBase:
    """A text as an attachment, byte for byte: as text it would arrive with other line ends, and another checksum."""
    part = MIMEBase(*kind.split("/"))
    part.set_payload(data)
    encode_base64(part)
    part.add_header(
        "Content-Disposition", "attachment", filename=filename if filename.isascii() else ("utf-8", "", filename)
    )
    return part


def plain_text(text: str, signature: str = "", quote: Quote | None = None) -> str:
    """The Markdown as it is, with the signature below the customary line, and the quoted mail last."""
    parts = [_normalised(text)]
    if signature := _normalised(signature):
        parts.append(f"-- \n{signature}")
    if quote is not None:
        parts.append("\n".join([quote.introduction(), *map(_quoted_line, quote.lines())]))
    return "\n\n".join(parts)


def _quoted_line(line: str) -> str:
    """Marks of earlier quotes stand together, and blank lines end on no blank (RFC 3676, 4.5)."""
    return f">{line}" if line.startswith(">") or not line else f"> {line}"


def html_text(text: str, signature: str = "", quote: Quote | None = None) -> str:
    """The Markdown as sanitised HTML: no pictures, no raw HTML, links to http, https and mailto only."""
    body = _normalised(text)
    try:
        html = _markdown().render(body)
    except Exception:  # RecursionError on deeply nested Markdown: the text is sent as it stands
        html = f"<pre>{entities.escape(body)}</pre>"
    signature = entities.escape(_normalised(signature)).replace("\n", "<br>")
    html += f"<p>-- <br>{signature}</p>" if signature else ""
    if quote is not None:
        quoted = "<br>".join(map(entities.escape, quote.lines()))
        html += f"<p>{entities.escape(quote.introduction())}</p><blockquote>{quoted}</blockquote>"
    return nh3.clean(html, tags=_TAGS, attributes=_ATTRIBUTES, url_schemes=_SCHEMES, link_rel="noopener noreferrer")


def header_text(text: str, limit: int) -> str:
    """A name or a subject as one line of at most `limit` characters that every reader shows as it is.

    What looks like an encoded word (RFC 2047) would be decoded into something that was never written.
    """
    line = one_line(storable(text).replace("=?", "= ?"), limit)
    return one_line(line, limit)  # once more: a zero-width character may have stood beside what is gone now


def reply_subject(subject: str) -> str:
    """`subject` as one line with exactly one `Re: ` before it, whatever marks other software had put there."""
    line = header_text(subject, limits.SUBJECT_LENGTH)
    rest = line[found.end() :] if (found := _REPLY_MARKS.match(line)) else line
    return "Re: " + cut(rest.strip() or "(no subject)", limits.SUBJECT_LENGTH - 4)


def new_message_id(domain: str) -> str:
    """An id of 128 random bits: naming one of ours is a proof of having seen it."""
    try:
        ascii_domain = domain.strip().lower().encode("idna").decode("ascii")
    except UnicodeError:
        ascii_domain = ""
    usable = re.fullmatch(r"[a-z0-9]([a-z0-9.-]{0,180}[a-z0-9])?", ascii_domain)
    return f"<{secrets.token_hex(16)}@{ascii_domain if usable else 'localhost.invalid'}>"


def shortened_references(references: Sequence[str], in_reply_to: str = "") -> list[str]:
    """The first and the newest ids, as many as a header line takes; the answered mail's id is the last."""
    ids = message_ids(" ".join(references))
    parents = message_ids(in_reply_to)
    ids = [one for one in ids if one not in parents] + parents
    room = limits.REFERENCES_BYTES - len("References: ")
    newest: list[str] = []
    for one in reversed(ids[1:]):
        room_left = room - sum(len(kept.encode()) + 1 for kept in [*newest, *ids[:1]])
        if len(one.encode()) > room_left:
            break
        newest.append(one)
    return ids[:1] + newest[::-1]


def _headers(outgoing: Outgoing) -> dict[str, str]:
    own = message_ids(outgoing.message_id)
    if len(own) != 1:
        raise MailError("A mail needs one Message-ID. Make it with new_message_id().", code="bad_message_id")
    parents = message_ids(outgoing.in_reply_to)
    references = shortened_references(outgoing.references, outgoing.in_reply_to)
    headers = {"Message-ID": own[0], "Auto-Submitted": outgoing.auto, "X-Auto-Response-Suppress": "All"}
    if parents:
        headers["In-Reply-To"] = parents[0]
    if references:
        headers["References"] = " ".join(references)
    return headers


def _formatted(box: Mailbox) -> str:
    """`"Name" <address>`; the name is quoted, so that nothing in it is read as an address."""
    if not is_address(box.address) or not is_sendable(box.address):
        raise MailError("An address of this mail is not valid. Correct the recipients.", code="bad_address")
    name = header_text(box.name, limits.NAME_LENGTH)
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}" <{box.address}>' if name else box.address


def is_sendable(address: str) -> bool:
    """False for an address whose local part is quoted or other than ASCII.

    The one is read differently by different software, the other (RFC 6532) is written by Django's mail as another
    mailbox.
    """
    local = address.rpartition("@")[0]
    return local.isascii() and not local.startswith('"')


def _normalised(text: str) -> str:
    return storable(text).replace("\r\n", "\n").replace("\r", "\n").strip("\n").rstrip()


def _markdown() -> MarkdownIt:
    # Beyond `maxNesting` the library drops text without a word; this much ends in a RecursionError before.
    markdown = MarkdownIt("commonmark", {"html": False, "breaks": True, "maxNesting": 1_000}).enable(
        ["table", "strikethrough"]
    )
    markdown.add_render_rule("image", _picture_as_text)
    return markdown


def _picture_as_text(renderer: RendererHTML, tokens: Sequence[Any], index: int, options: Any, env: Any) -> str:
    """A picture from elsewhere would tell its server who reads the mail: only its description stays."""
    return entities.escape(str(tokens[index].content))


def _sendable_type(media_type: str, data: bytes) -> str:
    """The media type when Django can attach these bytes under it, else the one for any bytes."""
    kind = media_type.strip().lower()
    if not _MEDIA_TYPE.fullmatch(kind) or kind.startswith("multipart/"):
        return "application/octet-stream"
    if kind.startswith("message/") and (kind != "message/rfc822" or not data.isascii()):
        return "application/octet-stream"
    return kind
