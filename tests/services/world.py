"""A small world of mail around the personas: people, and systems that answer whatever they get.

Mail goes through the real code: received, run, delivered, and handed to whom it is addressed. The clock moves by
moving the past: all that happened is dated back, so that the database's own clock agrees.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from email import message_from_bytes
from email.message import Message as Mime
from itertools import count

from django.core import mail as django_mail
from django.core.mail import EmailMessage
from django.db.models import F

from personas.models import Persona
from protege.services import delivery, inbox, runs
from tests.mail.bouncing import bounce
from tests.mails import mail
from threads.models import InboundMail, Message, Run

Letter = tuple[bytes, str | None, str]
"""Raw mail, envelope sender, envelope recipient."""
Responder = Callable[[Mime, str], Sequence[Letter]]

DATED = {Message: ("received_at", "sent_at"), Run: ("created_at",), InboundMail: ("received_at", "alerted_at")}

AWAY, ROBOTS, GONE, RELAY = "away@holiday.example", "robot.example", "gone@dead.example", "relay@x.example"


class World:
    """`sent` counts what the personas have mailed; `mailboxes` has what reached people."""

    def __init__(self, *personas: Persona) -> None:
        self.personas = [persona.address for persona in personas]
        self.sent = 0
        self.mailboxes: dict[str, list[Mime]] = {}
        self.numbers = count(1)
        self.waiting: list[Letter] = []
        self.idle = timedelta()

    def post(self, text: str, *, from_: str, to: str, answers: Mime | None = None, sender: str | None = None) -> None:
        """A mail without any mark of a machine, as the worst ones are."""
        named = {"In_Reply_To": answers["Message-ID"]} if answers else {}
        raw = mail(from_=from_, to=to, text=text, message_id=f"<{next(self.numbers)}@world.example>", **named)
        self.waiting.append((raw, sender or from_, to))

    def round(self, *, minutes: int) -> int:
        """Deliver what waits, let the personas work, and let everybody react; returns how many mails they sent."""
        if self.waiting:
            self._move_the_past()
        letters, self.waiting = self.waiting, []
        for raw, sender, recipient in letters:
            inbox.receive(raw, sender=sender, recipients=[recipient])
        for run_id in Run.objects.filter(status="queued").values_list("pk", flat=True):
            runs.execute(run_id)
        for message_id in Message.objects.filter(status="queued").values_list("pk", flat=True):
            delivery.send(message_id)
        mails, django_mail.outbox[:] = list(django_mail.outbox), []
        for sent in mails:
            self._react(sent)
        self.idle += timedelta(minutes=minutes)
        self.sent += len(mails)
        return len(mails)

    def _react(self, sent: EmailMessage) -> None:
        mime = message_from_bytes(sent.message().as_bytes())
        persona = next(address for address in self.personas if address in mime["From"])
        for address in sent.recipients():
            if address == AWAY:
                text = f"I am away until the {next(self.numbers) % 28}th. Yours is mail {next(self.numbers)} today."
                self.post(text, from_=AWAY, to=persona, answers=mime, sender="")
            elif address.endswith(ROBOTS):
                self.post(
                    f"We cannot read replies. Ticket {next(self.numbers)}",
                    from_=f"r{next(self.numbers)}@{ROBOTS}",
                    to=persona,
                    answers=mime,
                )
            elif address == GONE:
                report = bounce(ours=mime["Message-ID"], recipient=GONE, number=next(self.numbers))
                self.waiting.append((report, "", persona))
            elif address == RELAY:
                self.post(_text(mime), from_=RELAY, to=self._other(persona), answers=mime)
            else:
                self.mailboxes.setdefault(address, []).append(mime)

    def _other(self, persona: str) -> str:
        return next(address for address in self.personas if address != persona)

    def _move_the_past(self) -> None:
        """Date back by the time that has passed since somebody last looked; a round without mail costs nothing."""
        for model, columns in DATED.items():
            model._default_manager.update(**{column: F(column) - self.idle for column in columns})
        self.idle = timedelta()


def _text(mime: Mime) -> str:
    part = next(part for part in mime.walk() if part.get_content_type() == "text/plain")
    return bytes(part.get_payload(decode=True)).decode()  # type: ignore[arg-type]
