"""Mails that a model writes with the tool `send_email`: checked at once, held until its run has ended well."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from django.core.files.base import ContentFile
from django.core.validators import validate_email
from django.db import IntegrityError, transaction

from protege.context import Context
from protege.exceptions import ToolFailure
from protege.mail.composing import reply_subject
from protege.mail.headers import Mailbox
from protege.mail.limits import SUBJECT_LENGTH
from protege.services import documents, drafts, outgoing, policy
from protege.services.recipients import LIMIT, Rules, answered_at
from protege.services.routing import own_addresses
from protege.untrusted import one_line, storable
from threads.models import Attachment, EmailThread, Message, Origin, Participant, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMail:
    """A mail that a tool call has checked and not yet stored.

    `to` and `cc` are the people in the thread when it is the answer, and everybody when it is not. `outside` are those
    whom the answer is to reach and who have no part in the thread: they get the same words in a thread of their own.
    """

    context: Context
    to: list[Mailbox]
    cc: list[Mailbox]
    subject: str
    body: str
    attachments: list[Attachment]
    is_answer: bool
    outside: list[Mailbox]

    def summary(self) -> dict[str, Any]:
        """What the model is told."""
        everyone = [box.address for box in (*self.to, *self.cc, *self.outside)]
        subject = self._answer_subject() if self.is_answer else self.subject
        return {"held": True, "recipients": everyone, "subject": subject, "is_your_answer": self.is_answer}

    def hold(self) -> None:
        """Store the mail as `held`, in the transaction that records the tool's result."""
        runs = Run.objects.select_related("message__thread__persona", "message__persona", "persona")
        run = runs.get(pk=self.context.run_id or 0)
        if self.is_answer:
            self._store(self._answer(run))
        else:
            self._store(self._new_mail(run, self.to, self.cc))
        if self.outside:
            self._store(self._new_mail(run, self.outside))

    def _answer(self, run: Run) -> Message:
        assert run.message is not None
        if drafts.make_room(run.message) is not None:
            raise ToolFailure(
                "A person is writing the answer to this mail. Leave the answer to them.", code="draft_pending"
            )
        return outgoing.reply(run.message, run, self.body, to=self.to, cc=self.cc)

    def _answer_subject(self) -> str:
        assert self.context.message is not None
        return reply_subject(self.context.message.subject)

    def _new_mail(self, run: Run, to: Sequence[Mailbox], cc: Sequence[Mailbox] = ()) -> Message:
        """Somebody outside the thread gets a thread of their own: their replies never join this one.

        It is linked to this one, and watched by a person where this one is.
        """
        assert run.message is not None
        thread = EmailThread.objects.create(
            persona=run.persona,
            tenant=run.persona.tenant,
            correspondent=to[0].address,
            subject=self.subject,
            opened_from=run.message,
            reply_mode=run.message.thread.reply_mode,
        )
        return outgoing.outbound(
            run.persona,
            text=self.body,
            thread=thread,
            run=run,
            origin=Origin.TOOL,
            to=[box.to_dict() for box in to],
            cc=[box.to_dict() for box in cc],
            subject=self.subject,
        )

    def _store(self, message: Message) -> None:
        try:
            with transaction.atomic():
                message.save()
        except IntegrityError:
            raise ToolFailure(
                "You have answered this mail already. One answer a mail: leave the rest out.", code="answered_already"
            ) from None
        for attachment in self.attachments:
            _copy_file(attachment, message)


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

    A mail to the sender is the answer to theirs. Who may be written to is told by the rules for recipients of an
    answer; anybody else only when the persona's policy for `send_email` is `allow`: mail is untrusted text, and it
    must not decide where ours goes.
    """
    if context.message is None:
        raise ToolFailure("There is no mail to answer in this run, so no mail can be sent from it.", code="no_thread")
    if not body.strip():
        raise ToolFailure("A mail needs a text.", code="empty_body")
    primary = _addresses(to)
    copies = [address for address in _addresses(cc) if address not in primary]
    everyone = [*primary, *copies]
    if len(everyone) > LIMIT:
        raise ToolFailure(f"A mail has at most {LIMIT} recipients.", code="too_many_recipients")
    senders = _senders(context.message)
    inside = senders | _insiders(context, [address for address in everyone if address not in senders])
    is_answer = not senders.isdisjoint(primary)
    here = inside if is_answer else set(everyone)
    return ToolMail(
        context=context,
        to=_boxes(context.message, [address for address in primary if address in here]),
        cc=_boxes(context.message, [address for address in copies if address in here]),
        subject=one_line(storable(subject), SUBJECT_LENGTH),
        body=storable(body).strip(),
        attachments=documents.find(context.message, attachments),
        is_answer=is_answer,
        outside=_boxes(context.message, [address for address in everyone if address not in here]),
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


def _insiders(context: Context, addresses: Sequence[str]) -> set[str]:
    """Those who have a part in the conversation, or may be brought in; the others need the persona's policy."""
    assert context.message is not None
    rules = Rules.of(context.message, further=addresses)
    inside = {address for address in addresses if rules.allow(address)}
    strangers = [address for address in addresses if address not in inside]
    if strangers and context.persona.tool_policies.get("send_email") != "allow":
        raise ToolFailure(
            f"{strangers[0]} has no part in this conversation. A person has to allow mail to others.",
            code="recipient_not_allowed",
        )
    return inside


def _senders(message: Message) -> set[str]:
    """The addresses at which the sender is answered."""
    return {policy.correspondent_of(message).address, *(box.address for box in answered_at(message))}


def _boxes(message: Message, addresses: Iterable[str]) -> list[Mailbox]:
    """The addresses with the names under which people take part in the thread."""
    wanted = list(addresses)
    rows = Participant.objects.filter(thread=message.thread_id, address__in=wanted)
    correspondent = policy.correspondent_of(message)
    names = {correspondent.address: correspondent.name}
    names |= {address: name for address, name in rows.values_list("address", "name") if name}
    return [Mailbox(names.get(address, ""), address) for address in wanted]


def _copy_file(attachment: Attachment, message: Message) -> None:
    """The file once more, as an attachment of the outbound mail: each message owns its files."""
    data = documents.content_of(attachment)
    if data is None:
        raise ToolFailure(f"The file {attachment.public_id} is gone or damaged.", code="attachment_gone")
    Attachment.objects.create(
        message=message,
        filename=attachment.filename,
        content_type=attachment.content_type,
        size=attachment.size,
        sha256=attachment.sha256,
        file=ContentFile(data, name="file"),
    )
