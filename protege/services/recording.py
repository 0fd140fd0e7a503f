"""A parsed mail becomes a message of a thread: who may write, whose thread it is, and whether it is answered."""

import hashlib
from collections.abc import Sequence
from fnmatch import fnmatchcase

from django.core.files.base import ContentFile
from django.db import IntegrityError, transaction
from django.db.models import Q

from personas.models import Persona, ReplyMode
from protege.exceptions import MailError
from protege.mail.composing import plain_text
from protege.mail.parsing import ParsedAttachment, ParsedMail
from protege.mail.text import readable
from protege.services import run_life
from protege.services.routing import own_addresses
from protege.services.wakeups import when_committed
from protege.signals import mail_received
from threads.models import (
    Attachment,
    Direction,
    EmailThread,
    InboundMail,
    InboundStatus,
    Message,
    MessageStatus,
    Participant,
)
from threads.status import refresh_status

KNOWN_TEXTS = 50
"""How many of a thread's last mails are looked at to tell which quotes it already holds."""


def record(inbound: InboundMail, mail: ParsedMail) -> None:
    """Store `mail` for the persona of `inbound` and queue its run; the row says in the end what became of it.

    The only guard against duplicates is the constraint on (persona, message_id). Who meets it has lost a race that
    is decided by now, so that the second look finds what the other worker stored.
    """
    try:
        _record(inbound, mail)
    except _RaceLostError:
        _record(inbound, mail)


class _RaceLostError(MailError):
    code = "race"


def _record(inbound: InboundMail, mail: ParsedMail) -> None:
    """One try, in one transaction; its first statement claims the row, so that two workers record it once."""
    persona = inbound.persona
    assert persona is not None, "routing comes first"
    stopped = _stopped(persona, mail)
    with transaction.atomic():
        if stopped is not None:
            _settle(inbound, *stopped)
            return
        if not _settle(inbound, InboundStatus.PROCESSED):
            return
        duplicate = _duplicate(persona, mail)
        if duplicate is not None:
            _amend(inbound, *duplicate)
            return
        _store(inbound, persona, mail)


def draft_message(persona: Persona, mail: ParsedMail) -> Message:
    """The unsaved message that `mail` would become; reads, and writes nothing."""
    thread, refused = match_thread(persona, mail)
    message = _message(persona, mail, thread or _new_thread(persona, mail), extra=["thread_claim_refused"] * refused)
    message.sequence = message.thread.last_sequence + 1
    message.unsaved_files = [_attachment(message, item) for item in mail.attachments]
    return message


def match_thread(persona: Persona, mail: ParsedMail) -> tuple[EmailThread | None, bool]:
    """The thread of this persona that the mail answers, and whether it named one that its sender is not part of.

    In-Reply-To first, then References from the newest back. Knowing an id is not enough: the sender must be a
    participant. A subject never matches.
    """
    ids = list(dict.fromkeys([mail.in_reply_to, *reversed(mail.references)]))
    holders = _holders(persona, [item for item in ids if item])
    sender = mail.from_[0].address if mail.from_ else ""
    joined = set(
        Participant.objects.filter(thread__in={message.thread_id for message in holders}, address=sender).values_list(
            "thread_id", flat=True
        )
    )
    for claimed in ids:
        for message in holders:
            if claimed in _ids_of(message) and message.thread_id in joined:
                return message.thread, False
    return None, bool(holders)


def _holders(persona: Persona, ids: Sequence[str]) -> list[Message]:
    if not ids:
        return []
    holds = Q(message_id__in=ids) | Q(claimed_message_id__in=ids) | Q(provider_message_id__in=ids)
    return list(Message.objects.filter(holds, persona=persona).select_related("thread", "thread__persona"))


def _ids_of(message: Message) -> set[str]:
    return {message.message_id, message.claimed_message_id, message.provider_message_id} - {""}


def _stopped(persona: Persona, mail: ParsedMail) -> tuple[str, str] | None:
    """Status and reason for a mail that becomes no message at all."""
    if not persona.is_active:
        return InboundStatus.QUARANTINED, "persona_inactive"
    if len(mail.from_) != 1:
        return InboundStatus.QUARANTINED, "no_single_sender"
    sender = mail.from_[0].address
    if _matches(sender, persona.denied_senders):
        return InboundStatus.IGNORED, "denied_sender"
    if persona.allowed_senders and not _matches(sender, persona.allowed_senders):
        return InboundStatus.QUARANTINED, "sender_not_allowed"
    return None


def _matches(address: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(address.lower(), pattern.lower()) for pattern in patterns)


def _duplicate(persona: Persona, mail: ParsedMail) -> tuple[str, str] | None:
    """Status and reason when the persona holds this Message-ID from this sender already."""
    sender = mail.from_[0].address
    held = Message.objects.filter(
        Q(message_id=mail.message_id) | Q(claimed_message_id=mail.message_id), persona=persona, from_address=sender
    ).first()
    if held is None:
        return None
    return (InboundStatus.DUPLICATE, "") if _same_text(held, mail) else (InboundStatus.QUARANTINED, "duplicate_id")


