"""Mail that came back: which of ours it was, and whom it did not reach."""

from dataclasses import dataclass

from django.db.models.functions import Now

from personas.models import Persona
from protege.mail.bounces import Bounce
from protege.services.matching import holding
from threads.models import Direction, EmailThread, Message, Participant

REASON = "bounce"
UNKNOWN = "bounce_unknown"


@dataclass(frozen=True, slots=True)
class Failure:
    """An outbound mail, and those of its recipients who will not get it."""

    message: Message
    addresses: list[str]


def failure_of(persona: Persona, bounce: Bounce) -> Failure | None:
    """What a note of failure is about; None unless it names a mail of ours *and* a recipient of that mail.

    Anybody can write such a note. Our ids hold 128 random bits, so that whoever names one has seen the mail.
    """
    sent = [message for message in holding(persona, bounce.ids) if message.direction == Direction.OUTBOUND]
    for claimed in bounce.ids:
        for message in sent:
            if claimed in (message.message_id, message.provider_message_id):
                addresses = sorted(message.recipient_addresses.intersection(bounce.failed))
                if addresses and message.sequence is not None:
                    return Failure(message, addresses)
    return None


def mark_failing(failure: Failure) -> None:
    """Automatic answers to these recipients wait for a person from now on."""
    for address in failure.addresses:
        Participant.objects.get_or_create(thread=failure.message.thread, address=address)
    marked = Participant.objects.filter(thread=failure.message.thread, address__in=failure.addresses)
    marked.filter(failing_since__isnull=True).update(failing_since=Now())


def clear_failing(persona: Persona, address: str) -> None:
    """A mail came from there, so that mail may go there again."""
    Participant.objects.filter(thread__persona=persona, address=address, failing_since__isnull=False).update(
        failing_since=None
    )


def is_failing(thread: EmailThread, *addresses: str) -> bool:
    """True when mail of the thread's persona to one of the addresses has come back since it last wrote."""
    wanted = [address.lower() for address in addresses]
    return Participant.objects.filter(
        thread__persona=thread.persona_id, address__in=wanted, failing_since__isnull=False
    ).exists()
