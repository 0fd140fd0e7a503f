"""One mail handed to Django's e-mail backend, and what came of it."""

import smtplib
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parseaddr
from typing import Any

from django.conf import settings
from django.core import mail as django_mail
from django.core.mail import EmailMessage
from django.core.mail.backends.smtp import EmailBackend

from protege.exceptions import MailError


@dataclass(frozen=True, slots=True)
class Posted:
    """`provider_id` is the id that a sending service gave the mail, or ""; `refused` the recipients whom the mail
    server did not take while it took others, in lower case and each with its SMTP code."""

    provider_id: str = ""
    refused: Mapping[str, int] = field(default_factory=dict)


def post(email: EmailMessage) -> Posted:
    """Send the mail; raises what the backend raises, which `failure_code` makes a word of."""
    backend = _backend()
    refused: Mapping[str, int] = {}
    if isinstance(backend, EmailBackend):
        refused = _send_by_smtp(backend, email)
    else:
        backend.send_messages([email])
    provider_id = getattr(getattr(email, "anymail_status", None), "message_id", None)
    return Posted(str(provider_id)[:255] if provider_id else "", refused)


def _backend() -> Any:
    """The configured backend. From Django 6.1 on a project may have `MAILERS` instead of the `EMAIL_` settings."""
    if getattr(settings, "MAILERS", None):
        return django_mail.mailers.default
    return django_mail.get_connection(fail_silently=False)


def _send_by_smtp(backend: EmailBackend, email: EmailMessage) -> dict[str, int]:
    """Send the mail, and tell whom the server has refused.

    `smtplib` raises only when it has refused everybody; that it refused some is what `sendmail` returns, and Django's
    backend drops it.
    """
    refused: dict[str, int] = {}
    with backend:  # opens, and closes whatever happens
        server: Any = backend.connection
        sendmail = server.sendmail

        def noting(*args: Any, **kwargs: Any) -> dict[str, tuple[int, bytes]]:
            found: dict[str, tuple[int, bytes]] = sendmail(*args, **kwargs)
            refused.update({parseaddr(address)[1].lower(): code for address, (code, _) in found.items()})
            return found

        server.sendmail = noting
        backend.send_messages([email])
    return refused


def failure_code(error: Exception) -> str:
    """`refused` for a permanent no of the mail server, `temporary` for a no that may change, else what failed."""
    if isinstance(error, MailError):
        return error.code
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        codes = [code for code, _ in error.recipients.values()]
        return "refused" if all(code >= 500 for code in codes) else "temporary"
    if isinstance(error, smtplib.SMTPResponseException):
        return "refused" if error.smtp_code >= 500 else "temporary"
    return "connection" if isinstance(error, OSError) else "error"