def _same_text(held: Message, mail: ParsedMail) -> bool:
    """True when one text is the other with a footer added, as lists and scanners do on the way."""
    one, other = held.text_body.split(), mail.text_body.split()
    short, long = sorted((one, other), key=len)
    return long[: len(short)] == short and (bool(short) or not long)


def _store(inbound: InboundMail, persona: Persona, mail: ParsedMail) -> None:
    thread, refused = match_thread(persona, mail)
    if thread is None:
        thread = _new_thread(persona, mail)
        thread.save()
    message = _message(persona, mail, thread, extra=["thread_claim_refused"] * refused)
    _take_place(message)
    for item in mail.attachments:
        _attachment(message, item).save()
    Participant.objects.get_or_create(thread=thread, address=message.from_address, defaults={"name": message.from_name})
    reason = _not_answered(message, mail)
    if reason:
        message.status, message.last_code = MessageStatus.IGNORED, reason
        message.save(update_fields=["status", "last_code"])
    _amend(inbound, InboundStatus.IGNORED if reason else InboundStatus.PROCESSED, reason, message)
    if not reason and not thread.paused_at and thread.effective_reply_mode != ReplyMode.OFF:
        run_life.queue_reply(message)
    refresh_status(thread.pk)
    when_committed(lambda: mail_received.send_robust(sender=Message, message=message))


def _take_place(message: Message) -> None:
    """Insert the message under its own id, or under one of ours when another sender's mail holds that id."""
    message.sequence = EmailThread.objects.take_sequence(message.thread_id)
    if not Message.objects.filter(persona=message.persona, message_id=message.message_id).exists():
        try:
            with transaction.atomic():
                message.save()
            return
        except IntegrityError:
            raise _RaceLostError("Another worker stored a mail with this Message-ID at the same moment.") from None
    message.claimed_message_id, message.message_id = message.message_id, _substitute_id(message)
    message.save()


def _substitute_id(message: Message) -> str:
    told = "\n".join([message.message_id, message.from_address, message.text_body])
    return f"<{hashlib.sha256(told.encode()).hexdigest()}@id.invalid>"


def _new_thread(persona: Persona, mail: ParsedMail) -> EmailThread:
    return EmailThread(
        persona=persona,
        tenant=persona.tenant,
        correspondent=mail.from_[0].address if mail.from_ else "",
        subject=mail.subject,
    )


def _message(persona: Persona, mail: ParsedMail, thread: EmailThread, *, extra: Sequence[str] = ()) -> Message:
    sender = mail.from_[0] if mail.from_ else None
    return Message(
        thread=thread,
        persona=persona,
        direction=Direction.INBOUND,
        status=MessageStatus.RECEIVED,
        message_id=mail.message_id,
        in_reply_to=mail.in_reply_to,
        references=list(mail.references),
        from_address=sender.address if sender else "",
        from_name=sender.name if sender else "",
        to=[mailbox.to_dict() for mailbox in mail.to],
        cc=[mailbox.to_dict() for mailbox in mail.cc],
        reply_to=[mailbox.to_dict() for mailbox in mail.reply_to],
        subject=mail.subject,
        text_body=mail.text_body,
        readable_body=readable(mail.text_body, thread_texts=_thread_texts(thread)),
        sent_at=mail.date,
        warnings=[*mail.warnings, *extra],
    )


def _thread_texts(thread: EmailThread) -> list[str]:
    """The texts that a quote in this thread may repeat."""
    if thread.pk is None:
        return []
    placed = Message.objects.filter(thread=thread, sequence__isnull=False).order_by("-sequence")
    texts = placed.values_list("direction", "text_body")[:KNOWN_TEXTS]
    signature = thread.persona.signature
    return [text if direction == Direction.INBOUND else plain_text(text, signature) for direction, text in texts]


def _attachment(message: Message, item: ParsedAttachment) -> Attachment:
    return Attachment(
        message=message,
        filename=item.filename,
        content_type=item.content_type,
        size=len(item.data),
        sha256=hashlib.sha256(item.data).hexdigest(),
        content_id=item.content_id,
        inline=item.inline,
        damaged=item.damaged,
        file=ContentFile(item.data, name="file"),
    )


def _not_answered(message: Message, mail: ParsedMail) -> str:
    """Why a stored mail gets no answer; "" when it gets one."""
    if mail.automatic:
        return mail.automatic
    return "own_address" if own_addresses([message.from_address]) else ""


def _settle(inbound: InboundMail, status: str, reason: str = "") -> bool:
    """Claim the row by ending its state `received`; False when another worker has done so."""
    waiting = InboundMail.objects.filter(pk=inbound.pk, status=InboundStatus.RECEIVED)
    return waiting.update(status=status, reason=reason, attempts=inbound.attempts + 1) == 1


def _amend(inbound: InboundMail, status: str, reason: str, message: Message | None = None) -> None:
    InboundMail.objects.filter(pk=inbound.pk).update(status=status, reason=reason, message=message)
