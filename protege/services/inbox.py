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
from protege.mail.limits import ADDRESS_LENGTH, MAX_HEADER_BYTES
from protege.mail.parsing import ParsedMail
from protege.mail.parsing import parse as parse_mail
from protege.mail.providers import payload_of
from protege.services import recording, routing
from protege.services.wakeups import MAIL_QUEUE, coded_errors, task
from protege.untrusted import storable
from threads.models import InboundMail, InboundStatus, Message, RawMail

logger = logging.getLogger("protege.inbox")

MAIL_TYPE = "message/rfc822"

SOURCE_LENGTH = 50

_END_OF_HEADERS = re.compile(rb"\r?\n\r?\n")


def receive(
    raw: bytes,
    *,
    recipients: Sequence[str] = (),
    sender: str | None = None,
    source: str = "",
    tenant: str | None = None,
    reached_at: datetime | None = None,
    media_type: str = MAIL_TYPE,
    fault: str = "",
) -> list[InboundMail]:
    """Take a mail, as RFC 5322 bytes, and do all that can be done at once; one row for each persona it reaches.

    `recipients` and `sender` are the envelope's (`""` is the null path, None unknown); `tenant` is the one the door
    is bound to; `reached_at` is when the mail server took the mail, where the door knows. When this returns, the
    mail is stored; it raises only when it could not be.

    `media_type` is another one when `raw` is what the provider named by `source` posted in a form of its own.
    `fault` is the code of why the door could not bring the whole mail: then it is kept as `failed`, unprocessed.
    """
    inbound = _store(
        raw,
        media_type=media_type,
        fault=fault,
        recipients=[storable(address).strip()[:ADDRESS_LENGTH] for address in recipients],
        sender=None if sender is None else storable(sender).strip()[:ADDRESS_LENGTH],
        source=source[:SOURCE_LENGTH],
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
    except Exception as error:  # the mail is stored: whatever failed is recorded on its row
        return [_record_failure(inbound, error)]
    return [_deliver(delivery, mail) for delivery in deliveries]


@task(queue_name=MAIL_QUEUE)
def process_task(inbound_id: int) -> None:
    """Wake-up for a mail that its door stored and did not get to process."""
    with coded_errors():
        process(inbound_id)


def release(inbound_id: int) -> InboundMail:
    """Let a quarantined mail in: what follows its commit is done again without the rule that stopped it.

    Another rule may stop it then, which is released in the same way. `MailError` when it is not quarantined.
    """
    inbound = InboundMail.objects.get(pk=inbound_id)
    waived = [*inbound.waived, inbound.reason]
    if not _reopen(inbound, InboundStatus.QUARANTINED, waived=waived):
        raise MailError(f"Inbound mail {inbound_id} is not quarantined. Reload it.", code="not_quarantined")
    return process(inbound_id)[0]


def rerun(inbound_id: int) -> list[InboundMail]:
    """Process a failed or unroutable mail again, from its stored bytes; one row for each persona it reaches.

    `MailError` when it is neither, or when its text was not kept.
    """
    inbound = InboundMail.objects.get(pk=inbound_id)
    if inbound.reason == "too_large":
        raise MailError("Only the headers of this mail were kept. Have it sent again, smaller.", code="too_large")
    if not _reopen(inbound, InboundStatus.FAILED, InboundStatus.UNROUTABLE):
        raise MailError(f"Inbound mail {inbound_id} has not failed. Reload it.", code="not_failed")
    return process(inbound_id)


def release_waiting(persona: Persona) -> list[InboundMail]:
    """Take in what came while the persona was inactive, in the order in which it came; nothing while it still is."""
    if not persona.is_active:
        return []
    waiting = InboundMail.objects.filter(
        persona=persona, status=InboundStatus.QUARANTINED, reason="persona_inactive"
    ).order_by("received_at", "pk")
    return [row for inbound in waiting if _reopen(inbound, InboundStatus.QUARANTINED) for row in process(inbound.pk)]


def _reopen(inbound: InboundMail, *closed: InboundStatus, **fields: object) -> bool:
    """Back to `received`; False when the row is in another state by now. Of two who ask, one gets True."""
    found = InboundMail.objects.filter(pk=inbound.pk, status__in=closed, reason=inbound.reason)
    return found.update(status=InboundStatus.RECEIVED, reason="", **fields) == 1


def _deliver(inbound: InboundMail, mail: ParsedMail) -> InboundMail:
    if inbound.persona is None or inbound.status != InboundStatus.RECEIVED:
        return inbound
    try:
        recording.record(inbound, mail)
    except Exception as error:  # the mail is stored: whatever failed is recorded on its row
        return _record_failure(inbound, error)
    inbound.refresh_from_db()
    return inbound


def _store(raw: bytes, *, media_type: str, fault: str, **envelope: object) -> InboundMail:
    """Commit the bytes and one row without persona, durably: not inside anybody's open transaction."""
    too_large = len(raw) > conf.load().mail_size_limit
    kept = _END_OF_HEADERS.split(raw[:MAX_HEADER_BYTES], maxsplit=1)[0] if too_large else raw
    reason = "too_large" if too_large else fault
    with transaction.atomic(durable=True):
        stored = RawMail.objects.create(
            sha256=hashlib.sha256(raw).hexdigest(), media_type=media_type, content=RawMail.pack(kept)
        )
        return InboundMail.objects.create(
            raw=stored,
            status=InboundStatus.FAILED if reason else InboundStatus.RECEIVED,
            reason=reason,
            **envelope,
        )


def _raw_bytes(inbound: InboundMail) -> bytes:
    if inbound.raw is None:
        raise MailError("The raw source of this mail is no longer kept.", code="raw_gone")
    raw = inbound.raw.unpack()
    if inbound.raw.media_type == MAIL_TYPE:
        return raw
    return payload_of(inbound.source.partition(":")[0], raw, media_type=inbound.raw.media_type).to_mime()


def _record_failure(inbound: InboundMail, error: Exception) -> InboundMail:
    """Keep the mail where a person finds it; the log line names the class of the error and nothing of the mail."""
    code = error.code if isinstance(error, MailError) else "error"
    logger.error("inbound mail %s could not be processed: %s", inbound.pk, describe(error))
    InboundMail.objects.filter(pk=inbound.pk, status=InboundStatus.RECEIVED).update(
        status=InboundStatus.FAILED, reason=code, attempts=inbound.attempts + 1
    )
    inbound.refresh_from_db()
    return inbound
