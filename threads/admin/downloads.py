"""Bytes that strangers sent, handed out so that no browser shows or runs them."""

from typing import IO

from django.http import FileResponse, Http404

from protege.untrusted import one_line
from threads.models import Attachment, InboundMail


def attachment_response(attachment: Attachment) -> FileResponse:
    """The file of an attachment; 404 when the storage has it no longer."""
    try:
        file = attachment.file.open("rb")
    except (FileNotFoundError, ValueError):
        raise Http404("The file is gone.") from None
    return _download(file, one_line(attachment.filename, 180) or f"attachment-{attachment.pk}")


def raw_mail_response(inbound: InboundMail) -> FileResponse:
    """The mail as it came; 404 once it was deleted by its term."""
    if inbound.raw is None:
        raise Http404("The raw source is gone.")
    from io import BytesIO

    suffix = "eml" if inbound.raw.media_type == "message/rfc822" else "bin"
    return _download(BytesIO(inbound.raw.unpack()), f"mail-{inbound.pk}.{suffix}")


def _download(file: IO[bytes], filename: str) -> FileResponse:
    # The stored type is told from a stranger's bytes: a browser that saved it under no type has nothing to believe.
    response = FileResponse(file, as_attachment=True, filename=filename, content_type="application/octet-stream")
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "default-src 'none'; sandbox"
    response["Cache-Control"] = "private, no-store"
    return response
