"""The loop, asserted on the requests that a scripted model got: every call is answered, whatever it was."""

import json
from typing import Any

import pytest

from protege.context import Context
from protege.inference.limits import Limits
from protege.testing import Call, Calls, Say, scripted
from protege.toolkit import Tool, ToolResult
from tests.inference.journals import MAX_TOKENS, ROUND, Break, ListJournal, looped, results


def only_error(call: Call, *, refuse: str = "", limits: Limits | None = None) -> dict[str, Any]:
    """What the model reads after one call that goes wrong."""
    with scripted(call, Say("done")) as script:
        answer = looped(ListJournal(refuse=refuse), limits=limits)
    assert answer.text == "done"
    ((_, read),) = results(script)
    error = json.loads(read["error"])
    assert isinstance(error, dict)
    return error


def test_an_answer_without_calls_ends_the_loop() -> None:
    journal = ListJournal()
    with scripted(Say("It is on its way."), Say("never")) as script:
        answer = looped(journal)
    assert (answer.text, answer.requests, answer.tool_calls) == ("It is on its way.", 1, 0)
    assert journal.lines == ["before_request 0", "posted 0", "responded 0"]
    assert len(script.requests) == 1


def test_an_empty_answer_ends_the_loop_too() -> None:
    with scripted(Say("")):
        assert looped(ListJournal()).text == ""


def test_the_model_reads_the_results_in_the_order_of_its_calls() -> None:
    with scripted(ROUND, Say("done")) as script:
        looped(ListJournal())
    assert [(name, read["order"]) for name, read in results(script)] == [("a", 1), ("b", 2)]


def test_a_later_request_is_the_earlier_one_and_what_came_of_it() -> None:
    with scripted(ROUND, Call("look_up", {"order": 3}, id="c"), Say("done")) as script:
        looped(ListJournal())
    first, second, third = (request["messages"] for request in script.requests)
    assert second[: len(first)] == first
    assert third[: len(second)] == second
    assert [message["role"] for message in third] == ["user", "assistant", "tool", "tool", "assistant", "tool"]
    assert second[1]["content"] == "I look."


def test_every_request_has_the_same_tools_and_limit() -> None:
    with scripted(ROUND, Say("done")) as script:
        looped(ListJournal())
    first, second = script.requests
    assert [tool["function"]["name"] for tool in second["tools"]] == ["look_up", "break_down"]
    assert first["tools"] == second["tools"]
    assert MAX_TOKENS in first.values()
    assert MAX_TOKENS in second.values()


def test_the_journal_is_told_of_everything_in_its_order() -> None:
    journal = ListJournal()
    with scripted(ROUND, Say("done")):
        looped(journal)
    assert journal.lines == [
        "before_request 0", "posted 0", "responded 0",
        "started 0 0", "finished 0 0", "started 0 1", "finished 0 1",
        "before_request 1", "posted 1", "responded 1",
    ]  # fmt: skip


def test_the_journal_gets_the_bodies_that_were_posted() -> None:
    journal = ListJournal()
    with scripted(ROUND, Say("done")) as script:
        looped(journal)
    assert [json.loads(body) for body in journal.bodies] == script.requests


def test_turns_are_counted_on_from_what_the_journal_holds() -> None:
    journal = ListJournal()
    with scripted(Call("look_up", {"order": 1}), Say("done")) as script:
        looped(journal, previous=4)
    assert journal.lines[0] == "before_request 4"
    assert journal.lines[-1] == "responded 5"
    assert results(script)[0][1]["key"] == "9:4:0"


def test_each_call_is_made_under_its_own_key() -> None:
    with scripted(ROUND, Call("look_up", {"order": 3}), Say("done")) as script:
        looped(ListJournal())
    assert [read["key"] for _, read in results(script, 2)] == ["9:0:0", "9:0:1", "9:1:0"]


def test_a_tool_reads_the_runs_own_context() -> None:
    tool = Break()
    with scripted(Call("break_down"), Say("done")):
        looped(ListJournal(), tools=[tool])
    (context,) = tool.contexts
    assert isinstance(context, Context)
    assert context.idempotency_key == "9:0:0"


def test_an_unknown_tool_is_told_the_known_ones() -> None:
    error = only_error(Call("fly", {"to": "Graz"}))
    assert error["code"] == "unknown_tool"
    assert "look_up, break_down" in error["message"]


