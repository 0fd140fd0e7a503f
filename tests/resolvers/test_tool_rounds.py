"""Tool calls in the history of a thread: whatever is stored, and whatever the limit, they stay paired."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protege.messages import TracedMessage
from tests.factories import EmailThreadFactory, MessageFactory, OutboundFactory, RunFactory, ToolUseFactory
from tests.resolvers.histories import answer, assert_paired, history, labels, sources, traced
from threads.models import EmailThread, Message, Run, RunKind
from threads.models.tooluse import REPLAY_RESULT_LIMIT

pytestmark = pytest.mark.django_db


def test_rounds_are_woven_in_after_their_mail_in_order(thread: EmailThread) -> None:
    mail = MessageFactory(thread=thread)
    failed, done = RunFactory(message=mail, status="failed"), RunFactory(message=mail)
    late = ToolUseFactory(run=done, turn_index=1, name="send")
    second = ToolUseFactory(run=done, turn_index=0, position=1)
    first = ToolUseFactory(run=done, turn_index=0, position=0, input={"b": 1, "a": [2]})
    earlier = ToolUseFactory(run=failed, turn_index=3)
    said = answer(mail, run=done)
    current = MessageFactory(thread=thread)
    assert sources(current) == labels(mail, (earlier,), earlier, (first, second), first, second, (late,), late, said)
    messages = history(current)
    assert_paired(messages)
    assert (messages[3].content, [call.id for call in messages[3].tool_calls]) == (
        "",
        [first.tool_call_id, second.tool_call_id],
    )
    assert messages[3].tool_calls[0].input == {"b": 1, "a": (2,)}
    assert messages[4].content == first.result
    assert history(current, include_tool_calls=False) == [messages[0], messages[-1]]


def test_the_rounds_of_the_current_mail_are_not_ours(thread: EmailThread) -> None:
    mail, current = MessageFactory(thread=thread), MessageFactory(thread=thread)
    ToolUseFactory(run=RunFactory(message=current))
    assert sources(current) == labels(mail)


def test_rounds_of_a_run_without_a_mail_stand_before_what_it_sent(thread: EmailThread) -> None:
    run: Run = RunFactory(message=None, persona=thread.persona, thread=None, kind=RunKind.RESPONSIBILITY)
    use = ToolUseFactory(run=run, message=None)
    stranger = RunFactory(message=None, persona=thread.persona, thread=None, kind=RunKind.RESPONSIBILITY)
    ToolUseFactory(run=stranger, message=None)
    sent = OutboundFactory(thread=thread, run=run, origin="answer")
    again = OutboundFactory(thread=thread, run=run, origin="tool")
    current = MessageFactory(thread=thread)
    assert sources(current) == labels((use,), use, sent, again)
    assert sources(current, limit=1) == labels((use,), use, again)


def test_a_call_without_a_result_is_answered_all_the_same(thread: EmailThread) -> None:
    run = RunFactory(message=MessageFactory(thread=thread), status="cancelled")
    for position, status in enumerate(["requested", "waiting", "started", "refused", "interrupted"]):
        ToolUseFactory(run=run, position=position, status=status, result="")
    messages = history(MessageFactory(thread=thread))
    assert_paired(messages)
    assert [json.loads(message.text)["error"]["code"] for message in messages[2:]] == ["interrupted"] * 5


def test_equal_and_missing_ids_are_told_apart_within_a_round(thread: EmailThread) -> None:
    run = RunFactory(message=MessageFactory(thread=thread))
    for position, call_id in enumerate(["same", "same", "same-2", "", "same"]):
        ToolUseFactory(run=run, position=position, tool_call_id=call_id)
    ToolUseFactory(run=run, turn_index=1, tool_call_id="same")
    messages = history(MessageFactory(thread=thread))
    assert_paired(messages)
    assert [call.id for call in messages[1].tool_calls] == ["same", "same-2", "same-2-2", "call", "same-3"]
    assert messages[-1].tool_call_id == "same"


def test_long_results_are_cut_with_a_marker(thread: EmailThread) -> None:
    ToolUseFactory(run=RunFactory(message=MessageFactory(thread=thread)), result="x" * 9_000)
    result = history(MessageFactory(thread=thread))[2].text
    assert result.startswith("x" * REPLAY_RESULT_LIMIT)
    assert "x" * (REPLAY_RESULT_LIMIT + 1) not in result
    assert "9000" in result


def test_arguments_that_were_no_json_stay_visible_and_paired(thread: EmailThread) -> None:
    ToolUseFactory(run=RunFactory(message=MessageFactory(thread=thread)), input={}, raw_input='{"id": 4')
    messages = history(MessageFactory(thread=thread))
    assert_paired(messages)
    assert json.loads(json.dumps(messages[1].to_dict()))["tool_calls"][0]["input"] == {"invalid_arguments": '{"id": 4'}


# Field case B01


@pytest.mark.parametrize("limit", [*range(11), None])
def test_no_limit_parts_a_result_from_its_call(limit: int | None, thread: EmailThread) -> None:
    first = MessageFactory(thread=thread)
    a = ToolUseFactory(run=RunFactory(message=first), name="a")
    to_first = answer(first)
    second = MessageFactory(thread=thread)
    run = RunFactory(message=second)
    b, c = ToolUseFactory(run=run, position=0, name="b"), ToolUseFactory(run=run, position=1, name="c")
    to_second = answer(second)
    current = MessageFactory(thread=thread)
    blocks = [labels(first, (a,), a), labels(to_first), labels(second, (b, c), b, c), labels(to_second)]
    kept = blocks[max(0, len(blocks) - limit) :] if limit is not None else blocks
    assert sources(current, limit=limit) == [label for block in kept for label in block]
    assert_paired(history(current, limit=limit))


# Whatever is stored

TOOL_USES = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 2), st.sampled_from(["", "x", "x-2"]), st.sampled_from(["", "{}"])),
    max_size=5,
)
TURNS = st.lists(
    st.tuples(
        st.sampled_from(["inbound", "ignored", "empty", "answer", "draft", "person", "duty", "failed"]),
        st.integers(0, 5),
        TOOL_USES,
    ),
    max_size=7,
)


class Story:
    """Stores drawn turns, and knows what must be shown of them."""

    def __init__(self, turns: list[Any]) -> None:
        self.thread = EmailThreadFactory()
        self.inbound: list[Message] = []
        self.answered: set[int] = set()
        self.shown: set[str] = set()
        for turn in turns:
            self.add(*turn)
        self.current = MessageFactory(thread=self.thread)

    def add(self, kind: str, which: int, uses: list[Any]) -> None:
        if kind in ("inbound", "ignored", "empty"):
            self._receive(kind, uses)
        elif kind in ("answer", "draft", "failed"):
            self._answer(kind, which)
        else:
            self._send(kind, uses)

    def _receive(self, kind: str, uses: list[Any]) -> None:
        fields = {"ignored": {"status": "ignored"}, "empty": {"subject": "", "readable_body": ""}}.get(kind, {})
        mail = MessageFactory(thread=self.thread, **fields)
        self.inbound.append(mail)
        if kind == "inbound":
            self.shown.add(f"message:{mail.pk}")
        self._use_tools(RunFactory(message=mail), uses, shown=kind != "ignored")

    def _answer(self, kind: str, which: int) -> None:
        open_mails = [mail for mail in self.inbound if mail.pk not in self.answered]
        if not open_mails:
            return
        mail = open_mails[which % len(open_mails)]
        sent = answer(mail, status={"answer": "sent"}.get(kind, kind))
        if kind != "failed":
            self.answered.add(mail.pk)
        if kind == "answer":
            self.shown.add(f"message:{sent.pk}")

    def _send(self, kind: str, uses: list[Any]) -> None:
        run = RunFactory(message=None, persona=self.thread.persona, thread=None, kind="responsibility")
        sent = OutboundFactory(thread=self.thread, origin="person", run=run if kind == "duty" else None)
        self.shown.add(f"message:{sent.pk}")
        self._use_tools(run, uses, shown=kind == "duty")

    def _use_tools(self, run: Run, uses: list[Any], *, shown: bool) -> None:
        for turn, position, call_id, result in {use[:2]: use for use in uses}.values():
            use = ToolUseFactory(run=run, turn_index=turn, position=position, tool_call_id=call_id, result=result)
            if shown:
                self.shown.add(f"tool_use:{use.pk}")


@settings(max_examples=40, deadline=None)
@given(TURNS, st.one_of(st.none(), st.integers(0, 8)))
def test_any_mix_and_any_limit_stays_paired_and_loses_nothing(turns: list[Any], limit: int | None) -> None:
    story = Story(turns)
    everything, window = traced(story.current, limit=None), traced(story.current, limit=limit)
    assert_paired([item.message for item in everything])
    assert_paired([item.message for item in window])
    said = [source for item in everything if not item.message.tool_calls for source in item.sources]
    assert sorted(said) == sorted(story.shown)
    called = [source for item in everything if item.message.tool_calls for source in item.sources]
    assert sorted(called) == sorted(source for source in story.shown if source.startswith("tool_use"))
    exchanges = [item.exchange or 0 for item in everything]
    assert all(after - before in (0, 1) for before, after in pairwise(exchanges))
    assert_is_end(everything, window)


def assert_is_end(everything: list[TracedMessage], window: list[TracedMessage]) -> None:
    """A limit cuts at the start only; the rounds of a mail that it cut away go with it."""
    ends = [item.sources for item in everything][len(everything) - len(window) :]
    assert [item.sources for item in window] == ends
