"""Two people who act at the same moment act once."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core import mail as django_mail
from django.db import connections
from django.utils import timezone

from protege.exceptions import DraftError
from protege.services import drafts, pausing
from tests.factories import MessageFactory, OutboundFactory
from threads.models import Message, Run


@pytest.mark.django_db(transaction=True)
def test_eight_approvals_at_once_send_one_mail() -> None:
    question = MessageFactory()
    draft = OutboundFactory(status="draft", answers=question, thread=question.thread)

    def approve(_: int) -> str:
        try:
            return drafts.approve(draft.pk, author=None).status
        except DraftError as error:
            return error.code
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        outcomes = sorted(pool.map(approve, range(8)))
    assert outcomes == ["not_a_draft"] * 7 + ["sent"]
    assert len(django_mail.outbox) == 1
    assert Message.objects.get(pk=draft.pk).sequence == 2


@pytest.mark.django_db(transaction=True)
def test_eight_releases_at_once_queue_one_run() -> None:
    question = MessageFactory(thread__paused_at=timezone.now())

    def release(_: int) -> bool:
        try:
            return pausing.release(question.thread_id) is not None
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(release, range(8))) == 1
    assert Run.objects.count() == 1
