"""The SMTP and LMTP door: a mail server beside us hands its mail over."""

import asyncio
import logging
import signal
from argparse import ArgumentParser
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from protege.exceptions import MissingExtraError

if TYPE_CHECKING:
    from protege.services.listening import Listener


class Command(BaseCommand):
    help = (
        "Take mail by SMTP, or LMTP, from the mail server in front, until SIGTERM. It asks for no password and has no "
        "TLS: let only that mail server reach it. With LMTP and Postfix, set lmtp_destination_recipient_limit = 1."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen at (default: 127.0.0.1)")
        parser.add_argument(
            "--port", type=int, default=8025, help="port to listen at; 0 takes a free one (default: 8025)"
        )
        parser.add_argument("--lmtp", action="store_true", help="speak LMTP")
        parser.add_argument("--tenant", default=None, help="route to personas of this tenant only")

    def handle(self, *args: Any, **options: Any) -> None:
        try:  # late, because the help must be readable without the extra
            from protege.services.listening import Listener
        except MissingExtraError as error:
            raise CommandError(str(error)) from None
        # The library logs each command with its addresses, and the mail itself at DEBUG.
        logging.getLogger("mail.log").setLevel(logging.ERROR)
        listener = Listener(lmtp=options["lmtp"], tenant=options["tenant"])
        asyncio.run(self._serve(listener, options["host"], options["port"]))

    async def _serve(self, listener: "Listener", host: str, port: int) -> None:
        stopped = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        try:
            await listener.start(host, port)
        except OSError as error:
            raise CommandError(f"{host}:{port} cannot be listened at: {error.strerror}.") from None
        protocol = "LMTP" if listener.lmtp else "SMTP"
        self.stdout.write(f"Listening for {protocol} at {listener.host}:{listener.port}. SIGTERM stops it.")
        self.stdout.flush()
        await stopped.wait()
        await listener.stop()
        self.stdout.write("Stopped.")
