"""A real IMAP server on this machine, with folders for the tests."""

import imaplib
import io
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from typing import Any

from django.core.management import call_command

from tests.doors.cases import HELPER, crlf_mail

USER, PASSWORD = "ana", "imap-4715"
NUMBERS = count(1)
SERVER = "import sys; from pymap.main import main; sys.exit(main())"


class ImapServer:
    """pymap with its storage in memory; a folder that is made anew is numbered anew (UIDVALIDITY)."""

    def __init__(self) -> None:
        self.port = free_port()
        self.process = subprocess.Popen(
            [
                sys.executable, "-c", SERVER, "--host", "127.0.0.1", "--port", str(self.port), "--no-service", "admin",
                "--no-tls", "dict", "--demo-user", USER, "--demo-password", PASSWORD,
            ]
        )  # fmt: skip
        wait_for(self.port)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=10)

    @contextmanager
    def client(self) -> Iterator[imaplib.IMAP4]:
        with imaplib.IMAP4("127.0.0.1", self.port) as client:
            client.login(USER, PASSWORD)
            yield client

    def create(self, folder: str) -> None:
        with self.client() as client:
            assert client.create(folder)[0] == "OK"

    def delete(self, folder: str) -> None:
        with self.client() as client:
            assert client.delete(folder)[0] == "OK"

    def append(self, folder: str, raw: bytes, *, reached_at: datetime | None = None) -> int:
        """The new mail's UID."""
        stamp = imaplib.Time2Internaldate(reached_at or datetime.now(UTC))
        with self.client() as client:
            status, answer = client.append(folder, "", stamp, raw)
            assert status == "OK"
        return int(answer[0].split()[2].rstrip(b"]"))

    def remove(self, folder: str, uid: int) -> None:
        with self.client() as client:
            client.select(folder)
            client.uid("STORE", str(uid), "+FLAGS", r"(\Deleted)")
            client.expunge()

    def flags(self, folder: str) -> bytes:
        with self.client() as client:
            client.select(folder, readonly=True)
            return b" ".join(client.uid("FETCH", "1:*", "(FLAGS)")[1])


class Mailbox:
    """A folder of the server, which is the account `desk` of the settings."""

    def __init__(self, server: ImapServer, settings: Any) -> None:
        self.server, self.settings = server, settings
        self.folder = f"Folder{next(NUMBERS)}"
        server.create(self.folder)
        self.bind(recipients=[HELPER])

    def bind(self, **entry: Any) -> None:
        account = {
            "host": "127.0.0.1", "port": self.server.port, "user": USER, "password_env": "TEST_IMAP_PASSWORD",
            "folder": self.folder, "tls": "none",
        }  # fmt: skip
        self.settings.PROTEGE = {**self.settings.PROTEGE, "IMAP_ACCOUNTS": {"desk": {**account, **entry}}}

    def put(self, raw: bytes, **options: Any) -> int:
        return self.server.append(self.folder, raw, **options)

    def renumber(self) -> None:
        self.server.delete(self.folder)
        self.server.create(self.folder)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def wait_for(port: int, *, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def fetch(**options: Any) -> str:
    out, err = io.StringIO(), io.StringIO()
    call_command("fetch_imap", stdout=out, stderr=err, **options)
    return out.getvalue() + err.getvalue()


def numbered(number: int, **fields: Any) -> bytes:
    return crlf_mail(message_id=f"<{number}@client.example>", **fields)
