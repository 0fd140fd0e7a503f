"""Posts in the forms of the providers, shaped as their own documentation shows them."""

import hashlib
import hmac
import json
from base64 import b64encode
from collections.abc import Iterable, Sequence
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any

BOUNDARY = "xYzZY"
FORM = f"multipart/form-data; boundary={BOUNDARY}"
SIGNING_KEY = "key-of-mailgun"

File = tuple[str, str, bytes]
"""Name, media type, content."""


def form(fields: Iterable[tuple[str, str | bytes | File]]) -> bytes:
    """A form as bytes. Django's own encoder knows no values of bytes."""
    parts = []
    for name, value in fields:
        head = f'Content-Disposition: form-data; name="{name}"'
        if isinstance(value, tuple):
            head += f'; filename="{value[0]}"\r\nContent-Type: {value[1]}'
            value = value[2]
        data = value.encode() if isinstance(value, str) else value
        parts.append(b"--%s\r\n%s\r\n\r\n%s\r\n" % (BOUNDARY.encode(), head.encode(), data))
    return b"".join(parts) + b"--%s--\r\n" % BOUNDARY.encode()


def parsed(raw: bytes) -> EmailMessage:
    message = message_from_bytes(raw, policy=default)
    assert isinstance(message, EmailMessage)
    return message


def text_of(message: EmailMessage) -> str:
    body = message.get_body(("plain",))
    return str(body.get_content()) if body is not None else ""


def files_of(message: EmailMessage) -> list[File]:
    return [
        (part.get_filename() or "", part.get_content_type(), part.get_content()) for part in message.iter_attachments()
    ]


def mailgun(content: Sequence[tuple[str, Any]], *, to: str, sender: str, key: str = SIGNING_KEY) -> bytes:
    stamp, token = "1461261330", "06c96bafc3f42a66b9edd546347a2fe18dc23461fe80dc52f0"
    signature = hmac.new(key.encode(), f"{stamp}{token}".encode(), hashlib.sha256).hexdigest()
    signed = [("timestamp", stamp), ("token", token), ("signature", signature)]
    return form([("recipient", to), ("sender", sender), *content, *signed])


def mailgun_raw(raw: bytes) -> list[tuple[str, Any]]:
    return [("body-mime", raw)]


def mailgun_parsed(raw: bytes) -> list[tuple[str, Any]]:
    message = parsed(raw)
    files = files_of(message)
    return [
        ("message-headers", json.dumps([[name, str(value)] for name, value in message.items()])),
        ("body-plain", text_of(message)),
        ("stripped-text", "not this"),
        ("attachment-count", str(len(files))),
        *((f"attachment-{number}", file) for number, file in enumerate(files, start=1)),
    ]


def sendgrid(content: Sequence[tuple[str, Any]], *, to: Sequence[str], sender: str) -> bytes:
    envelope = json.dumps({"to": list(to), "from": sender})
    # What stands in "to" is the header of the mail, and "dkim" is no JSON.
    told = [("to", "somebody@else.example"), ("dkim", "{@client.example : pass}"), ("SPF", "pass")]
    return form([*told, *content, ("envelope", envelope)])


def sendgrid_raw(raw: bytes) -> list[tuple[str, Any]]:
    return [("email", raw)]


def sendgrid_parsed(raw: bytes) -> list[tuple[str, Any]]:
    message = parsed(raw)
    files = files_of(message)
    info = {f"attachment{number}": {"filename": one[0]} for number, one in enumerate(files, start=1)}
    return [
        ("headers", "".join(f"{name}: {value}\n" for name, value in message.items())),
        ("text", text_of(message)),
        ("charsets", json.dumps({"to": "UTF-8", "text": "UTF-8"})),
        ("attachments", str(len(files))),
        ("attachment-info", json.dumps(info)),
        *((f"attachment{number}", file) for number, file in enumerate(files, start=1)),
    ]


def postmark(content: dict[str, Any], *, to: str, sender: str) -> bytes:
    headers = [{"Name": "Return-Path", "Value": f"<{sender}>"}, *content.pop("Headers", [])]
    told = {"OriginalRecipient": to, "MessageID": "22c74902-a0c1-4511-804f2-341342852c90", "Headers": headers}
    return json.dumps({**told, **content}).encode()


def postmark_raw(raw: bytes) -> dict[str, Any]:
    return {"RawEmail": raw.decode()}


def postmark_parsed(raw: bytes) -> dict[str, Any]:
    message = parsed(raw)
    apart = ("from", "to", "cc", "subject", "date", "reply-to")
    return {
        "FromFull": mailboxes(message, "From")[0] if message["From"] else None,
        "ToFull": mailboxes(message, "To"),
        "CcFull": mailboxes(message, "Cc"),
        "Subject": str(message["Subject"] or ""),
        "Date": str(message["Date"] or ""),
        "TextBody": text_of(message),
        "HtmlBody": "",
        "Headers": [
            {"Name": name, "Value": str(value)} for name, value in message.items() if name.lower() not in apart
        ],
        "Attachments": [
            {"Name": name, "ContentType": kind, "Content": b64encode(data).decode(), "ContentLength": len(data)}
            for name, kind, data in files_of(message)
        ],
    }


def mailboxes(message: EmailMessage, name: str) -> list[dict[str, str]]:
    field = message[name]
    return [{"Email": one.addr_spec, "Name": one.display_name} for one in field.addresses] if field else []
