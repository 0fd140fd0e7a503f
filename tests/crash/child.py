"""A process of its own that takes a mail, and dies by SIGKILL where it is told to.

    python -m tests.crash.child POINT FILES_ROOT OUTBOX MAIL

Nothing of ours is patched: it dies at a statement of the database, in the queue, in a tool, in a signal, or in the
e-mail backend, which are the host's to choose.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

from django.conf import settings
from django.core.mail.backends.base import BaseEmailBackend

STATEMENTS = {
    "after the raw mail is stored": 'SELECT "protege_threads_inboundmail"',
    "after it is parsed": 'SELECT "protege_personas_personaaddress"',
    "in the midst of recording": 'INSERT INTO "protege_threads_message"',
    "in the midst of concluding": 'INSERT INTO "protege_threads_message"',
}


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise SystemExit  # for the reader: nothing comes after SIGKILL


def main(point: str, files_root: str, outbox: str, mail: str) -> None:
    import django

    settings.PROTEGE["FILES_ROOT"] = files_root
    settings.EMAIL_BACKEND = "tests.crash.child.FileBackend"
    settings.OUTBOX = outbox
    settings.DIES_WHILE_SENDING = {"before it is sent": "before", "after it is sent": "after"}.get(point, "")
    if point == "before the run is queued":
        settings.TASKS = {"default": {"BACKEND": "tests.crash.child.DyingQueue", "QUEUES": []}}
    django.setup()
    _arm(point)

    from protege.services import inbox
    from protege.testing import Call, Say, scripted

    lines = [Call("look_up", {"order": 7})] if point == "during the run" else []
    with scripted(*lines, Say("It is on its way.")):
        inbox.receive(Path(mail).read_bytes(), recipients=["helper@desk.example"], source="test")


def _arm(point: str) -> None:
    """Set the trap that belongs to `point`."""
    from django.db import connection

    from protege.signals import run_finished
    from protege.toolkit import tools
    from tests.toolbox import LookUp

    class Deadly(LookUp):
        def run(self, context: Any, order: int) -> Any:
            die()

    tools.register("look_up", Deadly if point == "during the run" else LookUp)
    if point == "after the run is committed":
        run_finished.connect(lambda **_: die(), weak=False)
    if point in STATEMENTS:
        connection.execute_wrappers.append(_Trap(STATEMENTS[point], 2 if "concluding" in point else 1))


class _Trap:
    """Dies at the n-th statement that begins as told."""

    def __init__(self, beginning: str, number: int) -> None:
        self.beginning, self.left = beginning, number

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith(self.beginning):
            self.left -= 1
            if self.left == 0:
                die()
        return execute(sql, params, many, context)


def _immediate() -> Any:
    try:
        from django.tasks.backends.immediate import ImmediateBackend
    except ImportError:  # Django 5.2
        from django_tasks.backends.immediate import ImmediateBackend
    return ImmediateBackend


class DyingQueue(_immediate()):  # type: ignore[misc]
    """Dies when anything is put into it."""

    def enqueue(self, *args: Any, **kwargs: Any) -> NoReturn:
        die()


class FileBackend(BaseEmailBackend):
    """Puts each mail into the folder `OUTBOX`, and dies before or after that if it is told to."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.folder, self.dies = Path(settings.OUTBOX), settings.DIES_WHILE_SENDING

    def send_messages(self, messages: Any) -> int:
        if self.dies == "before":
            die()
        for message in messages:
            number = len(list(self.folder.iterdir()))
            (self.folder / f"{number}.eml").write_bytes(message.message().as_bytes())
        if self.dies == "after":
            die()
        return len(messages)


if __name__ == "__main__":
    main(*sys.argv[1:])
