"""How much mail is where, for people and for monitoring."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from protege.services.mail_status import mail_status


class Command(BaseCommand):
    help = "Count inbound mails, runs and outbound mails by their state, with what waits longest. Shows no text."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        status = mail_status()
        if options["json"]:
            self.stdout.write(json.dumps(status, indent=2))
            return
        for kind in ("inbound", "runs", "outbound"):
            counts = ", ".join(f"{state}: {number}" for state, number in status[kind].items()) or "none"
            self.stdout.write(f"{kind}: {counts}")
        for name, seconds in status["oldest_seconds"].items():
            waits = "nothing waits" if seconds is None else f"{seconds:,} seconds"
            self.stdout.write(f"oldest {name}: {waits}")
