"""Mail in: raw bytes are committed first, then parsed, routed, threaded and recorded, and a run is queued.

A mail that was accepted is never lost: whatever fails after the commit leaves its row `failed` or `quarantined`,
with a code, for a person to see and to run again.
"""

import hashlib
import logging
import re
from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from personas.models import Persona
from protege import conf
from protege.exceptions import MailError, describe
from protege.mail.parsing import ParsedMail
from protege.mail.parsing import parse as parse_mail
from protege.services import recording, routing
from protege.services.wakeups import MAIL_QUEUE, task
from threads.models import InboundMail, InboundStatus, Message, RawMail

logger = logging.getLogger("protege.inbox")

HEADER_LIMIT = 256 * 1024
"""Bytes that are kept of a mail which is too large."""

_END_OF_HEADERS = re.compile(rb"\r?\n\r?\n")


def receive(
    raw: bytes,
    *,
    recipients: Sequence[str] = (),
    sender: str | None = None,
    source: str = "",
    tenant: str | None = None,
    reached_at: datetime | None = None,
) -> list[InboundMail]:
    """Take a mail, as RFC 5322 bytes, and do all that can be done at once; one row for each persona it reaches.

    `recipients` and `sender` are the envelope's (`""` is the null path, None unknown); `tenant` is the one the door
    is bound to; `reached_at` is when the mail server took the mail, where the door knows. When this returns, the
    mail is stored; it raises only when it could not be.
    """
    inbound = _store(
        raw,
        recipients=[address.strip() for address in recipients],
        sender=sender,
        source=source,
        tenant=tenant or "",
        reached_at=reached_at,
    )
    return process(inbound.pk)


def parse(raw: bytes, persona: Persona, *, sender: str | None = None) -> Message:
    """The mail as it would be stored for `persona`, unsaved; its thread is looked up and nothing is written."""
    return recording.draft_message(persona, parse_mail(raw, sender=sender))


def process(inbound_id: int) -> list[InboundMail]:
    """Route a stored mail and deliver it to each persona; a failure is recorded and stops no other delivery."""
    inbound = InboundMail.objects.select_related("raw", "persona").get(pk=inbound_id)
    if inbound.status != InboundStatus.RECEIVED:
        return [inbound]
    try:
        mail = parse_mail(_raw_bytes(inbound), sender=inbound.sender)
        deliveries = routing.split(inbound, mail)
    except Exception as error:
        return [_record_failure(inbound, error)]
    return [_deliver(delivery, mail) for delivery in deliveries]


@task(queue_name=MAIL_QUEUE)
def process_task(inbound_id: int) -> None:
    """Wake-up for a mail that its door stored and did not get to process."""
    process(inbound_id)


def _deliver(inbound: InboundMail, mail: ParsedMail) -> InboundMail:
    if inbound.persona is None or inbound.status != InboundStatus.RECEIVED:
        return inbound
    try:
        recording.record(inbound, mail)
    except Exception as error:
        return _record_failure(inbound, error)
    inbound.refresh_from_db()
    return inbound


def _store(raw: bytes, **envelope: object) -> InboundMail:
    """Commit the bytes and one row without persona, durably: not inside anybody's open transaction."""
    too_large = len(raw) > conf.load().mail_size_limit
    kept = _END_OF_HEADERS.split(raw[:HEADER_LIMIT], maxsplit=1)[0] if too_large else raw
    with transaction.atomic(durable=True):
        stored = RawMail.objects.create(sha256=hashlib.sha256(raw).hexdigest(), content=RawMail.pack(kept))
        return InboundMail.objects.create(
            raw=stored,
            status=InboundStatus.FAILED if too_large else InboundStatus.RECEIVED,
            reason="too_large" if too_large else "",
            **envelope,
        )


def _raw_bytes(inbound: InboundMail) -> bytes:
    if inbound.raw is None:
        raise MailError("The raw source of this mail is no longer kept.", code="raw_gone")
    return inbound.raw.unpack()


def _record_failure(inbound: InboundMail, error: Exception) -> InboundMail:
    """Keep the mail where a person finds it; the log line names the class of the error and nothing of the mail."""
    code = error.code if isinstance(error, MailError) else "error"
    logger.error("inbound mail %s could not be processed: %s", inbound.pk, describe(error))
    InboundMail.objects.filter(pk=inbound.pk, status=InboundStatus.RECEIVED).update(
        status=InboundStatus.FAILED, reason=code, attempts=inbound.attempts + 1
    )
    inbound.refresh_from_db()
    return inbound
