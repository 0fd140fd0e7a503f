"""Header fields read one by one, each behind a guard.

Headers are hints that other people's software wrote. They are parsed before they are decoded, since a decoded display
name may look like an address. The standard parser raises on crafted input (RecursionError on many brackets,
IndexError, LookupError), so that every call of it has a fallback.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import Message
from email.policy import default as _policy
from itertools import islice
from typing import Any

from protege.mail import limits
from protege.mail.charsets import decode
from protege.mail.encoded_words import repaired
from protege.untrusted import one_line, storable

UNNAMED_LIST = "unnamed"

_SUBSTITUTE_END = "@id.invalid>"

_ID = re.compile(r"<([^<>]+)>")
_ATOM = r'[^\s\x00-\x1f"<>(),;:\\@]+'
_QUOTED_LOCAL_PART = r'"(?:[^"\\\x00-\x1f]|\\[^\x00-\x1f])*"'
_ADDRESS = re.compile(f"(?:{_QUOTED_LOCAL_PART}|{_ATOM})@{_ATOM}")
_QUOTED_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|\([^()]*\)')
_NO_REPLY = re.compile(r"(?:^|[-_.+])(?:no|not|do[-_.]?not|dont|never)[-_.]?(?:reply|respond|answer)")
_OPENS = {'"': '"', "<": ">"}


@dataclass(frozen=True, slots=True)
class Mailbox:
    """A person or persona as a header names them; the address is lower case."""

    name: str
    address: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "address", self.address.lower())

    def to_dict(self) -> dict[str, str]:
        """The form in which `to`, `cc` and `reply_to` are stored."""
        return {"name": self.name, "address": self.address}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Mailbox":
        return cls(name=str(data.get("name") or ""), address=str(data["address"]))


def raw_values(msg: Message, name: str) -> list[str]:
    """All fields of that name, unfolded and storable, encoded words still encoded."""
    wanted = name.lower()
    return [unfold(value) for field, value in msg.raw_items() if field.lower() == wanted]


def raw_value(msg: Message, name: str) -> str:
    """The topmost field of that name, or the empty text."""
    return next(iter(raw_values(msg, name)), "")


def unfold(value: object) -> str:
    """A raw field value as one line; bytes that are no ASCII are read as UTF-8 or Windows-1252."""
    text = str(value)
    try:
        text = decode(text.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:  # surrogates that stand for no byte
        text = storable(text)
    return re.sub(r"[\r\n]+[ \t]?", " ", text).strip()


def header(msg: Message, name: str) -> str:
    """The topmost field of that name as one line of decoded text; the raw text when it cannot be decoded."""
    return decoded(raw_value(msg, name))


def decoded(value: str) -> str:
    """A raw unstructured value with its encoded words decoded, as one line."""
    value = value[: limits.MAX_HEADER_VALUE]
    try:
        text = str(_policy.header_factory("Subject", repaired(value)))
    except Exception:  # the standard parser on crafted values, RecursionError included
        text = value
    return one_line(storable(text), limits.MAX_HEADER_VALUE)


def mailboxes(msg: Message, name: str) -> list[Mailbox]:
    """The addresses of all fields of that name, each once, in order; those that are no address are left out.

    A group gives its members, so that `undisclosed-recipients:;` gives none.
    """
    found: dict[str, Mailbox] = {}
    for value in raw_values(msg, name):
        for piece in islice(_address_pieces(value[: limits.MAX_HEADER_BYTES]), 2 * limits.MAX_ADDRESSES):
            mailbox = _mailbox(piece)
            if mailbox is not None:
                found.setdefault(mailbox.address, mailbox)
            if len(found) >= limits.MAX_ADDRESSES:
                return list(found.values())
    return list(found.values())


def _address_pieces(value: str) -> Iterator[str]:
    """A raw address list cut at its commas, semicolons and group names, heeding quotes, brackets and comments.

    Each address is then parsed alone: one that is broken spoils no other, and the time stays linear.
    """
    start, position, closing, depth = 0, 0, "", 0
    while position < len(value):
        character = value[position]
        if character == "\\" and closing != ">":
            position += 1
        elif closing:
            closing = "" if character == closing else closing
        elif character in "()":
            depth = max(0, depth + (1 if character == "(" else -1))
        elif depth == 0 and character in _OPENS:
            closing = _OPENS[character]
        elif depth == 0 and character in ",;:":
            if character != ":":
                yield value[start:position]
            start = position + 1
        position += 1
    yield value[start:]


def _mailbox(piece: str) -> Mailbox | None:
    piece = piece.strip()
    if "@" not in piece or len(piece) > 2_000:
        return None
    try:
        addresses = _policy.header_factory("To", repaired(piece)).addresses
    except Exception:  # crafted values, RecursionError included
        addresses = ()
    bracketed = "".join(next(reversed(_ID.findall(_QUOTED_OR_COMMENT.sub("", piece))), "").split())
    if len(addresses) == 1 and is_address(addresses[0].addr_spec) and addresses[0].addr_spec.endswith(bracketed):
        return Mailbox(_name(addresses[0].display_name), addresses[0].addr_spec)
    return _mailbox_by_pattern(piece, bracketed)


def _mailbox_by_pattern(piece: str, bracketed: str) -> Mailbox | None:
    """The last bracketed address of a piece that the standard parser misreads, or the piece itself.

    Of `boss@client.example <cora@rival.example>` it takes the first.
    """
    address = bracketed or piece
    name = piece[: piece.rfind("<")].strip(' "') if bracketed else ""
    return Mailbox(_name(decoded(name)), address) if is_address(address) else None


def _name(text: str) -> str:
    return one_line(storable(text), limits.NAME_LENGTH)


def is_address(text: str) -> bool:
    """True for text that has the form of one address and fits its column; a longer one is refused, never cut."""
    return (
        len(text) <= limits.ADDRESS_LENGTH
        and _ADDRESS.fullmatch(text) is not None
        and one_line(text, limits.ADDRESS_LENGTH) == text
        and storable(text) == text
    )


def message_ids(text: str) -> list[str]:
    """The ids in a raw value, with their angle brackets, in order and each once; case is kept.

    They are taken by pattern from among folding, blanks and comments; blanks inside come from folding and go. A
    value that is one bare token with an `@` is an id that lost its brackets. An id that its column cannot hold
    becomes `<sha256@id.invalid>`.
    """
    bare = ["".join(found.split()) for found in _ID.findall(text)]
    if not bare and re.fullmatch(r"[^\s<>()@]+@[^\s<>()@]+", text.strip()):
        bare = [text.strip()]
    return list(dict.fromkeys(_fitting_id(f"<{one}>") for one in bare if one))


def _fitting_id(message_id: str) -> str:
    cleaned = one_line(storable(message_id), len(message_id) + 1)
    if len(cleaned) <= limits.MESSAGE_ID_LENGTH:
        return cleaned
    return substitute_id(cleaned)


def substitute_id(*texts: str) -> str:
    """An id made of stable content; `.invalid` never resolves (RFC 2606)."""
    digest = hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()
    return f"<{digest}{_SUBSTITUTE_END}"


def is_substitute(message_id: str) -> bool:
    """True for an id that `substitute_id` made, and that nobody outside knows."""
    return message_id.endswith(_SUBSTITUTE_END)


def date_of(msg: Message) -> datetime | None:
    """When the sender says it was sent, aware; None for what is no date. It is shown and never decides anything."""
    value = raw_value(msg, "Date")
    try:
        found: datetime | None = _policy.header_factory("Date", value[:200]).datetime
        if found is None:
            return None
        found = found if found.utcoffset() is not None else found.replace(tzinfo=UTC)
        return found if 1970 <= found.astimezone(UTC).year < 9999 else None
    except Exception:  # impossible offsets and years overflow in ways of their own
        return None


def automatic_reason(msg: Message, envelope_sender: str | None) -> str | None:
    """Why a mail is a machine's and gets no answer, as far as the mail alone tells; None for a person's.

    `envelope_sender` is `""` for the null path, None when the door does not know it. `no_reply` comes last: it is
    the one reason that a rule of the persona may set aside.
    """
    tests = {
        "auto_submitted": _keyword(msg, "Auto-Submitted") not in ("", "no"),
        "precedence": _keyword(msg, "Precedence") in ("bulk", "junk", "auto_reply", "auto-reply"),
        "x_autoreply": any(_keyword(msg, name) not in ("", "no") for name in ("X-Autoreply", "X-Autorespond")),
        "null_return_path": has_null_return_path(msg, envelope_sender),
        "report": _keyword(msg, "Content-Type") == "multipart/report",
        "mailer_daemon": any(part.startswith("mailer-daemon") for part in _sender_names(msg, envelope_sender)),
        "no_reply": any(is_no_reply(box.address) for box in mailboxes(msg, "From")),
    }
    return next((reason for reason, holds in tests.items() if holds), None)


def is_no_reply(address: str) -> bool:
    return _NO_REPLY.search(address.rpartition("@")[0]) is not None


def list_id(msg: Message) -> str | None:
    """The name of the mailing list that the mail came through, lower case; `unnamed` for a mark without a name.

    None for mail that no list sent on.
    """
    value = raw_value(msg, "List-Id")
    if value:
        return _list_name(value) or UNNAMED_LIST
    return UNNAMED_LIST if _keyword(msg, "Precedence") == "list" else None


def _list_name(value: str) -> str:
    bracketed = _ID.findall(value)
    return one_line(bracketed[-1] if bracketed else decoded(value), limits.NAME_LENGTH).lower()


def _keyword(msg: Message, name: str) -> str:
    """The first word of a field, without parameters and comments, lower case."""
    words = re.split(r"[;(\s]", raw_value(msg, name), maxsplit=1)
    return words[0].strip().lower()


def has_null_return_path(msg: Message, envelope_sender: str | None) -> bool:
    """True when the envelope names nobody to answer, or the mail server noted that it did."""
    return envelope_sender in ("", "<>") or "".join(raw_value(msg, "Return-Path").split()) == "<>"


def _sender_names(msg: Message, envelope_sender: str | None) -> list[str]:
    """What stands before the `@` of the senders; bounces also come from a bare MAILER-DAEMON without a domain."""
    names = [box.address.rpartition("@")[0] for box in mailboxes(msg, "From")]
    bare = re.sub(r'["<>\s]', "", raw_value(msg, "From")).lower()
    return [*names, (envelope_sender or "").strip("<>").lower(), bare]
