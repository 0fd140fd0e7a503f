"""Mail that providers post, each in its form; django-anymail checks their secrets and knows their forms."""

import logging
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse

from protege import conf
from protege.exceptions import MailError, MissingExtraError, describe
from protege.mail.payloads import Payload
from protege.mail.providers import PROVIDERS, payload_of
from protege.services import inbox
from protege.webhooks.door import RefusedError, accepted, door, read_body
from protege.webhooks.secrets import admit

try:
    from anymail.exceptions import AnymailWebhookValidationFailure
    from anymail.utils import get_request_basic_auth
    from anymail.webhooks.base import AnymailBasicAuthMixin
except ImportError as error:
    raise MissingExtraError("django-anymail", "anymail") from error

logger = logging.getLogger("protege.webhooks")

PAYLOAD_FACTOR = 3
"""How much longer than a mail its payload may be: base64 in JSON, and the mail both as it came and taken apart."""


@door("POST", "HEAD")
def receive_payload(request: HttpRequest, *, provider: str, label: str = "") -> HttpResponse:
    """Take a provider's post. `label` names an entry of INBOUND_SECRETS: its secret is asked for, its tenant binds.

    Without it the secrets are those of anymail: WEBHOOK_SECRET, and the provider's signature where it has one.
    """
    if request.method == "HEAD":  # so some providers try the address when it is entered
        return HttpResponse()
    tenant = admit(request, label=label).tenant if label else None
    payload = _checked_payload(request, provider, by_label=bool(label))
    raw = payload.raw_mail
    deliveries = inbox.receive(
        payload.body if raw is None else raw,
        media_type=payload.media_type if raw is None else inbox.MAIL_TYPE,
        recipients=payload.recipients,
        sender=payload.sender,
        source=":".join(filter(None, [provider, label])),
        tenant=tenant,
    )
    return accepted(deliveries, too_large=payload.refusal)


def _checked_payload(request: HttpRequest, provider: str, *, by_label: bool) -> Payload:
    """The post, after anymail's checks: what the headers can show comes before anything is read."""
    view = _closed_view(request, PROVIDERS[provider], by_label=by_label)
    try:
        AnymailBasicAuthMixin.validate_request(view, request)
        payload = payload_of(provider, _body(request, PROVIDERS[provider]), media_type=_media_type(request))
        view.run_validators(payload.request(HTTP_AUTHORIZATION=request.META.get("HTTP_AUTHORIZATION", "")))
    except AnymailWebhookValidationFailure as error:
        raise RefusedError(403, "secret_required", str(error)) from error
    except MailError as error:
        raise RefusedError(400, error.code, str(error)) from error
    return payload


def _closed_view(request: HttpRequest, kind: type[Payload], *, by_label: bool) -> Any:
    """Anymail's view. Without any secret anymail would only warn; we let nobody in."""
    # The label's own secret has been checked: anymail compares what came with itself.
    options = {"webhook_secret": get_request_basic_auth(request)} if by_label else {}
    try:
        view = kind.view(**options)
    except ImproperlyConfigured as error:
        logger.error("a provider's webhook is closed, because anymail is not configured for it: %s", describe(error))
        raise RefusedError(403, "not_configured", str(error)) from error
    if not (by_label or view.basic_auth or kind.signed):
        raise RefusedError(403, "not_configured", "Set WEBHOOK_SECRET in ANYMAIL. Without a secret nobody is let in.")
    return view


def _body(request: HttpRequest, kind: type[Payload]) -> bytes:
    limit = conf.load().mail_size_limit * PAYLOAD_FACTOR
    body = read_body(request, limit=limit)
    if len(body) > limit:
        logger.warning("a provider's post of more than %s bytes was refused", limit)
        raise RefusedError(kind.refusal, "too_large", f"The post has more than {limit} bytes.")
    return body


def _media_type(request: HttpRequest) -> str:
    """The payload's type with what is needed to take it apart, so that it fits its column."""
    boundary = request.content_params.get("boundary") if request.content_params else None
    return f"{request.content_type}; boundary={boundary}" if boundary else str(request.content_type)
