"""A person steps in, and lets the persona go on."""

from typing import Any

import pytest
from django.utils import timezone

from personas.models import Persona
from protege.services import pausing, run_life, runs
from protege.services.sweep import sweep
from protege.testing import Call, Say, scripted
from protege.toolkit import tools
from tests.factories import MessageFactory, OutboundFactory, ParticipantFactory, RunFactory, UserFactory
from tests.mails import mail
from tests.services.receiving import received
from tests.toolbox import LookUp
from threads.models import EmailThread, Message, Run

pytestmark = pytest.mark.django_db


@pytest.fixture
def thread(run: Run) -> EmailThread:
    """A thread in which one run is queued."""
    assert run.thread is not None
    return run.thread


class Pausing(LookUp):
    """Pauses the thread of its run while the model works; `committed` does what the commit would do."""

    name = "pausing"

    def run(self, context: Any, order: int) -> Any:
        pausing.pause(context.message.thread_id)
        run_life.interrupt(context.message.thread_id)
        return "done"


class TestPause:
    def test_nothing_is_answered_and_the_run_waits(self, thread: EmailThread, run: Run) -> None:
        assert pausing.pause(thread, author=UserFactory())
        assert not pausing.pause(thread.pk)
        with scripted(Say("Never asked.")) as script:
            waiting = runs.execute(run.pk)
        assert (waiting.status, waiting.attempt, script.requests) == ("queued", 0, [])

    def test_the_sweep_does_not_wake_what_waits(self, thread: EmailThread) -> None:
        Run.objects.update(created_at="2026-01-01T00:00Z")
        pausing.pause(thread)
        assert sweep()["runs"] == 0

    def test_runs_of_other_threads_and_kinds_go_on(self, thread: EmailThread) -> None:
        pausing.pause(thread)
        recap = RunFactory(message=None, thread=thread, persona=thread.persona, kind="recap", status="queued")
        assert run_life.claim(recap.pk) is not None
        assert run_life.claim(RunFactory(status="queued").pk) is not None

    def test_a_worker_in_the_midst_of_it_mails_nothing(self, thread: EmailThread, run: Run) -> None:
        hold = Call("send_email", {"to": ["ana@client.example"], "subject": "x", "body": "It is on its way."})
        with tools.temporarily("pausing", Pausing):
            Persona.objects.update(tools=["pausing", "send_email"])
            with scripted(hold, Call("pausing", {"order": 1}), Say("Never mailed.")):
                done = runs.execute(run.pk)
        assert (done.status, done.lease_expires_at) == ("queued", None)
        assert [one.status for one in done.outbound.all()] == ["discarded"]

    def test_the_commit_takes_the_runs_from_their_workers(
        self, thread: EmailThread, run: Run, django_capture_on_commit_callbacks: Any
    ) -> None:
        claimed = run_life.claim(run.pk)
        assert claimed is not None
        with django_capture_on_commit_callbacks(execute=True):
            pausing.pause(thread)
        thread.refresh_from_db()
        assert thread.status == "waiting"
        assert Run.objects.get().status == "queued"

    def test_what_is_written_all_the_same_is_a_draft(self, thread: EmailThread, run: Run) -> None:
        class OnlyPausing(LookUp):
            name = "pausing"

            def run(self, context: Any, order: int) -> Any:
                EmailThread.objects.update(paused_at=timezone.now())
                return "done"

        with tools.temporarily("pausing", OnlyPausing):
            Persona.objects.update(tools=["pausing"])
            with scripted(Call("pausing", {"order": 1}), Say("It is on its way.")):
                done = runs.execute(run.pk)
        assert done.outbound.get().status == "draft"


class TestRelease:
    def test_the_newest_mail_is_answered_and_no_other(self, thread: EmailThread, run: Run) -> None:
        pausing.pause(thread)
        newest = [MessageFactory(thread=thread), MessageFactory(thread=thread)][1]
        queued = pausing.release(thread, author=UserFactory())
        assert queued is not None
        assert (queued.message, queued.status) == (newest, "queued")
        run.refresh_from_db()
        assert (run.status, run.code) == ("superseded", "thread_released")
        assert Run.objects.filter(status="queued").count() == 1

    def test_the_mail_that_waited_gets_a_fresh_run(self, thread: EmailThread, run: Run) -> None:
        Run.objects.update(attempt=2)
        pausing.pause(thread)
        queued = pausing.release(thread)
        assert queued is not None
        assert (queued.message, queued.attempt) == (run.message, 0)
        with scripted(Say("It is on its way.")):
            assert runs.execute(queued.pk).outbound.get().status == "queued"

    def test_a_thread_that_is_not_paused_is_left_alone(self, thread: EmailThread, run: Run) -> None:
        assert pausing.release(thread) is None
        pausing.pause(thread)
        assert pausing.release(thread) is not None
        assert pausing.release(thread) is None
        assert Run.objects.filter(status="queued").count() == 1

    @pytest.mark.parametrize("by", ["persona", "person", "colleague"])
    def test_what_has_an_answer_gets_no_other(self, thread: EmailThread, run: Run, by: str) -> None:
        pausing.pause(thread)
        if by == "persona":
            Message.objects.update(answered_by=OutboundFactory(thread=thread, answers=run.message))
        elif by == "person":
            OutboundFactory(thread=thread, origin="person")
        else:
            MessageFactory(thread=thread, from_address="dana@desk.example", status="ignored", last_code="staff_answer")
        assert pausing.release(thread) is None
        assert not Run.objects.filter(status="queued").exists()

    def test_ignored_mail_is_not_answered(self, thread: EmailThread, run: Run) -> None:
        pausing.pause(thread)
        MessageFactory(thread=thread, status="ignored", last_code="auto_submitted")
        queued = pausing.release(thread)
        assert queued is not None
        assert queued.message == run.message

    def test_a_thread_that_is_off_queues_nothing(self, thread: EmailThread) -> None:
        pausing.pause(thread)
        EmailThread.objects.update(reply_mode="off")
        assert pausing.release(thread) is None

    def test_a_call_that_waits_for_a_decision_goes_on_waiting(self, thread: EmailThread, run: Run) -> None:
        Run.objects.update(status="waiting")
        pausing.pause(thread)
        assert pausing.release(thread) == run


def test_a_colleague_writes_and_the_persona_goes_on_knowing_it(assistant: Persona) -> None:
    Persona.objects.update(staff_senders=["*@desk.example"], address="helper@desk.example")
    assistant.addresses.update(address="helper@desk.example")
    first = received(mail())
    ParticipantFactory(thread=first.thread, address="dana@desk.example")
    received(
        mail(
            from_="dana@desk.example",
            to="ana@client.example",
            Cc="helper@desk.example",
            message_id="<dana@desk.example>",
            In_Reply_To="<first@client.example>",
            text="We send another lamp. Helper will tell you the date.",
        )
    )
    first.thread.refresh_from_db()
    assert first.thread.paused_at is not None
    last = received(mail(message_id="<3@client.example>", In_Reply_To="<dana@desk.example>", text="And the date?"))
    queued = pausing.release(first.thread)
    assert queued is not None
    assert queued.message == last
    with scripted(Say("On Monday.")) as script:
        runs.execute(queued.pk)
    told = [(entry["role"], "another lamp" in str(entry["content"])) for entry in script.requests[0]["messages"]]
    assert ("user", True) in told
