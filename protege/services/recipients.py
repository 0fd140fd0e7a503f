"""Whom a mail of ours may go to. The headers that name them were written by strangers.

The answer goes to everybody in the conversation, as people expect of a colleague, and to nobody whom a forged or a
crafted mail could slip in.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from protege.mail.composing import is_sendable
from protege.mail.headers import Mailbox
from protege.messages import Notice
from protege.services import policy
from protege.services.routing import own_addresses
from threads.models import Message, Participant, Trust

LIMIT = 20
"""Recipients of one mail. With more, only the sender is answered."""


@dataclass(frozen=True, slots=True)
class Recipients:
    """The addresses of a reply, each once; `notices` says who was left out, and why."""

    to: tuple[Mailbox, ...]
    cc: tuple[Mailbox, ...] = ()
    notices: tuple[Notice, ...] = ()


def reply_recipients(message: Message) -> Recipients:
    """Who gets the answer to an inbound mail: its sender, the others in To, and those in Cc.

    Our own addresses and duplicates are left out, and whoever the mail may not bring in (`Rules`). A mail that came
    by a blind copy, by a mailing list or through a contact form is answered to its sender only.
    """
    rules = Rules.of(message)
    sender, refused = _sender(message, rules)
    notices = [Notice("reply_to_refused", {"addresses": refused})] if refused else []
    if _to_sender_only(message):
        return Recipients(sender, notices=tuple(notices))
    taken = {box.address for box in sender}
    to, cc = _boxes(message.to, without=taken), _boxes(message.cc, without=taken | _addresses(message.to))
    left_out = [box.address for box in (*to, *cc) if not rules.allow(box.address)]
    if left_out:
        notices.append(Notice("recipients_left_out", {"addresses": left_out}))
    to, cc = [box for box in to if rules.allow(box.address)], [box for box in cc if rules.allow(box.address)]
    count = len(sender) + len(to) + len(cc)
    if count > LIMIT:
        notices.append(Notice("too_many_recipients", {"count": count, "limit": LIMIT}))
        return Recipients(sender, notices=tuple(notices))
    return Recipients((*sender, *to), tuple(cc), tuple(notices))


def answered_at(message: Message) -> tuple[Mailbox, ...]:
    """Where the sender of a mail is answered: at its Reply-To if that may be used, else where it came from."""
    return _sender(message, Rules.of(message))[0]


@dataclass(frozen=True, slots=True)
class Rules:
    """Whom one inbound mail may bring into the conversation.

    `allow` holds for those who take part in the thread, share the sender's domain or match the persona's list of
    allowed senders, and for everybody when our mail server has verified the sender. In a thread that it joined, a mail
    of an unverified sender brings nobody new: whoever knows an id of the thread could have written it.
    """

    domain: str
    patterns: Collection[str]
    participants: Collection[str]
    verified: bool
    joined: bool
    named: Collection[str] = field(default_factory=frozenset)

    @classmethod
    def of(cls, message: Message, *, further: Iterable[str] = ()) -> "Rules":
        """The rules for the addresses in the headers of `message`, and for `further` ones that are asked about."""
        named = _addresses([*message.to, *message.cc])
        asked = named | _addresses(message.reply_to) | {address.lower() for address in further}
        known = Participant.objects.filter(thread=message.thread_id, address__in=asked)
        return cls(
            domain=_domain(policy.correspondent_of(message).address),
            patterns=tuple(message.persona.allowed_senders),
            participants=frozenset(known.values_list("address", flat=True)),
            verified=message.trust != Trust.UNVERIFIED,
            joined=(message.sequence or 1) > 1,
            named=named,
        )

    def allow(self, address: str) -> bool:
        """True when an address that stands in To or Cc may be copied, and mail can be sent to it."""
        return self.know(address) or (self.verified and address in self.named and is_sendable(address))

    def know(self, address: str) -> bool:
        """The same without the sender's word, as for Reply-To: a verified sender may be wrong about a mailbox."""
        if not is_sendable(address):
            return False
        if address in self.participants:
            return True
        if self.joined and not self.verified:
            return False
        return _domain(address) == self.domain or policy.matches(address, self.patterns)


def _sender(message: Message, rules: Rules) -> tuple[tuple[Mailbox, ...], list[str]]:
    """The sender's mailboxes, and the addresses of a Reply-To that may not be used."""
    correspondent = policy.correspondent_of(message)
    if _is_form(message, correspondent) or policy.MAILING_LIST in message.warnings:
        return (correspondent,), []
    asked = _boxes(message.reply_to)
    refused = [box.address for box in asked if box != correspondent and not rules.know(box.address)]
    if refused or not asked or len(asked) > LIMIT:
        return (correspondent,), refused
    return tuple(asked), []


def _to_sender_only(message: Message) -> bool:
    """True when the others in its headers do not know of the persona, or did not write to it themselves."""
    if policy.MAILING_LIST in message.warnings or _is_form(message, policy.correspondent_of(message)):
        return True
    return not own_addresses(_addresses([*message.to, *message.cc]), persona=message.persona)


def _is_form(message: Message, correspondent: Mailbox) -> bool:
    return correspondent.address != message.from_address.lower()


def _boxes(entries: Iterable[dict[str, str]], *, without: Collection[str] = ()) -> list[Mailbox]:
    """The stored addresses in order, each once; without our own, and without those that stand elsewhere already."""
    found: dict[str, Mailbox] = {}
    for entry in entries:
        box = Mailbox.from_dict(entry)
        found.setdefault(box.address, box)
    excluded = {*without, *own_addresses(found)}
    return [box for address, box in found.items() if address not in excluded]


def _addresses(entries: Iterable[dict[str, str]]) -> set[str]:
    return {Mailbox.from_dict(entry).address for entry in entries}


def _domain(address: str) -> str:
    return address.lower().rpartition("@")[2]
