"""The pipe door: a mail server's pipe transport, or a person with a file, hands one mail over."""

import os
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from protege.services import inbox
from threads.models import InboundMail, InboundStatus

REFUSED: dict[str, int] = {InboundStatus.UNROUTABLE: os.EX_NOUSER}
"""Exit codes of sysexits.h by what became of the mail; a mail that was stored is a success."""


class Command(BaseCommand):
    help = (
        "Take one mail (RFC 5322) from a file or standard input. Exit codes are those of sysexits.h, as mail servers "
        "expect: 0 taken, 66 no such file, 67 no persona at that address, 75 try again later."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", nargs="?", default="-", help="path of the mail, or - for standard input (default)")
        parser.add_argument("--to", nargs="+", default=[], metavar="ADDRESS", help="envelope recipients")
        parser.add_argument("--from", dest="sender", metavar="ADDRESS", help="envelope sender; '' is the null path")
        parser.add_argument("--tenant", default=None, help="route to personas of this tenant only")

    def handle(self, *args: Any, **options: Any) -> None:
        raw = self._read(options["file"])
        if not raw.strip():
            raise CommandError("The mail is empty.", returncode=os.EX_DATAERR)
        try:
            deliveries = inbox.receive(
                raw, recipients=options["to"], sender=options["sender"], source="pipe", tenant=options["tenant"]
            )
        except DatabaseError as error:
            raise CommandError(
                f"The database could not store the mail ({type(error).__name__}). Deliver it again later.",
                returncode=os.EX_TEMPFAIL,
            ) from None
        for delivery in deliveries:
            self.stdout.write(describe(delivery))
        refused = [REFUSED[delivery.status] for delivery in deliveries if delivery.status in REFUSED]
        if refused:
            sys.exit(refused[0])

    def _read(self, name: str) -> bytes:
        if name == "-":
            return sys.stdin.buffer.read()
        try:
            return Path(name).read_bytes()
        except OSError as error:
            raise CommandError(f"{name} cannot be read: {error.strerror}.", returncode=os.EX_NOINPUT) from None


def describe(delivery: InboundMail) -> str:
    """One line without anything of the mail."""
    facts = [f"inbound mail {delivery.pk}: {delivery.status}"]
    if delivery.reason:
        facts.append(f"({delivery.reason})")
    if delivery.message_id:
        facts.append(f"as message {delivery.message_id}")
    if delivery.persona is not None:
        facts.append(f"for {delivery.persona}")
    return " ".join(facts)
