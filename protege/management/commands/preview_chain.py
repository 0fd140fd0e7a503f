"""What a model would be sent for a stored mail, before a cent is spent."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from protege.exceptions import ProtegeError
from protege.management.personas import persona_named
from protege.management.tables import message_table, step_table
from protege.services import runs
from protege.services.previewing import Preview
from threads.models import Direction, Message


class Command(BaseCommand):
    help = (
        "Show the messages that a persona's chain gives for a stored mail, with the step that said each. "
        "Calls no model and writes nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("persona", help="id, slug, tenant/slug or address")
        parser.add_argument("--message", type=int, required=True, metavar="ID", help="id of an inbound message")
        parser.add_argument("--model", help="another model than the persona's")
        parser.add_argument("--wire", action="store_true", help="also print the exact body that would be posted")
        parser.add_argument("--json", action="store_true", help="print the whole preview as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        persona = persona_named(options["persona"])
        message = (
            Message.objects.select_related("thread__persona", "persona")
            .filter(pk=options["message"], persona=persona, direction=Direction.INBOUND)
            .first()
        )
        if message is None:
            raise CommandError(f"{persona} has no inbound message {options['message']}.")
        try:
            shown = runs.preview(runs.prepare(persona, message=message, model=options["model"]))
        except ProtegeError as error:
            raise CommandError(str(error)) from None
        self._print(shown, wire=options["wire"], as_json=options["json"])
        if not shown.is_complete:
            raise CommandError(f"A run would be refused: {shown.prepared.refusal}")

    def _print(self, shown: Preview, *, wire: bool, as_json: bool) -> None:
        data = shown.to_dict()
        if as_json:
            self.stdout.write(json.dumps(data, ensure_ascii=False, indent=2))
            return
        tokens = data["tokens"]
        self.stdout.write(f"{shown.prepared.persona} reads, with {data['model']}:\n")
        self.stdout.write(step_table(data["steps"]))
        self.stdout.write(message_table(data["messages"]))
        self.stdout.write(f"about {tokens['estimated']:,} of {tokens['window'] - tokens['reserved']:,} tokens")
        for notice in data["notices"]:
            self.stdout.write(self.style.WARNING(f"notice: {notice}"))
        if wire and data["wire"] is not None:
            self.stdout.write(f"\n{data['wire']['method']} {data['wire']['url']}")
            self.stdout.write(json.dumps(data["wire"]["body"], ensure_ascii=False, indent=2))
