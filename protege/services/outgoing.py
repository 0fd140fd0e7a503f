"""Writing outbound mails: the answer of a run, and what the tool `send_email` prepares."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction

from personas.models import Persona, ReplyMode
from protege.context import Context
from protege.exceptions import ToolFailure
from protege.mail.composing import new_message_id, reply_subject
from protege.services import bounces, delivery, documents, policy
from protege.services.routing import own_addresses
from protege.services.wakeups import when_committed
from protege.signals import draft_created
from threads.models import (
    Attachment,
    Direction,
    EmailThread,
    Message,
    MessageStatus,
    Origin,
    Participant,
    Run,
)

RECIPIENT_LIMIT = 20
REFERENCE_LIMIT = 100


def write_answer(run: Run, text: str) -> Message:
    """The closing text of a run as the answer to its mail: queued, or a draft where a person decides.

    Call it in the transaction that ends the run.
    """
    inbound = run.message
    assert inbound is not None, "only a reply run has an answer"
    message = _reply(inbound, run, text)
    message.status = MessageStatus.DRAFT if _mode(message) != ReplyMode.AUTO else MessageStatus.QUEUED
    _place(message)
    return message


def release_held(run: Run) -> list[Message]:
    """Let go what the run's tools prepared; call it in the transaction that ends the run well."""
    released = list(run.outbound.filter(status=MessageStatus.HELD).select_related("thread__persona", "answers"))
    for message in released:
        message.status = MessageStatus.QUEUED if _mode(message) == ReplyMode.AUTO else MessageStatus.DRAFT
        _place(message)
    return released


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMail:
    """A mail that a tool call has checked and not yet stored."""

    context: Context
    to: list[dict[str, str]]
    cc: list[dict[str, str]]
    subject: str
    body: str
    attachments: list[Attachment]
    is_answer: bool

    def summary(self) -> dict[str, Any]:
        """What the model is told."""
        everyone = [entry["address"] for entry in (*self.to, *self.cc)]
        return {"held": True, "recipients": everyone, "subject": self.subject, "is_your_answer": self.is_answer}

    def hold(self) -> None:
        """Store the mail as `held`, in the transaction that records the tool's result."""
        runs = Run.objects.select_related("message__thread__persona", "persona")
        run = runs.get(pk=self.context.run_id or 0)
        message = self._reply_in_thread(run) if self.is_answer else self._new_mail(run)
        try:
            with transaction.atomic():
                message.save()
        except IntegrityError:
            raise ToolFailure(
                "You have answered this mail already. One answer a mail: leave the rest out.", code="answered_already"
            ) from None
        for attachment in self.attachments:
            _copy_file(attachment, message)

    def _reply_in_thread(self, run: Run) -> Message:
        assert run.message is not None
        message = _reply(run.message, run, self.body)
        message.subject, message.to, message.cc = self.subject, self.to, self.cc
        return message

    def _new_mail(self, run: Run) -> Message:
        """Somebody outside the thread gets a thread of their own: their replies never join this one."""
        thread = EmailThread.objects.create(
            persona=run.persona,
            tenant=run.persona.tenant,
            correspondent=self.to[0]["address"],
            subject=self.subject,
            opened_from=run.message,
        )
        return _outbound(
            run.persona,
            thread=thread,
            run=run,
            origin=Origin.TOOL,
            to=self.to,
            cc=self.cc,
            subject=self.subject,
            text_body=self.body,
        )


def prepare_tool_mail(
    context: Context,
    *,
    to: Sequence[str],
    cc: Sequence[str],
    subject: str,
    body: str,
    attachments: Sequence[str],
) -> ToolMail:
    """Check a mail that the model wants to send; `ToolFailure` tells the model what is wrong.

    A mail to the sender alone is the answer to their mail. People who are not in the thread are written to only
    when the persona's policy for `send_email` is `allow`: mail is untrusted text, and it must not decide where
    ours goes.
    """
    if context.message is None:
        raise ToolFailure("There is no mail to answer in this run, so no mail can be sent from it.", code="no_thread")
    primary, copies = _addresses(to), _addresses(cc)
    sender = policy.correspondent_of(context.message).address
    is_answer = sender in primary
    _refuse_strangers(context, [*primary, *copies])
    return ToolMail(
        context=context,
        to=[{"name": "", "address": address} for address in primary],
        cc=[{"name": "", "address": address} for address in copies if address not in primary],
        subject=reply_subject(context.message.subject) if is_answer else " ".join(subject.split()),
        body=body,
        attachments=documents.find(context.message, attachments),
        is_answer=is_answer,
    )


