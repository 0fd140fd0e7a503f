"""The tables of what happened, one concept a file."""

from threads.models.attachment import Attachment
from threads.models.mailbox import ImapCursor, InboundMail, InboundStatus, RawMail
from threads.models.message import (
    LIVE_ANSWER,
    UNSEQUENCED,
    Direction,
    Message,
    MessageStatus,
    Origin,
    Trust,
)
from threads.models.receipt import PromptText, TokenRate
from threads.models.run import Run, RunKind, RunStatus
from threads.models.search import SearchText, ThreadVector
from threads.models.thread import EmailThread, Participant, ThreadStatus, ThreadTag
from threads.models.tooluse import ToolUse, ToolUseStatus

__all__ = [
    "LIVE_ANSWER",
    "UNSEQUENCED",
    "Attachment",
    "Direction",
    "EmailThread",
    "ImapCursor",
    "InboundMail",
    "InboundStatus",
    "Message",
    "MessageStatus",
    "Origin",
    "Participant",
    "PromptText",
    "RawMail",
    "Run",
    "RunKind",
    "RunStatus",
    "SearchText",
    "ThreadStatus",
    "ThreadTag",
    "ThreadVector",
    "TokenRate",
    "ToolUse",
    "ToolUseStatus",
    "Trust",
]
