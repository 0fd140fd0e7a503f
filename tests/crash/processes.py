"""Child processes on the test's own database."""

import os
import subprocess
import sys
from email import message_from_bytes
from pathlib import Path

from django.db import connection

from personas.models import Persona
from protege.services import chains
from tests.factories import PersonaFactory
from tests.mails import mail


def database_url() -> str:
    """The URL of the database that this test runs on."""
    parts = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{parts['NAME']}"
    login = ":".join(filter(None, [parts["USER"], parts["PASSWORD"]]))
    host = ":".join(filter(None, [parts["HOST"], str(parts["PORT"] or "")]))
    return f"postgres://{login}{'@' if login else ''}{host}/{parts['NAME']}"


class World:
    """A persona, a mail in a file, and an outbox on disk that survive the death of a process."""

    def __init__(self, folder: Path) -> None:
        self.files, self.outbox, self.mail = folder / "files", folder / "outbox", folder / "mail.eml"
        self.outbox.mkdir()
        self.mail.write_bytes(mail())

    def persona(self) -> Persona:
        persona = PersonaFactory(address="helper@desk.example", model="offline:scripted", tools=["look_up"])
        chains.save_defaults(persona)
        return persona

    def start(self, point: str = "never") -> "subprocess.Popen[bytes]":
        """A child that takes the mail; it dies at `point`."""
        command = [sys.executable, "-m", "tests.crash.child", point, self.files, self.outbox, self.mail]
        return subprocess.Popen(
            [str(part) for part in command],
            env={**os.environ, "DATABASE_URL": database_url(), "DJANGO_SETTINGS_MODULE": "tests.settings"},
            cwd=Path(__file__).resolve().parents[2],
            stderr=subprocess.PIPE,
        )

    def sent(self) -> list[str]:
        """The Message-IDs of the mails that left, in order."""
        return [message_from_bytes(path.read_bytes())["Message-ID"] for path in sorted(self.outbox.iterdir())]
