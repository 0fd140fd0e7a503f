from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from personas.models import Persona
from protege.exceptions import LeaseLostError
from protege.services import run_life, runs
from protege.testing import Call, Fail, Say, scripted
from protege.toolkit import tools
from tests.factories import MessageFactory, OutboundFactory, RunFactory
from tests.toolbox import LookUp
from threads.models import Run, ToolUse

pytestmark = pytest.mark.django_db


class TestLife:
    def test_a_finished_run_is_not_done_again(self, run: Run) -> None:
        with scripted(Say("Yes.")):
            runs.execute(run.pk)
            runs.execute(run.pk)
        assert Run.objects.get().attempt == 1
        assert run.outbound.count() == 1

    def test_one_run_works_on_a_thread_and_the_next_waits(self, run: Run) -> None:
        later = RunFactory(message=MessageFactory(thread=run.thread), status="queued")
        assert run_life.claim(run.pk) is not None
        with scripted(Say("Never asked.")) as script:
            assert runs.execute(later.pk).status == "queued"
        assert script.requests == []

    def test_the_next_run_of_the_thread_is_woken(self, run: Run, django_capture_on_commit_callbacks: Any) -> None:
        later = RunFactory(message=MessageFactory(thread=run.thread), status="queued")
        with scripted(Say("First."), Say("Second.")), django_capture_on_commit_callbacks(execute=True):
            runs.execute(run.pk)
        later.refresh_from_db()
        assert later.status == "succeeded"

    def test_pending_documents_hold_a_run_back(self, run: Run) -> None:
        from tests.factories import AttachmentFactory

        file = AttachmentFactory(message=run.message, text_status="pending")
        assert run_life.claim(run.pk) is None
        file.text_status = "done"
        file.save()
        assert run_life.claim(run.pk) is not None

    def test_a_run_whose_lease_has_passed_is_taken_over(self, run: Run) -> None:
        lost = run_life.claim(run.pk)
        assert lost is not None
        assert run_life.claim(run.pk) is None
        Run.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
        with scripted(Say("Yes.")):
            done = runs.execute(run.pk)
        assert (done.status, done.attempt) == ("succeeded", 2)
        with pytest.raises(LeaseLostError):
            run_life.renew(lost, 10)
        with pytest.raises(LeaseLostError):
            run_life.finish(lost, run.status.__class__("failed"))

    def test_what_was_called_before_a_take_over_is_read_and_not_repeated(self, run: Run) -> None:
        claimed = run_life.claim(run.pk)
        assert claimed is not None
        ToolUse.objects.create(
            run=run, message=run.message, turn_index=0, position=0, tool_call_id="a", name="look_up",
            input={"order": 7}, status="started",
        )  # fmt: skip
        Run.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
        with scripted(Call("look_up", {"order": 8}), Say("Yes.")) as script:
            done = runs.execute(run.pk)
        assert "interrupted" in script.requests[0]["messages"][-1]["content"]
        assert list(done.tool_uses.values_list("turn_index", flat=True)) == [0, 1]

    def test_a_worker_that_lost_its_lease_in_the_midst_mails_nothing(self, run: Run) -> None:
        class Stealing(LookUp):
            name = "stealing"

            def run(self, context: Any, order: int) -> Any:
                Run.objects.filter(pk=context.run_id).update(attempt=9)
                return "stolen"

        with tools.temporarily("stealing", Stealing):
            Persona.objects.update(tools=["stealing"])
            with scripted(Call("stealing", {"order": 1}), Say("Never mailed.")):
                done = runs.execute(run.pk)
        assert (done.status, done.attempt) == ("running", 9)
        assert not done.outbound.exists()
        assert done.tool_uses.get().result == ""

    def test_three_lost_workers_end_a_run(self, run: Run) -> None:
        Run.objects.update(status="running", attempt=3, lease_expires_at=timezone.now() - timedelta(seconds=1))
        assert run_life.claim(run.pk) is None
        assert run_life.give_up_lost(run.pk)
        run.refresh_from_db()
        assert (run.status, run.code) == ("failed", "worker_lost")

    def test_no_transaction_is_open_over_a_model_call(self, run: Run) -> None:
        depth: list[bool] = []

        class Watching(LookUp):
            name = "watching"

            def run(self, context: Any, order: int) -> Any:
                depth.append(len(connection.savepoint_ids) > 0)
                return "seen"

        with tools.temporarily("watching", Watching):
            Persona.objects.update(tools=["watching"])
            with scripted(Call("watching", {"order": 1}), Say("Yes.")):
                runs.execute(run.pk)
        assert depth == [False]

    def test_logs_hold_no_text_of_a_mail(self, run: Run, caplog: Any) -> None:
        OutboundFactory(thread=run.thread)
        with caplog.at_level("DEBUG", logger="protege"), scripted(Fail(400)):
            runs.execute(run.pk)
        assert "order 77" not in caplog.text
        assert "ana@client.example" not in caplog.text
