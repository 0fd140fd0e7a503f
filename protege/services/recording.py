"""A parsed mail becomes a message of a thread, and a run is queued for it; the one place that writes inbound mails."""

from collections.abc import Sequence

from django.core.files.base import ContentFile
from django.db import IntegrityError, transaction

from personas.models import Persona, ReplyMode
from protege.exceptions import MailError
from protege.mail.composing import plain_text
from protege.mail.headers import substitute_id
from protege.mail.parsing import ParsedAttachment, ParsedMail
from protege.mail.text import readable
from protege.services import bounces, governor, matching, pausing, policy, run_life, stepping_in
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
    stopped = policy.stopped(persona, mail, inbound)
    with transaction.atomic():
        if stopped is not None:
            _settle(inbound, *stopped)
            return
        if not _settle(inbound, InboundStatus.PROCESSED):
            return
        _wait_for_others(persona)
        duplicate = matching.duplicate(persona, mail)
        if duplicate is not None and duplicate[1] not in inbound.waived:
            _amend(inbound, *duplicate)
        elif mail.bounce is not None:
            _store_bounce(inbound, persona, mail)
        else:
            _store(inbound, persona, mail)


def _wait_for_others(persona: Persona) -> None:
    """Mails to one persona are recorded one after the other, so that what duplicates and limits are told by still
    holds when the mail is written. SQLite has one writer anyway. NO KEY: runs of the persona need not wait.
    """
    Persona.objects.select_for_update(no_key=True).filter(pk=persona.pk).values_list("pk").first()


def draft_message(persona: Persona, mail: ParsedMail) -> Message:
    """The unsaved message that `mail` would become; reads, and writes nothing."""
    message = _unsaved(persona, mail, matching.match_thread(persona, mail))
    message.sequence = message.thread.last_sequence + 1
    return message


def _store(inbound: InboundMail, persona: Persona, mail: ParsedMail) -> None:
    match = matching.match_thread(persona, mail)
    message = _unsaved(persona, mail, match)
    silenced = stepping_in.thread_to_pause(persona, mail, match)
    reason = stepping_in.REASON if silenced else policy.not_answered(persona, mail)
    answered = not reason and not message.thread.paused_at
    if answered and message.thread.effective_reply_mode == ReplyMode.AUTO:
        objection = governor.objection(message, waived=inbound.waived)
        if objection:
            _amend(inbound, InboundStatus.QUARANTINED, objection)
            governor.alert(inbound, objection)
            return
    _write(inbound, message, reason)
    _note_sender(persona, mail, message.thread)
    if silenced:
        pausing.pause(silenced)
    elif answered and message.thread.effective_reply_mode != ReplyMode.OFF:
        run_life.queue_reply(message)
    refresh_status(message.thread.pk)


def _store_bounce(inbound: InboundMail, persona: Persona, mail: ParsedMail) -> None:
    """Note on the thread of a mail of ours that it came back; what names none opens no thread."""
    assert mail.bounce is not None
    failure = bounces.failure_of(persona, mail.bounce)
    if failure is None:
        _amend(inbound, InboundStatus.IGNORED, bounces.UNKNOWN)
        return
    _write(inbound, _unsaved(persona, mail, matching.Match(failure.message.thread)), bounces.REASON)
    bounces.mark_failing(failure)
    refresh_status(failure.message.thread_id)


def _write(inbound: InboundMail, message: Message, reason: str) -> None:
    """Insert the message with its files and thread; with a `reason` it is one that is not answered."""
    if message.thread.pk is None:
        message.thread.save()
    if reason:
        message.status, message.last_code = MessageStatus.IGNORED, reason
    _take_place(message)
    for attachment in message.unsaved_files:
        attachment.save()
    _amend(inbound, InboundStatus.IGNORED if reason else InboundStatus.PROCESSED, reason, message)
    when_committed(lambda: mail_received.send_robust(sender=Message, message=message))


def _note_sender(persona: Persona, mail: ParsedMail, thread: EmailThread) -> None:
    """Who writes takes part; of a contact form it is the person who filled it in."""
    who = policy.correspondent(persona, mail)
    if who is not None:
        Participant.objects.get_or_create(thread=thread, address=who.address, defaults={"name": who.name})
    for sender in mail.from_[:1]:
        bounces.clear_failing(persona, sender.address)


def _take_place(message: Message) -> None:
    """Insert the message under its own id, or under one of ours when another sender's mail holds that id."""
    message.sequence = EmailThread.objects.take_sequence(message.thread.pk)
    if not Message.objects.filter(persona=message.persona, message_id=message.message_id).exists():
        try:
            with transaction.atomic():
                message.save()
            return
        except IntegrityError:
            raise _RaceLostError("Another worker stored a mail with this Message-ID at the same moment.") from None
    message.claimed_message_id = message.message_id
    message.message_id = substitute_id(message.message_id, message.from_address, message.text_body)
    message.save()


def _unsaved(persona: Persona, mail: ParsedMail, match: matching.Match) -> Message:
    """The message with its files and, where it joins none, its new thread; nothing of it is stored yet."""
    thread = match.thread or _new_thread(persona, mail, match)
    message = _message(persona, mail, thread, extra=["thread_claim_refused"] * match.refused)
    message.unsaved_files = [_attachment(message, item) for item in mail.attachments]
    return message


def _new_thread(persona: Persona, mail: ParsedMail, match: matching.Match) -> EmailThread:
    who = policy.correspondent(persona, mail)
    return EmailThread(
        persona=persona,
        tenant=persona.tenant,
        correspondent=who.address if who else "",
        subject=mail.subject,
        counted_with=match.counted_with,
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
        trust=policy.trust(persona, mail),
        warnings=policy.warnings(mail, extra),
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
        size=item.size,
        sha256=item.sha256,
        content_id=item.content_id,
        inline=item.inline,
        damaged=item.damaged,
        file=ContentFile(item.data, name="file"),
    )


def _settle(inbound: InboundMail, status: str, reason: str = "") -> bool:
    """Claim the row by ending its state `received`; False when another worker has done so."""
    waiting = InboundMail.objects.filter(pk=inbound.pk, status=InboundStatus.RECEIVED)
    return waiting.update(status=status, reason=reason, attempts=inbound.attempts + 1) == 1


def _amend(inbound: InboundMail, status: str, reason: str, message: Message | None = None) -> None:
    InboundMail.objects.filter(pk=inbound.pk).update(status=status, reason=reason, message=message)
