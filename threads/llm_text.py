"""How a mail is written down for a model. Pure: the same row gives the same text, with no clock in it."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from protege.mail.limits import ADDRESS_LENGTH
from protege.untrusted import one_line

if TYPE_CHECKING:
    from threads.models import Attachment, Message

NAME_LIMIT = 100
SUBJECT_LIMIT = 300
SHOWN_ADDRESSES = 20


def header_block(message: "Message") -> str:
    """From, To, Cc when present, Date, Subject, and for an inbound mail our own word on the sender's trust."""
    lines = [
        f"From: {mailbox(message.from_name, message.from_address)}",
        f"To: {mailboxes(message.to)}",
    ]
    if message.cc:
        lines.append(f"Cc: {mailboxes(message.cc)}")
    lines.append(f"Date: {moment(dated(message))}")
    lines.append(f"Subject: {one_line(message.subject, SUBJECT_LIMIT)}")
    if message.is_inbound:
        lines.append(f"Trust: {message.trust}")
    return "\n".join(lines)


def dated(message: "Message") -> datetime:
    """What an inbound mail says of itself; of ours, when it was written, which no later delivery changes."""
    return (message.is_inbound and message.sent_at) or message.received_at


def mailbox(name: str, address: str) -> str:
    address = one_line(address, ADDRESS_LENGTH)
    name = one_line(name, NAME_LIMIT)
    return f"{name} <{address}>" if name else address


def mailboxes(entries: Iterable[Mapping[str, Any]]) -> str:
    """The first 20 of `entries`, and how many more there are."""
    shown = [mailbox(str(entry.get("name", "")), str(entry.get("address", ""))) for entry in entries]
    rest = len(shown) - SHOWN_ADDRESSES
    text = ", ".join(shown[:SHOWN_ADDRESSES])
    return f"{text} and {rest} more" if rest > 0 else text


def moment(value: datetime) -> str:
    return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def listed_files(attachments: Iterable["Attachment"]) -> str:
    """A note of the files of a mail, each with the id that tools accept; "" without files."""
    lines = [f"- {attachment.described()}" for attachment in attachments]
    return "\n".join(["Attachments:", *lines]) if lines else ""
