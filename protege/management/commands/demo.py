"""The whole path on one's own machine: three mails in, three answers out, without a key and without a network."""

import os
from email.message import Message as MimeMessage
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from personas.models import Persona
from protege.management.commands.receive_mail import describe
from protege.management.tables import message_table, step_table
from protege.services import chains, delivery, inbox, runs
from resolvers.models import Trigger
from threads.models import InboundMail, InboundStatus, Message, Run

MAILS = Path(__file__).resolve().parent.parent / "demo"
ADDRESS = "ada@demo.example"
DEMO_USER = "demo"
INSTRUCTIONS = "You are Ada. You look after the orders of a small lamp shop and answer its mail."
CHAIN: list[dict[str, Any]] = [
    {"resolver": "load_text", "options": {"text": "{{ persona.instructions }}"}},
    {"resolver": "load_file", "options": {"path": "house-rules.md"}},
    {"resolver": "load_text", "options": {"text": "You write as {{ persona.name }} from {{ persona.address }}."}},
    {"resolver": "thread_history", "options": {"limit": 20}},
]


class Command(BaseCommand):
    help = (
        "Show the whole path: create a persona, take three real mails, print what the model would read and the "
        "answers that go out. Uses the offline model; run it by `make demo`, as often as you like."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        if not (settings.DEBUG and os.environ.get("PROTEGE_DEMO")):
            raise CommandError(
                "The demo makes tables, a persona and a user with a known password. Run it by `make demo`, which gives "
                "it a database of its own (it sets DEBUG=1 and PROTEGE_DEMO=1)."
            )
        call_command("migrate", verbosity=0)
        persona = self._persona()
        self._user()
        for path in sorted(MAILS.glob("*.eml")):
            self._show(persona, path)
        self._farewell()

    def _persona(self) -> Persona:
        with transaction.atomic():
            persona, created = Persona.objects.get_or_create(
                slug="ada",
                defaults={
                    "name": "Ada",
                    "address": ADDRESS,
                    "model": "offline:echo",
                    "instructions": INSTRUCTIONS,
                    "signature": "Ada, Lamp shop",
                },
            )
            if created:
                chains.save(persona, Trigger.MESSAGE, CHAIN, expected_revision=0, note="The demo's chain")
                chains.save_defaults(persona)
        self._title("A persona")
        self.stdout.write(f"{persona.name} at {persona.address}, answering with the model {persona.model}.")
        self.stdout.write("That model is offline: it says what it was sent, no language model reads the mails.\n")
        return persona

    def _user(self) -> None:
        users = get_user_model().objects
        if not users.filter(username=DEMO_USER).exists():
            users.create_superuser(DEMO_USER, "demo@demo.example", DEMO_USER)

    def _show(self, persona: Persona, path: Path) -> None:
        self._title(f"Mail {path.name}")
        received = inbox.receive(path.read_bytes(), recipients=[persona.address], source="demo")[0]
        self.stdout.write(describe(received))
        message = self._stored(persona, received)
        if received.status == InboundStatus.DUPLICATE:
            self.stdout.write("It was taken by an earlier run of the demo; nothing is answered twice.")
        self._preview(message)
        self._answer(message)

    def _stored(self, persona: Persona, received: InboundMail) -> Message:
        stored = Message.objects.select_related("thread__persona", "persona")
        if received.message_id:
            return stored.get(pk=received.message_id)
        if received.status != InboundStatus.DUPLICATE:
            raise CommandError(f"The mail was not answered: {describe(received)}.")
        mail = inbox.parse(received.raw.unpack() if received.raw else b"", persona)
        return stored.get(persona=persona, message_id=mail.message_id)

    def _preview(self, message: Message) -> None:
        shown = runs.preview(runs.prepare(message.persona, message=message))
        data = shown.to_dict()
        self.stdout.write("\nWhat the chain assembled:\n\n" + step_table(data["steps"]))
        self.stdout.write(message_table(data["messages"]))
        run = Run.objects.filter(message=message).latest("id")
        same = shown.wire is not None and shown.wire.sha256 == run.wire_sha256
        self.stdout.write(
            f"Run {run.pk} {run.status}; the body it posted and the preview's body "
            f"{'are the same' if same else 'DIFFER'} (SHA-256 {run.wire_sha256[:16]}...)."
        )
        if not same:
            raise CommandError("The preview and the run differ. That must not be: please report it.")

    def _answer(self, message: Message) -> None:
        message.refresh_from_db()
        if message.answered_by is None:
            raise CommandError(f"Message {message.pk} was not answered.")
        self.stdout.write("\nThe reply as it goes out:\n")
        mail: MimeMessage = delivery.compose_message(message.answered_by).message()
        for name, value in mail.items():
            self.stdout.write(f"   {name}: {value}")
        text = next(part for part in mail.walk() if part.get_content_type() == "text/plain")
        payload = text.get_payload(decode=True)
        assert isinstance(payload, bytes)
        self.stdout.write("\n" + "\n".join(f"   {line}" for line in payload.decode().splitlines()) + "\n")

    def _farewell(self) -> None:
        self._title("Where to go next")
        self.stdout.write(
            "make serve          the admin at http://127.0.0.1:8000/admin/ (user demo, password demo),\n"
            "                    the API at http://127.0.0.1:8000/api/docs/\n"
            "README.md           a persona of your own, with a real model\n"
            "docs/resolvers.md   resolvers of your own"
        )

    def _title(self, text: str) -> None:
        self.stdout.write(self.style.MIGRATE_HEADING(f"\n== {text} ".ljust(100, "=")))
