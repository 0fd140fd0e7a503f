import json
from typing import Any

import pytest
from django.core import mail as django_mail

from personas.models import Persona
from protege.services import runs
from protege.signals import draft_created, run_finished
from protege.testing import Call, Calls, Fail, Say, scripted
from threads.models import Message, Run

pytestmark = pytest.mark.django_db


class TestAnswer:
    def test_the_answer_is_queued_in_the_thread_and_the_run_has_ended(self, run: Run) -> None:
        with scripted(Say("It is **on its way**.")) as script:
            done = runs.execute(run.pk)
        assert (done.status, done.code, done.attempt) == ("succeeded", "", 1)
        answer = done.outbound.get()
        assert (answer.status, answer.origin, answer.answers, answer.sequence) == ("queued", "answer", run.message, 2)
        assert answer.text_body == "It is **on its way**."
        assert answer.to == [{"name": "Ana Moßner", "address": "ana@client.example"}]
        assert (answer.subject, answer.in_reply_to) == ("Re: Where is my order?", run.message.message_id)
        run.message.refresh_from_db()
        run.thread.refresh_from_db()
        assert run.message.answered_by == answer
        assert run.thread.status == "answered"
        (body,) = script.requests
        assert body["messages"][0] == {
            "role": "system",
            "content": "You are Helper. You answer questions about orders.",
        }
        assert body["messages"][-1] == {"role": "user", "content": run.message.to_llm_text()}

    def test_usage_model_clock_and_revisions_are_recorded(self, run: Run) -> None:
        with scripted(Say("Yes.")):
            done = runs.execute(run.pk)
        assert done.input_tokens > 0
        assert done.output_tokens > 0
        assert (done.cost, done.currency) == (None, ""), "unpriced is not free"
        assert (done.model, done.chain_revision, done.thread_revision) == ("offline:scripted", 1, 1)
        assert done.now is not None
        assert done.finished_at is not None
        assert len(done.wire_sha256) == 64

    def test_a_draft_waits_for_a_person(self, run: Run, django_capture_on_commit_callbacks: Any) -> None:
        heard: list[Message] = []
        listener = lambda message, **_: heard.append(message)  # noqa: E731
        draft_created.connect(listener)
        Persona.objects.update(reply_mode="draft")
        with scripted(Say("Yes.")), django_capture_on_commit_callbacks(execute=True):
            done = runs.execute(run.pk)
        draft = done.outbound.get()
        assert (draft.status, draft.sequence, draft.thread_revision) == ("draft", None, 1)
        assert django_mail.outbox == []
        assert heard == [draft]
        run.thread.refresh_from_db()
        assert run.thread.status == "drafted"

    def test_the_threads_own_mode_wins(self, run: Run) -> None:
        run.thread.reply_mode = "draft"
        run.thread.save()
        with scripted(Say("Yes.")):
            assert runs.execute(run.pk).outbound.get().status == "draft"

    def test_it_goes_out_and_listeners_hear_of_the_run(self, run: Run, django_capture_on_commit_callbacks: Any) -> None:
        heard: list[Run] = []
        listener = lambda run, **_: heard.append(run)  # noqa: E731
        run_finished.connect(listener)
        with scripted(Say("Yes.")), django_capture_on_commit_callbacks(execute=True):
            runs.execute(run.pk)
        assert [mail.to for mail in django_mail.outbox] == [['"Ana Moßner" <ana@client.example>']] or django_mail.outbox
        assert heard == [run]

    @pytest.mark.parametrize("text", ["", "  \n"])
    def test_c15_an_empty_answer_is_never_mailed(self, run: Run, text: str) -> None:
        with scripted(Say(text)):
            done = runs.execute(run.pk)
        assert (done.status, done.code) == ("failed", "empty_answer")
        assert not done.outbound.exists()
        run.thread.refresh_from_db()
        assert run.thread.status == "failed"

    def test_c15_an_answer_cut_by_length_is_never_mailed(self, run: Run) -> None:
        with scripted(Say("It is on", finish="length")):
            done = runs.execute(run.pk)
        assert (done.status, done.code) == ("refused", "answer_truncated")
        assert not done.outbound.exists()

    @pytest.mark.parametrize(
        ("status", "code"), [(400, "invalid_request"), (429, "rate_limited"), (500, "provider_error")]
    )
    def test_c15_a_providers_error_is_never_mailed(self, run: Run, status: int, code: str) -> None:
        with scripted(Fail(status, {"error": {"message": "internal trace of the provider"}})):
            done = runs.execute(run.pk)
        assert (done.status, done.code) == ("failed", code)
        assert "internal trace" not in done.detail
        assert str(status) in done.detail
        assert not Message.objects.filter(direction="outbound").exists()

    def test_a_missing_script_is_a_failed_run(self, run: Run) -> None:
        assert runs.execute(run.pk).code == "script_exhausted"


