"""A worker may die anywhere: after a restart the mail is answered exactly once."""

import signal
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from protege.services.sweep import sweep
from protege.testing import Say, scripted
from protege.toolkit import tools
from tests.crash.processes import World
from tests.toolbox import LookUp
from threads.models import InboundMail, Message, Run

pytestmark = pytest.mark.django_db(transaction=True)

POINTS = [
    "after the raw mail is stored",
    "after it is parsed",
    "in the midst of recording",
    "before the run is queued",
    "during the run",
    "in the midst of concluding",
    "after the run is committed",
    "before it is sent",
    "after it is sent",
]


@pytest.fixture
def world(tmp_path: Path, settings: Any) -> World:
    world = World(tmp_path)
    settings.PROTEGE = {**settings.PROTEGE, "FILES_ROOT": world.files}
    settings.EMAIL_BACKEND = "tests.crash.child.FileBackend"
    settings.OUTBOX, settings.DIES_WHILE_SENDING = str(world.outbox), ""
    return world


def let_time_pass() -> None:
    """Leases run out and grace is over, as they are some minutes later."""
    past = timezone.now() - timedelta(hours=1)
    InboundMail.objects.update(received_at=past)
    Run.objects.update(created_at=past)
    Run.objects.filter(lease_expires_at__isnull=False).update(lease_expires_at=past)
    Message.objects.filter(lease_expires_at__isnull=False).update(lease_expires_at=past)


@pytest.mark.parametrize("point", POINTS)
def test_the_mail_is_answered_exactly_once(world: World, point: str) -> None:
    world.persona()
    child = world.start(point)
    _, error = child.communicate(timeout=60)
    assert child.returncode == -signal.SIGKILL, error.decode()
    let_time_pass()
    with tools.temporarily("look_up", LookUp), scripted(Say("It is on its way.")):
        sweep()
        sweep()
    assert InboundMail.objects.get().status == "processed"
    inbound = Message.objects.get(direction="inbound")
    answer = Message.objects.get(direction="outbound")
    assert (answer.status, answer.answers, inbound.answered_by) == ("sent", inbound, answer)
    assert Run.objects.get().status == "succeeded"
    copies = 2 if point == "after it is sent" else 1
    assert world.sent() == [answer.message_id] * copies


def test_a_child_that_lives_does_it_all(world: World) -> None:
    world.persona()
    child = world.start()
    _, error = child.communicate(timeout=60)
    assert child.returncode == 0, error.decode()
    assert len(world.sent()) == 1
