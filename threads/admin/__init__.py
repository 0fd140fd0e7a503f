"""The admin of what happened, one concept a file; importing registers."""

from threads.admin.mailbox import ImapCursorAdmin, InboundMailAdmin, RawMailAdmin
from threads.admin.message import AttachmentAdmin, MessageAdmin
from threads.admin.rest import (
    ParticipantAdmin,
    PromptTextAdmin,
    SearchTextAdmin,
    ThreadTagAdmin,
    ThreadVectorAdmin,
    TokenRateAdmin,
)
from threads.admin.run import RunAdmin, ToolUseAdmin
from threads.admin.thread import EmailThreadAdmin

__all__ = [
    "AttachmentAdmin",
    "EmailThreadAdmin",
    "ImapCursorAdmin",
    "InboundMailAdmin",
    "MessageAdmin",
    "ParticipantAdmin",
    "PromptTextAdmin",
    "RawMailAdmin",
    "RunAdmin",
    "SearchTextAdmin",
    "ThreadTagAdmin",
    "ThreadVectorAdmin",
    "TokenRateAdmin",
    "ToolUseAdmin",
]
