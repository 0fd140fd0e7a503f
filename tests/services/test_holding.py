"""The one neutral sentence of a persona that could not answer."""

from typing import Any

import pytest
from django.core import mail as django_mail

from personas.models import Persona
from protege.services import run_life, runs
from protege.testing import Fail, Say, scripted
from tests.factories import MessageFactory, OutboundFactory, RunFactory
from threads.models import EmailThread, Message, Run

pytestmark = pytest.mark.django_db

SENTENCE = "Thank you. We will come back to you."


@pytest.fixture
def run(run: Run) -> Run:
    """The queued run of a persona that has a holding sentence."""
    Persona.objects.update(holding_reply=SENTENCE)
    return Run.objects.get(pk=run.pk)


def failed(run: Run) -> Run:
    with scripted(Fail(500, {"error": {"message": "internal trace of the provider"}})):
        return runs.execute(run.pk)


def another(run: Run, **fields: Any) -> Run:
    fields = {"message": MessageFactory(thread=EmailThread.objects.get(pk=run.thread_id)), **fields}
    return RunFactory(status="queued", **fields)


def outbound() -> list[Message]:
    return list(Message.objects.filter(direction="outbound").order_by("pk"))


def test_c15_it_is_sent_when_a_run_has_failed(run: Run, django_capture_on_commit_callbacks: Any) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        failed(run)
    (sent,) = django_mail.outbox
    assert sent.body == SENTENCE
    assert sent.extra_headers["In-Reply-To"] == run.message.message_id
    assert sent.extra_headers["References"] == run.message.message_id
    assert sent.extra_headers["Auto-Submitted"] == "auto-replied"


def test_c15_it_is_no_answer(run: Run) -> None:
    failed(run)
    (holding,) = outbound()
    assert (holding.origin, holding.status, holding.answers) == ("tool", "queued", run.message)
    run.message.refresh_from_db()
    run.thread.refresh_from_db()
    assert (run.message.answered_by, run.thread.status) == (None, "failed")
    with scripted(Say("It is on its way.")):
        answer = runs.execute(another(run, message=run.message).pk).outbound.get()
    assert (answer.status, answer.origin) == ("queued", "answer")


def test_it_is_sent_at_most_once_until_answered(run: Run) -> None:
    failed(run)
    failed(another(run, message=run.message))
    failed(another(run))
    assert len(outbound()) == 1
    with scripted(Say("It is on its way.")):
        runs.execute(another(run).pk)
    failed(another(run))
    assert [one.origin for one in outbound()] == ["tool", "answer", "tool"]


def test_a_refused_run_has_one_too(run: Run) -> None:
    with scripted(Say("It is on", finish="length")):
        assert runs.execute(run.pk).status == "refused"
    assert [one.text_body for one in outbound()] == [SENTENCE]


def test_it_goes_to_the_sender_alone(run: Run) -> None:
    copied = [{"name": "", "address": run.persona.address}, {"name": "", "address": "ben@client.example"}]
    Message.objects.update(to=copied)
    failed(run)
    assert [entry["address"] for entry in outbound()[0].to] == ["ana@client.example"]


@pytest.mark.parametrize("status", ["superseded", "cancelled"])
def test_none_for_a_run_that_something_else_took_the_place_of(run: Run, status: str) -> None:
    claimed = run_life.claim(run.pk)
    assert claimed is not None
    run_life.finish(claimed, status)  # type: ignore[arg-type]
    assert outbound() == []


@pytest.mark.parametrize("mode", ["draft", "off"])
def test_none_where_a_person_decides(run: Run, mode: str) -> None:
    EmailThread.objects.update(reply_mode=mode)
    failed(run)
    assert outbound() == []


def test_none_for_a_mail_that_has_an_answer(run: Run) -> None:
    Message.objects.update(answered_by=OutboundFactory(thread=run.thread, answers=run.message))
    failed(run)
    assert len(outbound()) == 1


def test_none_without_a_sentence(run: Run) -> None:
    Persona.objects.update(holding_reply=" ")
    failed(run)
    assert outbound() == []


def test_a_run_that_answers_twice_says_so_and_holds_nothing(run: Run) -> None:
    answer = OutboundFactory(thread=run.thread, answers=run.message)
    Message.objects.filter(pk=run.message_id).update(answered_by=answer)
    with scripted(Say("Once more.")):
        done = runs.execute(run.pk)
    assert (done.status, done.code) == ("failed", "answered_already")
    assert outbound() == [answer]
