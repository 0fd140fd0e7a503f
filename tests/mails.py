"""Mails made for a test, as bytes."""

from email.message import EmailMessage
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).resolve().parent / "fixtures" / "mail"


def fixture_mail(name: str) -> bytes:
    """The bytes of a mail in `fixtures/mail`."""
    return (FIXTURES / name).read_bytes()


def mail(
    *,
    from_: str = "Ana Moßner <ana@client.example>",
    to: str = "helper@desk.example",
    subject: str = "Where is my order?",
    text: str = "Where is order 77?",
    message_id: str | None = "<first@client.example>",
    files: list[tuple[str, str, bytes]] | None = None,
    **headers: Any,
) -> bytes:
    """A mail from Ana to the persona; `files` are (name, media type, bytes), further headers go by their names."""
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = from_, to, subject
    message["Date"] = "Mon, 02 Mar 2026 09:00:00 +0100"
    if message_id:
        message["Message-ID"] = message_id
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    message.set_content(text)
    for filename, media_type, data in files or []:
        maintype, subtype = media_type.split("/")
        message.add_attachment(data, maintype=maintype, subtype=subtype, filename=filename)
    return message.as_bytes()
