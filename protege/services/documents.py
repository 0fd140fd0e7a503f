"""Which files of a mail the model is shown, and in what form."""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from uuid import UUID

from protege.exceptions import ToolFailure
from protege.messages import DocumentPart, ImagePart, Part, TextPart
from threads.models import Attachment, Message

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
IMAGE_BYTES = 3_500_000
PDF_TYPE = "application/pdf"
PDF_BYTES = 15_000_000
TEXT_BYTES = 1_000_000
READ_LIMIT = 20_000
"""Characters of a document that one call of a tool reads."""


def user_turn(message: Message, attachments: Sequence[Attachment]) -> str | list[Part]:
    """The mail that is being answered, as the model's last user turn: its documents as parts, then its text.

    The text is exactly what history later shows for the same mail.
    """
    text = message.to_llm_text(attachments)
    parts = document_parts(attachments)
    return [*parts, TextPart(text)] if parts else text


def document_parts(attachments: Iterable[Attachment]) -> list[Part]:
    """Pictures and PDFs natively, each behind a line with its name; other kinds as a line alone."""
    return [part for item in attachments if not item.inline for part in _parts(item)]


def _parts(attachment: Attachment) -> list[Part]:
    described = attachment.described()
    kind = _native_kind(attachment)
    if kind is None:
        return [TextPart(f"File {described}: its content is not shown here.")]
    data = content_of(attachment)
    if data is None:
        return [TextPart(f"File {described} could not be read.")]
    encoded = base64.b64encode(data).decode("ascii")
    if kind == "image":
        return [TextPart(f"Picture {described}:"), ImagePart(attachment.content_type, encoded)]
    return [TextPart(f"Document {described}:"), DocumentPart(attachment.filename, PDF_TYPE, encoded)]


def _native_kind(attachment: Attachment) -> str | None:
    if attachment.damaged or not attachment.size:
        return None
    if attachment.content_type in IMAGE_TYPES and attachment.size <= IMAGE_BYTES:
        return "image"
    if attachment.content_type == PDF_TYPE and attachment.size <= PDF_BYTES:
        return "pdf"
    return None


def content_of(attachment: Attachment) -> bytes | None:
    """The bytes of a file, or None when it is gone or no longer what was received."""
    try:
        with attachment.file.open("rb") as file:
            data = bytes(file.read())
    except (OSError, ValueError):
        return None
    return data if hashlib.sha256(data).hexdigest() == attachment.sha256 else None


def read(message: Message, public_id: str) -> dict[str, object]:
    """The text of a file of this message's thread, for a tool.

    An id of another thread and one that does not exist give the same `ToolFailure`: nobody learns what others have.
    """
    attachment = find(message, [public_id])[0]
    text = attachment.text or _plain_text(attachment)
    if text is None:
        raise ToolFailure(
            f"{attachment.filename} is {attachment.content_type}; its content cannot be read as text.",
            code="unreadable",
        )
    return {
        "filename": attachment.filename,
        "content_type": attachment.content_type,
        "text": text[:READ_LIMIT],
        "shown": min(len(text), READ_LIMIT),
        "total": len(text),
    }


def find(message: Message, public_ids: Sequence[str]) -> list[Attachment]:
    """The files with these ids in the thread of `message`, in that order; `ToolFailure` names the first unknown one."""
    wanted = [_uuid(public_id) for public_id in public_ids]
    found = Attachment.objects.filter(message__thread=message.thread_id, public_id__in=[uid for uid in wanted if uid])
    known = {item.public_id: item for item in found}
    for public_id, uid in zip(public_ids, wanted, strict=True):
        if uid not in known:
            raise ToolFailure(f"There is no attachment {public_id!r} in this thread.", code="unknown_attachment")
    return [known[uid] for uid in wanted if uid]


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text.strip())
    except ValueError:
        return None


def _plain_text(attachment: Attachment) -> str | None:
    if not attachment.content_type.startswith("text/") or attachment.size > TEXT_BYTES:
        return None
    data = content_of(attachment)
    return None if data is None else data.decode("utf-8", errors="replace")
