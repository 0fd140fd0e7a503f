"""The one neutral sentence that a persona may send when it could not answer. It says nothing of what went wrong."""

from protege.services import outgoing, placing
from protege.services.recipients import answered_at
from threads.models import Direction, Message, MessageStatus, Origin, Run
from threads.models.message import OUT_IN_THE_WORLD


def write(run: Run) -> Message | None:
    """Queue the holding sentence to the sender of a run's mail; call it in the transaction that ends the run badly.

    It is no answer: its origin is `tool`, so that it leaves the one live answer of its mail free, sets no
    `answered_by`, and counts for the governor as an automatic mail. None where nothing is sent: when the persona has
    no such sentence, the mail has an answer, a person decides on what goes out, or people in the thread wait with
    such a sentence already.
    """
    inbound = run.message
    if inbound is None or not inbound.persona.holding_reply.strip():
        return None
    message = outgoing.reply(
        inbound, run, inbound.persona.holding_reply.strip(), to=answered_at(inbound), origin=Origin.TOOL
    )
    if not _is_wanted(message, inbound):
        return None
    placing.queue(message)
    return message


def _is_wanted(message: Message, inbound: Message) -> bool:
    thread = placing.lock(inbound.thread_id)
    if placing.must_wait(message, thread):
        return False
    answered = Message.objects.filter(pk=inbound.pk, answered_by__isnull=False).exists()
    return not answered and not _waits_already(thread.pk)


def _waits_already(thread_id: int) -> bool:
    """True when such a sentence is the last thing that anybody in the thread was told."""
    sent = Message.objects.filter(thread=thread_id, direction=Direction.OUTBOUND)
    answers = sent.filter(origin__in=(Origin.ANSWER, Origin.PERSON), status__in=OUT_IN_THE_WORLD)
    last = answers.order_by("-sequence").values_list("sequence", flat=True).first()
    holding = sent.filter(origin=Origin.TOOL, answers__isnull=False).exclude(status=MessageStatus.DISCARDED)
    return holding.filter(sequence__gt=last or 0).exists()
