"""Which thread a mail belongs to, and whether it was here before. Read only."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.db.models import Q

from personas.models import Persona
from protege.mail.parsing import ParsedMail
from protege.services import policy
from threads.models import Direction, EmailThread, InboundStatus, Message, Participant


@dataclass(frozen=True, slots=True)
class Match:
    """`thread` is the one that the mail joins, None for a new one. `claimed` are the messages that it names."""

    thread: EmailThread | None = None
    claimed: list[Message] = field(default_factory=list)

    @property
    def refused(self) -> bool:
        """True when it named a thread that its sender is not part of."""
        return self.thread is None and bool(self.claimed)

    @property
    def counted_with(self) -> EmailThread | None:
        """The thread whose outbound id a mail that opens a new one has named: answers in both count together.

        A responder that writes from another address each time would start from zero again and again.
        """
        named = next((message.thread for message in self.claimed if message.direction == Direction.OUTBOUND), None)
        return named and (named.counted_with or named)


def match_thread(persona: Persona, mail: ParsedMail) -> Match:
    """The thread of this persona that the mail answers.

    In-Reply-To first, then References from the newest back. Knowing an id is not enough: the sender must be a
    participant. A subject never matches.
    """
    ids = [item for item in dict.fromkeys([mail.in_reply_to, *reversed(mail.references)]) if item]
    holders = sorted(holding(persona, ids), key=lambda message: _place(message, ids))
    joined = _threads_of(policy.correspondent(persona, mail), holders)
    thread = next((message.thread for message in holders if message.thread_id in joined), None)
    return Match(thread, holders)


def holding(persona: Persona, ids: Sequence[str]) -> list[Message]:
    """The persona's messages that are known by one of these ids, whoever gave it; without their texts."""
    if not ids:
        return []
    holds = Q(message_id__in=ids) | Q(claimed_message_id__in=ids) | Q(provider_message_id__in=ids)
    found = Message.objects.filter(holds, persona=persona).select_related("thread__persona", "thread__counted_with")
    return list(found.defer("text_body", "readable_body").order_by("pk"))


def _place(message: Message, ids: Sequence[str]) -> int:
    known = {message.message_id, message.claimed_message_id, message.provider_message_id}
    return next(place for place, claimed in enumerate(ids) if claimed in known)


def _threads_of(who: policy.Mailbox | None, holders: Sequence[Message]) -> set[int]:
    """The threads of `holders` that the correspondent takes part in."""
    if who is None or not holders:
        return set()
    threads = {message.thread_id for message in holders}
    rows = Participant.objects.filter(thread__in=threads, address=who.address)
    return set(rows.values_list("thread_id", flat=True))


def duplicate(persona: Persona, mail: ParsedMail) -> tuple[InboundStatus, str] | None:
    """Status and reason when the persona holds this Message-ID from this sender already."""
    sender = mail.from_[0].address if mail.from_ else ""
    same_id = Q(message_id=mail.message_id) | Q(claimed_message_id=mail.message_id)
    held = Message.objects.filter(same_id, persona=persona, direction=Direction.INBOUND, from_address=sender)
    texts = list(held.values_list("text_body", flat=True))
    if not texts:
        return None
    if any(_same_text(text, mail.text_body) for text in texts):
        return InboundStatus.DUPLICATE, ""
    return InboundStatus.QUARANTINED, "duplicate_id"


def _same_text(held: str, text: str) -> bool:
    """True when one text is the other with a footer added, as lists and scanners do on the way."""
    short, long = sorted((held.split(), text.split()), key=len)
    return long[: len(short)] == short and (bool(short) or not long)
