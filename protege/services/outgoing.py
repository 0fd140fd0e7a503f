"""Writing outbound mails: the answer of a run, and what its tools have prepared."""

from collections.abc import Sequence
from typing import Any

from django.db import IntegrityError, transaction

from personas.models import Persona
from protege.exceptions import MailError
from protege.mail.composing import new_message_id, reply_subject
from protege.mail.headers import Mailbox, is_substitute
from protege.messages import Notice
from protege.services import drafts, placing
from protege.services.recipients import reply_recipients
from threads.models import Direction, Message, MessageStatus, Origin, Run

REFERENCE_LIMIT = 100

GAVE_WAY = "edited_draft_stays"
"""`last_code` of an answer that was not sent, as a person has a draft of their own for the same mail."""


def write_answer(run: Run, text: str) -> Message:
    """The closing text of a run as the answer to its mail: queued, or a draft where a person decides.

    When a person has edited the draft of an earlier run, theirs stays and this one is kept as discarded. Call it in
    the transaction that ends the run. `MailError` when the mail has an answer already.
    """
    inbound = run.message
    assert inbound is not None, "only a reply run has an answer"
    whom = reply_recipients(inbound)
    message = reply(inbound, run, text, to=whom.to, cc=whom.cc)
    note(run, whom.notices)
    edited = drafts.make_room(inbound)
    if edited is not None:
        note(run, [Notice(GAVE_WAY, {"draft": edited.pk})])
        message.status, message.last_code = MessageStatus.DISCARDED, GAVE_WAY
        message.save()
        return message
    try:
        with transaction.atomic():
            _place(message)
    except IntegrityError:
        raise MailError("This mail has an answer already. Nothing more was sent.", code="answered_already") from None
    return message


def release_held(run: Run) -> list[Message]:
    """Let go what the run's tools prepared; call it in the transaction that ends the run well."""
    held = run.outbound.filter(status=MessageStatus.HELD).select_related("answers", "run__message").order_by("pk")
    released = list(held)
    for message in released:
        _place(message)
    return released


def _place(message: Message) -> None:
    placing.place(message)
    if message.origin == Origin.ANSWER and message.answers is not None:
        drafts.outdate(message.answers)


def reply(
    inbound: Message,
    run: Run,
    text: str,
    *,
    to: Sequence[Mailbox],
    cc: Sequence[Mailbox] = (),
    origin: Origin = Origin.ANSWER,
) -> Message:
    """An unsaved mail in the thread of `inbound`, with the headers of a reply to it."""
    return outbound(
        inbound.persona,
        text=text,
        thread=inbound.thread,
        run=run,
        origin=origin,
        answers=inbound,
        to=[box.to_dict() for box in to],
        cc=[box.to_dict() for box in cc],
        subject=reply_subject(inbound.subject),
        in_reply_to=_told_id(inbound),
        references=_references(inbound),
        thread_revision=run.thread_revision,
    )


def outbound(persona: Persona, *, text: str, **fields: Any) -> Message:
    """An unsaved mail of the persona, `held` until it is placed. Its Message-ID is made here, once."""
    return Message(
        persona=persona,
        direction=Direction.OUTBOUND,
        status=MessageStatus.HELD,
        message_id=new_message_id(persona.address.rpartition("@")[2]),
        from_address=persona.address,
        from_name=persona.name,
        text_body=text,
        readable_body=text,
        **fields,
    )


def note(run: Run, notices: Sequence[Notice]) -> None:
    """Add to what the run tells a person. Its row is locked by the transaction that ends it."""
    if notices:
        known = Run.objects.values_list("notices", flat=True).get(pk=run.pk)
        told = [notice.to_dict() for notice in notices]
        Run.objects.filter(pk=run.pk).update(notices=[*known, *told])


def _told_id(inbound: Message) -> str:
    """The id under which its sender knows the mail; "" when it had none."""
    told = inbound.claimed_message_id or inbound.message_id
    return "" if is_substitute(told) else told


def _references(inbound: Message) -> list[str]:
    """The first and the newest ids: the first tells readers' software which conversation it is."""
    known = [reference for reference in (*inbound.references, _told_id(inbound)) if reference]
    return known if len(known) <= REFERENCE_LIMIT else [known[0], *known[1 - REFERENCE_LIMIT :]]
