"""One sweep, for cron and for people."""

from typing import Any

from django.core.management.base import BaseCommand

from protege.services.sweep import sweep


class Command(BaseCommand):
    help = "Wake everything that waits: received mails, queued runs, expired leases, due sends. Run it every minute."

    def handle(self, *args: Any, **options: Any) -> None:
        counts = sweep()
        self.stdout.write(", ".join(f"{kind.replace('_', ' ')}: {count}" for kind, count in counts.items()))
