"""Mail through Django's SMTP backend to a real server on this machine, read again as a stranger would read it."""

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from protege.mail.headers import Mailbox
from protege.mail.parsing import ParsedMail, parse
from protege.services import delivery
from tests.factories import (
    AttachmentFactory,
    EmailThreadFactory,
    MessageFactory,
    OutboundFactory,
    ParticipantFactory,
    PersonaFactory,
)
from threads.models import Message, Participant

pytestmark = pytest.mark.django_db


class Postman:
    """Keeps the envelopes. `refusals` are replies to RCPT by address; `waits` is how long it thinks about a mail."""

    def __init__(self) -> None:
        self.envelopes: list[Envelope] = []
        self.refusals: dict[str, str] = {}
        self.waits = 0.0

    async def handle_RCPT(self, server: SMTP, session: Session, envelope: Envelope, address: str, options: Any) -> str:  # noqa: N802
        if address in self.refusals:
            return self.refusals[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        self.envelopes.append(envelope)
        await asyncio.sleep(self.waits)
        return "250 OK"

    def read(self) -> ParsedMail:
        (envelope,) = self.envelopes
        assert isinstance(envelope.content, bytes)
        return parse(envelope.content)


@pytest.fixture
def postman(settings: Any) -> Iterator[Postman]:
    postman = Postman()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    controller = Controller(postman, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_TIMEOUT = "127.0.0.1", port, 5
        yield postman
    finally:
        controller.stop()


SUBJECT = "Re: Ärger mit Bestellung 77 — 注文の件, " + "sehr lang " * 12 + "🚲"
BODY = "Grüße, **Ana**!\n\n.Punkt am Anfang\nFrom hier an: 注文は発送済みです。\n" + "lang " * 400
ANA, BEN = Mailbox("Moßner, Ana „die Chefin“", "ana@client.example"), Mailbox("注文 太郎", "ben@client.example")


def queued(**fields: Any) -> Message:
    persona = PersonaFactory(
        address="helper@desk.example", name="Hélène Müller-Ωmega", signature="Hélène\nAbteilung Verkäufe"
    )
    thread = EmailThreadFactory(persona=persona)
    for box in (ANA, BEN):
        ParticipantFactory(thread=thread, address=box.address)
    given = {
        "to": [ANA.to_dict()],
        "cc": [BEN.to_dict()],
        "subject": SUBJECT.strip(),
        "text_body": BODY.strip(),
        "message_id": "<0123456789abcdef0123456789abcdef@desk.example>",
        "in_reply_to": "<Question+Ab=1@Client.example>",
        "references": ["<root@client.example>", "<Question+Ab=1@Client.example>"],
    }
    return OutboundFactory(thread=thread, answers=MessageFactory(thread=thread), status="queued", **{**given, **fields})


def test_everything_arrives_as_it_was_meant(postman: Postman) -> None:
    message = queued()
    AttachmentFactory(
        message=message, filename="Übersicht 注文.pdf", content_type="application/pdf", data=b"%PDF-1.4\n\x00\xff"
    )
    AttachmentFactory(message=message, filename="plan.txt", data="schön\r\n.\r\n".encode())
    assert delivery.send(message.pk).status == "sent"
    read = postman.read()
    assert read.subject == message.subject
    assert (read.from_, read.to, read.cc) == ([Mailbox("Hélène Müller-Ωmega", "helper@desk.example")], [ANA], [BEN])
    assert (read.message_id, read.in_reply_to) == (message.message_id, message.in_reply_to)
    assert read.references == message.references
    assert read.text_body.split() == f"{message.text_body} -- Hélène Abteilung Verkäufe".split()
    assert ".Punkt am Anfang\nFrom hier an: 注文" in read.text_body
    assert [(one.filename, one.content_type, one.data) for one in read.attachments] == [
        ("Übersicht 注文.pdf", "application/pdf", b"%PDF-1.4\n\x00\xff"),
        ("plan.txt", "text/plain", "schön\r\n.\r\n".encode()),
    ]
    assert read.automatic == "auto_submitted"
    assert read.warnings == []


def test_the_envelope_names_everybody(postman: Postman) -> None:
    delivery.send(queued().pk)
    (envelope,) = postman.envelopes
    assert (envelope.mail_from, envelope.rcpt_tos) == ("helper@desk.example", [ANA.address, BEN.address])


def test_no_line_is_longer_than_a_mail_server_takes(postman: Postman) -> None:
    delivery.send(queued(references=[f"<{'x' * 60}{number}@client.example>" for number in range(40)]).pk)
    (envelope,) = postman.envelopes
    assert isinstance(envelope.content, bytes)
    assert max(len(line) for line in envelope.content.split(b"\r\n")) <= 998
    assert postman.read().references[0] == f"<{'x' * 60}0@client.example>"


def test_html_is_an_alternative_of_the_text(postman: Postman) -> None:
    delivery.send(queued().pk)
    (envelope,) = postman.envelopes
    assert isinstance(envelope.content, bytes)
    assert envelope.content.index(b"text/plain") < envelope.content.index(b"text/html")


@pytest.mark.parametrize(("reply", "failing"), [("550 no such user", [BEN.address]), ("450 greylisted", [])])
def test_one_of_several_is_refused(postman: Postman, reply: str, failing: list[str]) -> None:
    """The others have the mail and must not get it twice: it is `sent`, and the refusal stays visible."""
    postman.refusals[BEN.address] = reply
    message = delivery.send(queued().pk)
    assert (message.status, message.last_code) == ("sent", "partly_refused")
    marked = Participant.objects.filter(failing_since__isnull=False)
    assert list(marked.values_list("address", flat=True)) == failing
    assert [envelope.rcpt_tos for envelope in postman.envelopes] == [[ANA.address]]


@pytest.mark.parametrize(
    ("replies", "outcome"),
    [
        (("550 gone", "550 gone"), ("failed", "refused")),
        (("450 later", "450 later"), ("queued", "temporary")),
        (("550 gone", "450 later"), ("queued", "temporary")),
    ],
)
def test_all_are_refused(postman: Postman, replies: tuple[str, str], outcome: tuple[str, str]) -> None:
    postman.refusals = dict(zip((ANA.address, BEN.address), replies, strict=True))
    message = delivery.send(queued().pk)
    assert (message.status, message.last_code) == outcome
    assert postman.envelopes == []


def test_c11_a_lost_reply_is_tried_again_under_the_same_id(postman: Postman, settings: Any) -> None:
    """The server has taken the mail, and its yes never came: the copies can be told as one."""
    settings.EMAIL_TIMEOUT, postman.waits = 0.3, 1.0
    message = delivery.send(queued().pk)
    assert (message.status, message.last_code) == ("queued", "connection")
    Message.objects.filter(pk=message.pk).update(next_attempt_at=None)
    settings.EMAIL_TIMEOUT, postman.waits = 5, 0.0
    assert delivery.send(message.pk).status == "sent"
    ids = [parse(envelope.content).message_id for envelope in postman.envelopes if isinstance(envelope.content, bytes)]
    assert ids == [message.message_id] * 2


def test_no_server_is_no_end(settings: Any) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9
    message = delivery.send(queued().pk)
    assert (message.status, message.last_code) == ("queued", "connection")
