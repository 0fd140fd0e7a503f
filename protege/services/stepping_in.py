"""A colleague answers in a thread: from then on the persona is silent in it until a person lets it go on."""

from personas.models import Persona
from protege.mail.parsing import ParsedMail
from protege.services import policy
from protege.services.matching import Match
from threads.models import EmailThread, Participant
from threads.status import STAFF_ANSWER

REASON = STAFF_ANSWER


def thread_to_pause(persona: Persona, mail: ParsedMail, match: Match) -> EmailThread | None:
    """The thread in which a colleague answers in the persona's stead; None for any other mail.

    A colleague who talks to the persona in a thread of their own steps in nowhere. One who is not part of the thread
    does not join it, and pauses it when the mail goes to somebody who is. The From line need not be verified for
    that: silence can be lifted, and trust is not gained by it.
    """
    if mail.automatic or not policy.is_from_staff(persona, mail):
        return None
    sender = mail.from_[0].address
    if match.thread is not None:
        return match.thread if match.thread.correspondent != sender else None
    threads = {message.thread_id: message.thread for message in match.claimed}
    addresses = {box.address for box in (*mail.to, *mail.cc)} - {sender}
    reached = Participant.objects.filter(thread__in=threads, address__in=addresses)
    reached_ids = set(reached.values_list("thread_id", flat=True)) if threads and addresses else set()
    return next((thread for pk, thread in threads.items() if pk in reached_ids), None)
