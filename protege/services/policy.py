"""Who may write to a persona, how far a sender is believed, and which mail is not answered.

The order of the rules is the order of the words in the functions: the first that holds decides. A rule whose reason a
person has waived by releasing the mail is passed over.
"""

from collections.abc import Collection, Iterable, Iterator
from datetime import timedelta
from fnmatch import fnmatchcase

from personas.models import Persona
from protege import conf
from protege.mail.authentication import Authentication, authenticate
from protege.mail.headers import Mailbox, is_no_reply
from protege.mail.parsing import ParsedMail
from protege.services.routing import own_addresses
from threads.models import InboundMail, InboundStatus, Message, Trust

MAILING_LIST = "mailing_list"
"""Warning on a message that a list sent on: it is answered to its sender only."""


def matches(address: str, patterns: Iterable[str]) -> bool:
    """True when one of the persona's patterns, such as `*@client.example`, fits the address."""
    return any(fnmatchcase(address.lower(), pattern.lower()) for pattern in patterns)


def stopped(persona: Persona, mail: ParsedMail, inbound: InboundMail) -> tuple[InboundStatus, str] | None:
    """Status and reason for a mail that becomes no message; None for one that may come in."""
    if any(matches(sender.address, persona.denied_senders) for sender in mail.from_):
        return InboundStatus.IGNORED, "denied_sender"
    reason = next((reason for reason in _doubts(persona, mail, inbound) if reason not in inbound.waived), "")
    return (InboundStatus.QUARANTINED, reason) if reason else None


def _doubts(persona: Persona, mail: ParsedMail, inbound: InboundMail) -> Iterator[str]:
    """The reasons for which a person has to look at a mail first."""
    if not persona.is_active:
        yield "persona_inactive"
    if mail.bounce is not None:  # no person wrote it, and what it says is held against what was sent
        return
    config = conf.load()
    if inbound.reached_at and inbound.received_at - inbound.reached_at > timedelta(days=config.mail_age_limit):
        yield "too_old"
    if len(mail.from_) != 1:
        yield "no_single_sender"
    elif persona.allowed_senders and not matches(mail.from_[0].address, persona.allowed_senders):
        yield "sender_not_allowed"
    findings = {"dmarc_fail": _authentication(mail).dmarc_failed, "spam": mail.spam}
    yield from (reason for reason, holds in findings.items() if holds and reason in config.quarantine)


def trust(persona: Persona, mail: ParsedMail) -> Trust:
    """How far the From line may be believed; our own mail server's verdict decides, and nothing else."""
    if len(mail.from_) != 1 or _form_correspondent(persona, mail) or not _authentication(mail).verified:
        return Trust.UNVERIFIED
    return Trust.OWN_STAFF if matches(mail.from_[0].address, persona.staff_senders) else Trust.VERIFIED


def _authentication(mail: ParsedMail) -> Authentication:
    sender = mail.from_[0].address if len(mail.from_) == 1 else ""
    ids = conf.load().authserv_ids
    return authenticate(mail.authentication_results, authserv_ids=ids, from_address=sender)


def correspondent(persona: Persona, mail: ParsedMail) -> Mailbox | None:
    """Whom the persona talks to: the sender or, for a contact form, the single Reply-To. None for nobody."""
    return _form_correspondent(persona, mail) or (mail.from_[0] if mail.from_ else None)


def correspondent_of(message: Message) -> Mailbox:
    """The same of a stored inbound mail: where its answer goes."""
    if len(message.reply_to) == 1 and matches(message.from_address, message.persona.form_senders):
        return Mailbox.from_dict(message.reply_to[0])
    return Mailbox(message.from_name, message.from_address)


def _form_correspondent(persona: Persona, mail: ParsedMail) -> Mailbox | None:
    is_form = len(mail.from_) == 1 and matches(mail.from_[0].address, persona.form_senders)
    return mail.reply_to[0] if is_form and len(mail.reply_to) == 1 else None


def not_answered(persona: Persona, mail: ParsedMail) -> str:
    """Why a mail is stored and gets no answer; "" when it gets one."""
    who = correspondent(persona, mail)
    form = _form_correspondent(persona, mail)
    if mail.automatic and not (mail.automatic == "no_reply" and form):
        return mail.automatic
    if who is None:
        return "no_sender"
    if form and is_no_reply(form.address):
        return "no_reply"
    if mail.list_id and not (_is_own_list(persona, mail.list_id) or _stands_in_to(persona, mail)):
        return MAILING_LIST
    return "own_address" if own_addresses({who.address, *(sender.address for sender in mail.from_)}) else ""


def is_from_staff(persona: Persona, mail: ParsedMail) -> bool:
    """True when a colleague seems to have written it, whether that is verified or not; never for a form."""
    sender = mail.from_[0].address if len(mail.from_) == 1 else ""
    return matches(sender, persona.staff_senders) and _form_correspondent(persona, mail) is None


def _is_own_list(persona: Persona, list_id: str) -> bool:
    """Patterns may be written like the list's id (`support.desk.example`) or like its address."""
    return matches(list_id, [pattern.replace("@", ".") for pattern in persona.own_lists])


def _stands_in_to(persona: Persona, mail: ParsedMail) -> bool:
    return bool(own_addresses([box.address for box in mail.to], persona=persona))


def warnings(mail: ParsedMail, extra: Collection[str] = ()) -> list[str]:
    """The codes that are stored with the message."""
    return [*mail.warnings, *([MAILING_LIST] if mail.list_id else []), *extra]