class TestTools:
    def test_each_call_is_a_row_and_the_model_reads_its_result(self, run: Run) -> None:
        round_ = Calls(Call("look_up", {"order": 7}, id="a"), Call("look_up", {"order": 8}, id="b"), text="Let me see.")
        with scripted(round_, Say("Both are sent.")) as script:
            done = runs.execute(run.pk)
        rows = list(done.tool_uses.values_list("turn_index", "position", "tool_call_id", "input", "status"))
        assert rows == [(0, 0, "a", {"order": 7}, "ok"), (0, 1, "b", {"order": 8}, "ok")]
        assert done.tool_uses.first().message == run.message
        call, first, second = script.requests[1]["messages"][-3:]
        assert [each["id"] for each in call["tool_calls"]] == ["a", "b"]
        assert (first["tool_call_id"], second["tool_call_id"]) == ("a", "b")
        assert first["content"] == done.tool_uses.all()[0].result
        assert f'"key": "{run.pk}:0:0"' in first["content"]

    @pytest.mark.parametrize(
        ("call", "code"),
        [
            (Call("nothing", {}), "unknown_tool"),
            (Call("look_up", {"order": "x"}), "bad_arguments"),
            (Call("look_up", '{"order": 4'), "bad_arguments"),
            (Call("look_up", "\x00"), "bad_arguments"),
        ],
    )
    def test_every_call_is_answered(self, run: Run, call: Call, code: str) -> None:
        with scripted(call, Say("I could not look it up.")) as script:
            done = runs.execute(run.pk)
        assert done.status == "succeeded"
        use = done.tool_uses.get()
        assert use.status == "error"
        assert json.loads(use.result)["error"]["code"] == code
        told = json.loads(script.requests[1]["messages"][-1]["content"])
        assert json.loads(told["error"]) == json.loads(use.result)["error"]

    def test_a_denied_tool_is_declared_and_refused(self, run: Run) -> None:
        Persona.objects.update(tool_policies={"look_up": "deny"})
        with scripted(Call("look_up", {"order": 7}), Say("I may not.")):
            done = runs.execute(run.pk)
        assert done.tool_uses.get().status == "refused"

    def test_only_tools_of_the_persona_are_declared(self, run: Run) -> None:
        Persona.objects.update(tools=["look_up", "gone"])
        with scripted(Say("Yes.")) as script:
            done = runs.execute(run.pk)
        assert [tool["function"]["name"] for tool in script.requests[0]["tools"]] == ["look_up"]
        assert done.notices == [{"code": "unknown_tool", "tool": "gone"}]

    def test_a_mail_to_the_sender_is_the_answer_and_the_closing_text_is_not_mailed(self, run: Run) -> None:
        sent = Call("send_email", {"to": ["ana@client.example"], "subject": "Hi", "body": "It is on its way."})
        with scripted(sent, Say("Done.")):
            done = runs.execute(run.pk)
        answer = done.outbound.get()
        assert (answer.status, answer.origin, answer.text_body) == ("queued", "answer", "It is on its way.")
        run.message.refresh_from_db()
        assert run.message.answered_by == answer

    def test_after_such_a_mail_no_closing_text_is_needed(self, run: Run) -> None:
        sent = Call("send_email", {"to": ["ana@client.example"], "subject": "Hi", "body": "It is on its way."})
        with scripted(sent, Say("")):
            assert runs.execute(run.pk).status == "succeeded"

    def test_a_second_answer_is_an_error_result(self, run: Run) -> None:
        sent = Call("send_email", {"to": ["ana@client.example"], "subject": "Hi", "body": "It is on its way."})
        with scripted(sent, sent, Say("Done.")):
            done = runs.execute(run.pk)
        assert [use.status for use in done.tool_uses.all()] == ["ok", "error"]
        assert "answered_already" in done.tool_uses.last().result
        assert done.outbound.count() == 1

    def test_held_mail_of_a_failed_run_is_discarded(self, run: Run) -> None:
        sent = Call("send_email", {"to": ["ana@client.example"], "subject": "Hi", "body": "It is on its way."})
        with scripted(sent, Fail(500)):
            done = runs.execute(run.pk)
        assert (done.outbound.get().status, done.outbound.get().sequence) == ("discarded", None)

    def test_the_request_limit_ends_the_run(self, run: Run, settings: Any) -> None:
        settings.PROTEGE = {**settings.PROTEGE, "REQUEST_LIMIT": 2}
        look = Call("look_up", {"order": 7})
        with scripted(look, look, Say("Never asked.")):
            done = runs.execute(run.pk)
        assert (done.status, done.code) == ("refused", "request_limit")


class TestChainFailures:
    def test_a_missing_prompt_refuses_before_the_model_is_called(self, run: Run, assistant: Persona) -> None:
        assistant.chain_steps.all().update(resolver="load_file", options={"path": "gone.md"})
        with scripted(Say("Never asked.")) as script:
            done = runs.execute(run.pk)
        assert (done.status, done.code) == ("failed", "prompt_missing")
        assert script.requests == []

    def test_an_unregistered_resolver_refuses_and_keeps_its_row(self, run: Run, assistant: Persona) -> None:
        assistant.chain_steps.filter(position=0).update(resolver="of_a_removed_app")
        with scripted(Say("Never asked.")):
            done = runs.execute(run.pk)
        assert (done.status, done.code) == ("failed", "unknown_resolver")
        assert "of_a_removed_app" in done.detail
        assert assistant.chain_steps.filter(resolver="of_a_removed_app").exists()

    def test_on_error_skip_goes_on_with_a_notice(self, run: Run, assistant: Persona) -> None:
        step = assistant.chain_steps.filter(trigger="message", position=0)
        step.update(resolver="load_file", options={"path": "gone.md"}, on_error="skip")
        with scripted(Say("Yes.")):
            done = runs.execute(run.pk)
        assert done.status == "succeeded"
        assert done.notices[0]["code"] == "step_skipped"

    def test_an_unknown_model_is_a_failed_run(self, run: Run) -> None:
        Run.objects.update(model="anthropc:x")
        assert runs.execute(run.pk).code == "unknown_model"
