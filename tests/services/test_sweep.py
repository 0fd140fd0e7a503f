from datetime import timedelta
from typing import Any

import pytest
from django.core import mail as django_mail
from django.utils import timezone

from protege.services import inbox
from protege.services.sweep import sweep
from protege.testing import Say, scripted
from tests.factories import (
    InboundMailFactory,
    MessageFactory,
    OutboundFactory,
    PersonaFactory,
    RawMailFactory,
    RunFactory,
)
from tests.mails import mail
from threads.models import InboundMail, Message, Run

pytestmark = pytest.mark.django_db

LONG_AGO = timezone.now() - timedelta(hours=1)


def test_a_mail_that_its_door_left_behind_goes_all_the_way(django_capture_on_commit_callbacks: Any) -> None:
    PersonaFactory(address="helper@desk.example")
    InboundMailFactory(raw=RawMailFactory(raw=mail()), recipients=["helper@desk.example"], received_at=LONG_AGO)
    with django_capture_on_commit_callbacks(execute=True):
        assert sweep()["mails"] == 1
    assert InboundMail.objects.get().status == "processed"
    assert Message.objects.filter(direction="outbound").get().status == "sent"
    assert len(django_mail.outbox) == 1


def test_a_queued_run_and_one_whose_worker_is_gone_go_on() -> None:
    queued = RunFactory(status="queued", model="offline:scripted", created_at=LONG_AGO)
    lost = RunFactory(status="running", model="offline:scripted", attempt=1, lease_expires_at=LONG_AGO)
    with scripted(Say("One."), Say("Two.")):
        assert sweep()["runs"] == 2
    assert set(Run.objects.values_list("pk", "status")) == {(queued.pk, "succeeded"), (lost.pk, "succeeded")}


def test_a_run_that_three_workers_lost_is_given_up() -> None:
    run = RunFactory(status="running", attempt=3, lease_expires_at=LONG_AGO)
    counts = sweep()
    run.refresh_from_db()
    assert (counts["lost_runs"], counts["runs"], run.code) == (1, 0, "worker_lost")


def test_due_sends_and_those_whose_worker_is_gone_go_out() -> None:
    OutboundFactory(status="queued")
    OutboundFactory(status="queued", next_attempt_at=LONG_AGO)
    OutboundFactory(status="sending", attempts=1, lease_expires_at=LONG_AGO)
    assert sweep()["sends"] == 3
    assert len(django_mail.outbox) == 3


def test_what_is_not_due_or_is_being_worked_on_is_left_alone() -> None:
    soon = timezone.now() + timedelta(hours=1)
    OutboundFactory(status="queued", next_attempt_at=soon)
    OutboundFactory(status="sending", attempts=1, lease_expires_at=soon)
    RunFactory(status="running", attempt=1, lease_expires_at=soon)
    RunFactory(status="queued")
    InboundMailFactory()
    MessageFactory()
    assert sweep() == {"mails": 0, "lost_runs": 0, "runs": 0, "sends": 0}
    assert django_mail.outbox == []


def test_a_mail_that_was_processed_is_not_processed_again() -> None:
    inbound = InboundMailFactory(status="failed", reason="error")
    assert inbox.process(inbound.pk)[0].status == "failed"