def test_an_unknown_tool_where_there_are_none() -> None:
    with scripted(Call("fly"), Say("done")) as script:
        looped(ListJournal(), tools=[])
    assert "Available: none" in script.requests[1]["messages"][-1]["content"]


@pytest.mark.parametrize("raw", ['{"order": 7', "[7]", "seven", '{"order": 1e999}'])
def test_arguments_that_are_no_object_may_be_tried_again(raw: str) -> None:
    error = only_error(Call("look_up", raw))
    assert (error["code"], error["retry"]) == ("bad_arguments", True)


def test_arguments_that_were_no_json_are_sent_back_as_text() -> None:
    with scripted(Call("look_up", '{"order": 7'), Say("done")) as script:
        looped(ListJournal())
    (call,) = script.requests[1]["messages"][1]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"invalid_arguments": '{"order": 7'}


def test_arguments_that_do_not_fit_may_be_tried_again() -> None:
    error = only_error(Call("look_up", {"order": "seven"}))
    assert (error["code"], error["retry"]) == ("bad_arguments", True)
    assert "order" in error["message"]


def test_an_exception_in_a_tool_is_answered_without_its_text() -> None:
    error = only_error(Call("break_down"))
    assert (error["code"], error["retry"]) == ("exception", False)
    assert "secret" not in json.dumps(error)


def test_a_refusal_of_the_journal_stands_in_place_of_the_result() -> None:
    assert only_error(Call("break_down"), refuse="break_down")["code"] == "denied"


def test_a_refused_tool_does_not_run() -> None:
    tool = Break()
    with scripted(Call("break_down"), Say("done")):
        answer = looped(ListJournal(refuse="break_down"), tools=[tool])
    assert tool.contexts == []
    assert answer.tool_calls == 0


def test_the_model_reads_what_the_journal_has_stored() -> None:
    def rewrite(result: ToolResult) -> ToolResult:
        return ToolResult(outcome="success", value={"stored": True})

    with scripted(Call("look_up", {"order": 1}), Say("done")) as script:
        looped(ListJournal(rewrite=rewrite))
    assert results(script)[0][1] == {"stored": True}


def test_what_a_tool_writes_is_left_to_the_journal() -> None:
    wrote: list[str] = []

    class Write(Tool):
        name = "write"
        description = "Writes."

        def run(self, context: Any) -> ToolResult:
            return self.success(on_record=lambda: wrote.append("row"))

    journal = ListJournal()
    with scripted(Call("write"), Say("done")):
        looped(journal, tools=[Write()])
    assert wrote == []
    (result,) = journal.results
    assert result.on_record is not None
    result.on_record()
    assert wrote == ["row"]


def test_a_result_that_utf8_cannot_hold_reaches_the_model() -> None:
    class Odd(Tool):
        name = "odd"
        description = "Odd."

        def run(self, context: Any) -> str:
            return "a\ud800b"

    with scripted(Call("odd"), Say("done")) as script:
        assert looped(ListJournal(), tools=[Odd()]).text == "done"
    assert results(script)[0][1] == "a�b"


@pytest.mark.parametrize("ids", [("x", "x", "x"), ("x-2", "x", "x"), ("x-1", "x", "x-1"), ("x", "x", "x-1", "x-1-2")])
def test_calls_that_share_an_id_are_told_apart(ids: tuple[str, ...]) -> None:
    journal = ListJournal()
    calls = [Call("look_up", {"order": order}, id=name) for order, name in enumerate(ids)]
    with scripted(Calls(*calls), Say("done")) as script:
        looped(journal)
    read = results(script)
    assert len(dict(read)) == len(ids)
    assert [value["order"] for _, value in read] == list(range(len(ids)))
    assert [call.id for call in journal.calls] == [name for name, _ in read]


def test_the_same_id_in_two_rounds_keeps_each_result_with_its_call() -> None:
    with scripted(Call("look_up", {"order": 1}), Call("look_up", {"order": 2}), Say("done")) as script:
        looped(ListJournal())
    calls = [call["id"] for item in script.requests[2]["messages"] for call in item.get("tool_calls", ())]
    assert [name for name, _ in results(script, 2)] == calls
    assert [read["order"] for _, read in results(script, 2)] == [1, 2]
    assert len(set(calls)) == 2
