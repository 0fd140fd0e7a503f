"""Mail as the tests of the inbox send it in."""

from typing import Any

from protege.services import inbox
from threads.models import InboundMail, Message

HELPER = "helper@desk.example"


def receive(raw: bytes, **envelope: Any) -> InboundMail:
    """Hand a mail in at Helper's address, unless the envelope says otherwise; the row of its one persona."""
    (inbound,) = inbox.receive(raw, **{"recipients": [HELPER], **envelope})
    return inbound


def received(raw: bytes, **envelope: Any) -> Message:
    """The same, for a mail that becomes a message."""
    message = receive(raw, **envelope).message
    assert message is not None
    return message


def outcome(inbound: InboundMail) -> tuple[str, str]:
    """What became of a mail: status and reason."""
    return inbound.status, inbound.reason
