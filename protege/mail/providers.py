"""The providers whose posts are read, each with the places where its form has what we need."""

import json
from base64 import b64decode
from functools import cached_property
from typing import Any

from django.http import HttpRequest

from protege.exceptions import MailError
from protege.mail.forms import Field
from protege.mail.payloads import (
    UNREADABLE,
    FormPayload,
    Payload,
    PayloadRequest,
    addresses_in,
    header_values,
    is_utf8,
    json_object,
)


class MailgunPayload(FormPayload):
    """Mailgun gives the mail as it came when the route's address has `mime` in it."""

    view_path = "anymail.webhooks.mailgun.MailgunInboundWebhookView"
    refusal = 406
    signed = True

    @property
    def recipients(self) -> list[str]:
        return addresses_in(self.text("recipient") or "")

    @property
    def sender(self) -> str | None:
        return self.text("sender")

    @property
    def raw_mail(self) -> bytes | None:
        return self.value("body-mime") or None

    def _no_secrets(self) -> dict[str, str]:
        return {**super()._no_secrets(), "webhook_signing_key": "checked"}

    def _fields_for_anymail(self) -> list[Field]:
        return [_cleaned(one) if one.name == "message-headers" else one for one in self.fields]


def _cleaned(one: Field) -> Field:
    """Header fields, posted as JSON, with nothing in them that no header can hold."""
    try:
        headers = header_values(json.loads(one.value))
    except ValueError:
        return one
    return Field(name=one.name, value=json.dumps(headers).encode())


class SendGridPayload(FormPayload):
    """SendGrid gives the mail as it came with "Send Raw"; all of its recipients stand in `envelope` only."""

    view_path = "anymail.webhooks.sendgrid.SendGridInboundWebhookView"

    @cached_property
    def envelope(self) -> dict[str, Any]:
        return json_object(self.value("envelope") or b"")

    @property
    def recipients(self) -> list[str]:
        to = self.envelope.get("to")
        return [str(address) for address in to] if isinstance(to, list) else []

    @property
    def sender(self) -> str | None:
        sender = self.envelope.get("from")
        return sender if isinstance(sender, str) else None

    @property
    def raw_mail(self) -> bytes | None:
        return self.value("email") or None


class PostmarkPayload(Payload):
    """Postmark posts JSON, with the mail as it came when "Include raw email content" is on."""

    view_path = "anymail.webhooks.postmark.PostmarkInboundWebhookView"
    refusal = 403

    BODIES = ("RawEmail", "TextBody", "HtmlBody", "StrippedTextReply")

    @cached_property
    def event(self) -> dict[str, Any]:
        return json_object(self.body)

    @property
    def recipients(self) -> list[str]:
        return addresses_in(str(self.event.get("OriginalRecipient") or ""))

    @property
    def sender(self) -> str | None:
        """Postmark puts the return path before all other headers; one further down is the sender's own."""
        match self.event.get("Headers"):
            case [{"Name": str(name), "Value": str(value)}, *_] if name.lower() == "return-path":
                return value.strip().removeprefix("<").removesuffix(">")
        return None

    @property
    def raw_mail(self) -> bytes | None:
        raw = self.event.get("RawEmail")
        return raw.encode() if isinstance(raw, str) and raw.strip() else None

    def to_mime(self) -> bytes:
        if not self.event:  # anymail would make an empty mail of it
            raise MailError("The provider's payload is no JSON object.", code=UNREADABLE)
        return super().to_mime()

    def request(self, **meta: str) -> HttpRequest:
        event = {key: item if key in self.BODIES else header_values(item) for key, item in self.event.items()}
        if isinstance(event.get("Attachments"), list):
            event["Attachments"] = [_attachment(item) for item in event["Attachments"]]
        return PayloadRequest(json.dumps(event).encode(), self.media_type, meta)


def _attachment(item: Any) -> Any:
    """As `_uploaded`, for a file that stands as base64 in JSON."""
    match item:
        case {"ContentType": str(kind), "Content": str(data)} if kind.startswith("message/"):
            return {**item, "ContentType": kind if is_utf8(b64decode(data)) else "application/octet-stream"}
    return item


PROVIDERS: dict[str, type[Payload]] = {
    "mailgun": MailgunPayload,
    "postmark": PostmarkPayload,
    "sendgrid": SendGridPayload,
}


def payload_of(provider: str, body: bytes, *, media_type: str) -> Payload:
    """The post of a provider, by the name under which its door takes it."""
    if provider not in PROVIDERS:
        raise MailError("Nobody reads payloads of this provider. See protege.mail.providers.", code=UNREADABLE)
    return PROVIDERS[provider](body, media_type)
