"""What a mail server's note of failure says: about which mail, and whom it did not reach (RFC 3464, RFC 6522).

Many servers write such notes in plain text and in words of their own. So nothing here is proof: the caller holds the
ids and addresses against what was really sent.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from email.parser import BytesHeaderParser
from itertools import islice

from protege.mail.attachments import payload
from protege.mail.headers import has_null_return_path, is_address, mailboxes, message_ids, raw_value

MAX_PARTS = 50
MAX_TEXT = 64 * 1024
MAX_IDS = 100
MAX_RECIPIENTS = 100

_PERMANENT = re.compile(r"(?<![\d.])(?:5\.\d{1,3}\.\d{1,3}(?!\.?\d)|55[0-4](?=[ -]))")
_ADDRESS_IN_TEXT = re.compile(r"[\w.!#$%&'*+/=?^`{|}~-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,9}")
_ID_FIELD = re.compile(r"^[>\s]{0,20}Message-ID:\s{0,20}(<[^<>\s]{1,500}>)", re.IGNORECASE | re.MULTILINE)
_RETURNED_COPY = re.compile(r"^[>\s]{0,20}(?:Return-Path|Received|Message-ID|DKIM-Signature):", re.I | re.M)


@dataclass(frozen=True, slots=True)
class Bounce:
    """`ids` are the Message-IDs it may be about, the likeliest first; `failed` are lower-case addresses that
    will not be reached. A delay, which may still end well, has none."""

    ids: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


def bounce_of(msg: Message, text: str, *, sender: str | None = None) -> Bounce | None:
    """The note of failure that `msg` is, or None for any other mail; `text` is its text, `sender` the envelope's."""
    parts = list(islice(msg.walk(), MAX_PARTS))
    reports = [part for part in parts if part.get_content_type().endswith("delivery-status")]
    # A person who forwards such a note has the report further down, and asks something.
    is_report = bool(reports) and msg.get_content_type() == "multipart/report"
    if not is_report and not _is_from_a_daemon(msg, sender):
        return None
    text = text[:MAX_TEXT]
    failed = _failed_in(reports) if reports else _failed_in_text(text)
    return Bounce(
        ids=tuple(islice(dict.fromkeys(_ids(msg, parts, text)), MAX_IDS)),
        failed=tuple(islice(dict.fromkeys(failed), MAX_RECIPIENTS)),
    )


def _is_from_a_daemon(msg: Message, sender: str | None) -> bool:
    """Written by a mail server: by its name, or as postmaster or nobody on the null return path."""
    names = [box.address.rpartition("@")[0] for box in mailboxes(msg, "From")]
    if not names and "mailer-daemon" in raw_value(msg, "From").lower():
        return True
    return any(name.startswith("mailer-daemon") for name in names) or (
        has_null_return_path(msg, sender) and all(name == "postmaster" for name in names)
    )


def _ids(msg: Message, parts: list[Message], text: str) -> Iterator[str]:
    """Of the returned mail first, then what the note refers to, then whatever looks like one."""
    for part in parts[1:]:
        if part.get_content_type() in ("text/rfc822-headers", "message/rfc822-headers"):
            yield from _message_id(BytesHeaderParser().parsebytes(payload(part)[0].lstrip()))
        elif part.get_content_type() in ("message/rfc822", "message/global"):
            yield from (found for inner in _inside(part)[:1] for found in _message_id(inner))
    yield from (found for one in _ID_FIELD.findall(text) for found in message_ids(one))
    yield from message_ids(raw_value(msg, "In-Reply-To"))
    yield from reversed(message_ids(raw_value(msg, "References")))
    yield from message_ids(text)


def _inside(part: Message) -> list[Message]:
    """The mail in an attached mail, the blocks of fields in a report."""
    inner = part.get_payload()
    return [one for one in inner if isinstance(one, Message)] if isinstance(inner, list) else []


def _message_id(msg: Message) -> list[str]:
    return message_ids(raw_value(msg, "Message-ID"))


def _failed_in(reports: list[Message]) -> Iterator[str]:
    """The recipients of machine-readable reports whose status is 5.x.x."""
    for report in reports:
        for block in _inside(report)[: MAX_RECIPIENTS + 1]:
            if _says_failed(block):
                yield from _recipients(block)


def _says_failed(block: Message) -> bool:
    action = raw_value(block, "Action").split("(")[0].strip().lower()
    return action in ("", "failed") and raw_value(block, "Status").strip().startswith("5.")


def _recipients(block: Message) -> Iterator[str]:
    for name in ("Final-Recipient", "Original-Recipient"):
        address = raw_value(block, name).rpartition(";")[2].strip().strip("<>").lower()
        if is_address(address):
            yield address


def _failed_in_text(text: str) -> list[str]:
    """All addresses of a note that says 5.x.x; those of the returned copy only when no other is named.

    A text may name one recipient who failed and one who waits. To take the second for failed costs little, as the
    next mail from there takes the mark away.
    """
    copy = _RETURNED_COPY.search(text)
    said = text[: copy.start()] if copy else text
    if not _ADDRESS_IN_TEXT.search(said):
        said = text
    return [address.lower() for address in _ADDRESS_IN_TEXT.findall(said)] if _PERMANENT.search(said) else []
