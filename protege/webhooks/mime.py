"""`POST /inbound/mime/`: a mail as it is, from a mail server or a script."""

from email.utils import getaddresses

from django.http import HttpRequest, HttpResponse

from protege import conf
from protege.services import inbox
from protege.webhooks.door import RefusedError, accepted, door, read_body
from protege.webhooks.secrets import admit


@door("POST")
def receive_mime(request: HttpRequest) -> HttpResponse:
    """Take the body as a mail. The envelope stands in `?to=...&from=...` or in X-Envelope-To and X-Envelope-From."""
    admission = admit(request)
    if request.content_type != inbox.MAIL_TYPE:
        raise RefusedError(415, "media_type", "Post the mail as it is, with Content-Type: message/rfc822.")
    raw = read_body(request, limit=conf.load().mail_size_limit)
    deliveries = inbox.receive(
        raw,
        recipients=envelope_recipients(request),
        sender=envelope_sender(request),
        source=f"mime:{admission.label}",
        tenant=admission.tenant,
    )
    return accepted(deliveries)


def envelope_recipients(request: HttpRequest) -> list[str]:
    given = request.GET.getlist("to") or [request.headers.get("X-Envelope-To", "")]
    return [address for _, address in getaddresses(given) if address]


def envelope_sender(request: HttpRequest) -> str | None:
    """None when it is not said; an empty one, or `<>`, is the null path."""
    given = request.GET.get("from", request.headers.get("X-Envelope-From"))
    return None if given is None else given.strip().removeprefix("<").removesuffix(">")