def _addresses(given: Sequence[str]) -> list[str]:
    cleaned = list(dict.fromkeys(address.strip().lower() for address in given))
    for address in cleaned:
        try:
            validate_email(address)
        except ValidationError:
            raise ToolFailure(f"{address!r} is no e-mail address.", code="bad_address") from None
    own = own_addresses(cleaned)
    if own:
        raise ToolFailure(f"{sorted(own)[0]} is a persona's own address; it cannot be written to.", code="own_address")
    return cleaned


def _refuse_strangers(context: Context, addresses: Sequence[str]) -> None:
    assert context.message is not None
    if context.persona.tool_policies.get("send_email") == "allow":
        return
    known = set(
        Participant.objects.filter(thread=context.message.thread_id, address__in=addresses).values_list(
            "address", flat=True
        )
    )
    strangers = [address for address in addresses if address not in known]
    if strangers:
        raise ToolFailure(
            f"{strangers[0]} does not take part in this thread. A person has to allow mail to others.",
            code="recipient_not_allowed",
        )


def _reply(inbound: Message, run: Run, text: str) -> Message:
    return _outbound(
        inbound.persona,
        thread=inbound.thread,
        run=run,
        origin=Origin.ANSWER,
        answers=inbound,
        to=[policy.correspondent_of(inbound).to_dict()],
        subject=reply_subject(inbound.subject),
        text_body=text,
        in_reply_to=_told_id(inbound),
        references=_references(inbound),
        thread_revision=run.thread_revision,
    )


def _outbound(persona: Persona, *, text_body: str, **fields: Any) -> Message:
    return Message(
        persona=persona,
        direction=Direction.OUTBOUND,
        status=MessageStatus.HELD,
        message_id=new_message_id(persona.address.rpartition("@")[2]),
        from_address=persona.address,
        from_name=persona.name,
        text_body=text_body,
        readable_body=text_body,
        **fields,
    )


def _told_id(inbound: Message) -> str:
    """The id under which its sender knows the mail; "" when it had none."""
    told = inbound.claimed_message_id or inbound.message_id
    return "" if told.endswith("@id.invalid>") else told


def _references(inbound: Message) -> list[str]:
    known = [*inbound.references, _told_id(inbound)]
    return [reference for reference in known if reference][-REFERENCE_LIMIT:]


def _mode(message: Message) -> str:
    """What is done with a mail of ours: a person decides, too, when mail to one of its recipients has come back."""
    mode = message.thread.effective_reply_mode
    addresses = [entry["address"] for entry in (*message.to, *message.cc)]
    return ReplyMode.DRAFT if mode == ReplyMode.AUTO and bounces.is_failing(message.thread, *addresses) else mode


def _place(message: Message) -> None:
    """Store the message in its state: with a place in the thread, and delivery woken, unless it waits for a person."""
    if message.status == MessageStatus.DRAFT:
        EmailThread.objects.touch(message.thread_id)
        message.save()
        when_committed(lambda: draft_created.send_robust(sender=Message, message=message))
        return
    message.sequence = EmailThread.objects.take_sequence(message.thread_id)
    message.save()
    for entry in (*message.to, *message.cc):
        Participant.objects.get_or_create(
            thread_id=message.thread_id, address=entry["address"].lower(), defaults={"name": entry.get("name", "")}
        )
    if message.answers_id:
        Message.objects.filter(pk=message.answers_id).update(answered_by=message)
    delivery.wake_delivery(message)


def _copy_file(attachment: Attachment, message: Message) -> None:
    """The file once more, as an attachment of the outbound mail: each message owns its files."""
    with attachment.file.open("rb") as file:
        Attachment.objects.create(
            message=message,
            filename=attachment.filename,
            content_type=attachment.content_type,
            size=attachment.size,
            sha256=attachment.sha256,
            file=file,
        )
