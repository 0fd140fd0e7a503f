"""The polling door: mail that waits in mailboxes elsewhere."""

import signal
from argparse import ArgumentParser
from collections.abc import Sequence
from datetime import date
from threading import Event, current_thread, main_thread
from typing import Any

import django.db
from django.core.management.base import BaseCommand, CommandError

from protege.exceptions import ProtegeError
from protege.management.commands.receive_mail import describe
from protege.services import fetching


class Command(BaseCommand):
    help = (
        "Fetch new mail from the mailboxes in PROTEGE['IMAP_ACCOUNTS']. Nothing in them is changed or marked. The "
        "first fetch of a mailbox only notes where it ends: what arrives from then on is taken."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("accounts", nargs="*", metavar="ACCOUNT", help="labels of accounts (default: all)")
        parser.add_argument("--since", type=date.fromisoformat, metavar="DATE", help="also what arrived since that day")
        parser.add_argument("--loop", type=float, metavar="SECONDS", help="go on for ever, with this pause")

    def handle(self, *args: Any, **options: Any) -> None:
        chosen, since, pause = self._chosen(options["accounts"]), options["since"], options["loop"]
        stopped = self._stop_signal() if pause is not None else None
        failed = self._fetch_all(chosen, since)
        if stopped is None and failed:
            raise CommandError(f"Not fetched: {', '.join(account.label for account in failed)}.")
        while stopped is not None and not stopped.wait(pause):
            django.db.close_old_connections()
            # What was asked for once is asked for again only where it has not succeeded.
            others = [account for account in chosen if account not in failed]
            failed = self._fetch_all(failed, since) + self._fetch_all(others, None)
            since = since if failed else None

    def _chosen(self, labels: Sequence[str]) -> list[fetching.Account]:
        accounts = fetching.accounts()
        known = ", ".join(account.label for account in accounts)
        unknown = ", ".join(sorted(set(labels) - {account.label for account in accounts}))
        if unknown or not accounts:
            raise CommandError(f"PROTEGE['IMAP_ACCOUNTS'] has no {unknown or 'account'}; it has: {known or 'none'}.")
        return [account for account in accounts if not labels or account.label in labels]

    def _fetch_all(self, accounts: Sequence[fetching.Account], since: date | None) -> list[fetching.Account]:
        """Those that failed; one mailbox that cannot be read holds up no other."""
        return [account for account in accounts if not self._fetch(account, since)]

    def _fetch(self, account: fetching.Account, since: date | None) -> bool:
        count = 0
        try:
            for fetched in fetching.fetch(account, since=since):
                count += 1
                for delivery in fetched.deliveries:
                    self.stdout.write(f"{account.label}: UID {fetched.uid}: {describe(delivery)}")
        except ProtegeError as error:
            self.stderr.write(f"{account.label}: {error}")
            return False
        except django.db.Error as error:  # its text may quote the mail
            self.stderr.write(f"{account.label}: a mail could not be stored ({type(error).__name__})")
            return False
        self.stdout.write(f"{account.label}: {count} fetched")
        return True

    def _stop_signal(self) -> Event:
        """Set by SIGTERM, so that a service manager stops us between two fetches."""
        stopped = Event()
        if current_thread() is main_thread():
            signal.signal(signal.SIGTERM, lambda *_: stopped.set())
        return stopped
