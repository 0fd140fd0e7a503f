"""The same mail at the same moment, from many sides: one message, one run, one reply."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.core import mail as django_mail
from django.db import connection, connections

from protege.services import delivery, inbox, run_life, runs
from protege.testing import Say, scripted
from protege.toolkit import tools
from tests.crash.processes import World
from tests.factories import MessageFactory, OutboundFactory, PersonaFactory, RunFactory
from tests.mails import mail
from tests.toolbox import LookUp
from threads.models import InboundMail, Message, Run

pytestmark = pytest.mark.django_db(transaction=True)


def at_once(work: Any, *arguments: Any, workers: int = 8) -> list[Any]:
    """The results of `work` in as many threads, each with a connection of its own that is closed again."""

    def one(_: int) -> Any:
        try:
            return work(*arguments)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(one, range(workers)))


def test_a08_eight_threads_deliver_one_mail() -> None:
    PersonaFactory(address="helper@desk.example")
    rows = at_once(lambda: inbox.receive(mail(), recipients=["helper@desk.example"])[0].status)
    assert sorted(rows) == ["duplicate"] * 7 + ["processed"]
    assert Message.objects.filter(direction="inbound").count() == 1
    assert Run.objects.count() == 1
    assert len(django_mail.outbox) == 1


def test_a08_two_processes_deliver_one_mail(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.persona()
    for child in [world.start(), world.start()]:
        _, error = child.communicate(timeout=60)
        assert child.returncode == 0, error.decode()
    assert sorted(InboundMail.objects.values_list("status", flat=True)) == ["duplicate", "processed"]
    assert (Message.objects.filter(direction="inbound").count(), Run.objects.count()) == (1, 1)
    assert len(world.sent()) == 1


def test_sequences_have_no_gap_and_no_double() -> None:
    PersonaFactory(address="helper@desk.example", reply_mode="off")
    inbox.receive(mail(), recipients=["helper@desk.example"])
    numbers = iter(range(100))

    def reply() -> None:
        raw = mail(message_id=f"<{next(numbers)}@client.example>", In_Reply_To="<first@client.example>")
        inbox.receive(raw, recipients=["helper@desk.example"])

    at_once(reply)
    assert list(Message.objects.order_by("sequence").values_list("sequence", flat=True)) == list(range(1, 10))


def test_one_worker_gets_the_run() -> None:
    run = RunFactory(status="queued")
    assert sum(claimed is not None for claimed in at_once(run_life.claim, run.pk)) == 1
    run.refresh_from_db()
    assert run.attempt == 1


def test_c10_one_run_works_on_a_thread() -> None:
    first = RunFactory(status="queued")
    second = RunFactory(message=MessageFactory(thread=first.thread), status="queued")
    ids = iter([first.pk, second.pk] * 4)
    assert sum(claimed is not None for claimed in at_once(lambda: run_life.claim(next(ids)))) == 1
    assert Run.objects.filter(status="running").count() == 1


def test_eight_workers_do_a_run_once() -> None:
    with tools.temporarily("look_up", LookUp), scripted(Say("It is on its way.")) as script:
        run = RunFactory(status="queued", model="offline:scripted")
        at_once(runs.execute, run.pk)
    assert len(script.requests) == 1
    assert len(django_mail.outbox) == 1


def test_eight_workers_send_a_mail_once() -> None:
    message = OutboundFactory(status="queued")
    at_once(delivery.send, message.pk)
    assert len(django_mail.outbox) == 1
    assert connection.vendor in ("sqlite", "postgresql")
