"""A request on its way to a provider: what is posted is what was captured, and what comes back is decoded."""

import json
import threading
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from protege.exceptions import ModelError
from protege.inference import Request
from protege.inference.adapter import capture, send
from protege.inference.replies import Reply, RequestedCall, Usage
from protege.inference.wire import wire_sha256
from protege.messages import ModelMessage
from tests.inference.conversations import LONG, MAX_TOKENS, assistant, conversations, said, user
from tests.inference.server import ANTHROPIC, CHAT, SECRET, Answer, Provider, anthropic_answer, chat_answer
from tests.toolbox import LookUp

SECONDS = 10.0

both = pytest.mark.parametrize("model", [CHAT, ANTHROPIC])


def asked(provider: Provider, model: str, *messages: ModelMessage, **options: Any) -> Reply:
    request = Request(messages or (user("Where is order 77?"),), (LookUp(),))
    options = {"config": provider.config, "max_tokens": MAX_TOKENS, "timeout": SECONDS, **options}
    return send(request, model=model, **options)


def assert_posted_as_captured(provider: Provider, model: str, messages: tuple[ModelMessage, ...]) -> None:
    asked(provider, model, *messages)
    wire = capture(Request(messages, (LookUp(),)), model=model, max_tokens=MAX_TOKENS, config=provider.config)
    assert json.loads(provider.posted[-1]) == wire.body
    assert wire_sha256(provider.posted[-1]) == wire.sha256


@both
def test_what_is_captured_is_what_is_posted(provider: Provider, model: str) -> None:
    assert_posted_as_captured(provider, model, LONG)


def test_what_is_captured_for_a_local_alias_is_what_is_posted(provider: Provider) -> None:
    assert_posted_as_captured(provider, "local:llama", LONG)


@both
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(messages=conversations(st.text(max_size=20)))
def test_whatever_is_captured_is_what_is_posted(
    provider: Provider, model: str, messages: tuple[ModelMessage, ...]
) -> None:
    assert_posted_as_captured(provider, model, messages)


@both
def test_a_request_is_posted_where_the_capture_says(provider: Provider, model: str) -> None:
    wire = capture(Request((user("U"),)), model=model, max_tokens=9, config=provider.config)
    assert wire.url.startswith(f"http://127.0.0.1:{provider.server_port}/v1/")


@both
def test_the_key_goes_into_a_header_and_not_into_the_body(provider: Provider, model: str) -> None:
    asked(provider, model)
    headers = provider.headers[0]
    assert SECRET in (headers.get("authorization", "").removeprefix("Bearer "), headers.get("x-api-key"))
    assert SECRET.encode() not in provider.posted[0]


@both
def test_the_observer_gets_the_very_bytes(provider: Provider, model: str) -> None:
    seen: list[bytes] = []
    asked(provider, model, observe=seen.append)
    assert seen == provider.posted


@both
def test_the_observer_is_called_where_the_request_failed_too(provider: Provider, model: str) -> None:
    provider.answer, seen = Answer(status=500, body={}), list[bytes]()
    with pytest.raises(ModelError):
        asked(provider, model, observe=seen.append)
    assert seen == provider.posted


@both
def test_the_observer_is_called_in_the_callers_thread(provider: Provider, model: str) -> None:
    seen: list[int] = []
    asked(provider, model, observe=lambda body: seen.append(threading.get_ident()))
    assert seen == [threading.get_ident()]


@both
def test_text_and_usage_are_decoded(provider: Provider, model: str) -> None:
    reply = asked(provider, model)
    assert (reply.text, reply.tool_calls, reply.finish_reason) == ("It is on its way.", (), "stop")
    assert reply.usage == Usage(input_tokens=11, output_tokens=5, cached_tokens=4)


@both
def test_a_known_model_has_a_price(provider: Provider, model: str) -> None:
    reply = asked(provider, model)
    assert reply.cost is not None
    assert (reply.cost > Decimal(0), reply.currency) == (True, "USD")


def test_an_unknown_model_has_none(provider: Provider) -> None:
    reply = asked(provider, "local:llama")
    assert (reply.cost, reply.currency) == (None, "")


def test_missing_usage_means_that_there_is_no_price(provider: Provider) -> None:
    provider.answer = Answer(body=chat_answer(usage=None))
    reply = asked(provider, CHAT)
    assert (reply.usage, reply.cost) == (Usage(), None)


CALLS = {
    CHAT: chat_answer(
        {
            "content": "I look.",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "look_up", "arguments": '{"order": 7}'}},
                {"id": "b", "type": "function", "function": {"name": "look_up", "arguments": '{"order": 8}'}},
            ],
        }
    ),
    ANTHROPIC: anthropic_answer(
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "a", "name": "look_up", "input": {"order": 7}},
        {"type": "tool_use", "id": "b", "name": "look_up", "input": {"order": 8}},
        stop_reason="tool_use",
    ),
}


@both
def test_tool_calls_are_decoded_in_order_beside_the_text(provider: Provider, model: str) -> None:
    provider.answer = Answer(body=CALLS[model])
    reply = asked(provider, model)
    assert reply.text == "I look."
    assert [(call.id, call.name, call.arguments) for call in reply.tool_calls] == [
        ("a", "look_up", {"order": 7}),
        ("b", "look_up", {"order": 8}),
    ]


@both
def test_a_decoded_turn_is_sent_back_as_it_came(provider: Provider, model: str) -> None:
    provider.answer = Answer(body=CALLS[model])
    turn = asked(provider, model).message
    wire = capture(Request((user("U"), turn)), model=model, max_tokens=9, config=provider.config)
    assert said(wire)[1:4] == [
        ("assistant", "I look."),
        ("call", 'a look_up {"order": 7}'),
        ("call", 'b look_up {"order": 8}'),
    ]


@pytest.mark.parametrize(
    ("model", "body"),
    [
        (CHAT, chat_answer(choices=[{"index": 0, "finish_reason": "length", "message": {"role": "assistant"}}])),
        (ANTHROPIC, anthropic_answer(stop_reason="max_tokens")),
    ],
)
def test_an_answer_that_was_cut_off_says_so(provider: Provider, model: str, body: Any) -> None:
    provider.answer = Answer(body=body)
    assert asked(provider, model).finish_reason == "length"


def test_hidden_reasoning_is_no_text(provider: Provider) -> None:
    thought = {"type": "thinking", "thinking": "hidden", "signature": "s"}
    provider.answer = Answer(body=anthropic_answer(thought, {"type": "text", "text": "Yes."}))
    assert asked(provider, ANTHROPIC).text == "Yes."


def test_a_text_that_no_database_stores_is_made_storable(provider: Provider) -> None:
    provider.answer = Answer(body=chat_answer({"content": "a\x00b\ud800c"}))
    assert asked(provider, CHAT).text == "a�b�c"


def deep(levels: int) -> str:
    return '{"a": ' * levels + "1" + "}" * levels


@pytest.mark.parametrize(
    "raw", ['{"order": 7', '{"a": 1}{"b": 2}', "[7]", "7", "NaN", '{"a": 1e999}', '{"a": Infinity}', deep(300)]
)
def test_arguments_that_are_no_json_object_are_kept_as_text(provider: Provider, raw: str) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "look_up", "arguments": raw}}
    provider.answer = Answer(body=chat_answer({"content": None, "tool_calls": [call]}))
    (requested,) = asked(provider, CHAT).tool_calls
    assert requested == RequestedCall(id="a", name="look_up", raw_arguments=raw, arguments=None)


@both
@pytest.mark.parametrize("raw", ['{"order": 7', '{"a": 1e999}', deep(300), '{"a": "\\ud800"}', deep(100), ""])
def test_any_arguments_can_be_sent_back(provider: Provider, model: str, raw: str) -> None:
    call = RequestedCall.parse(id="a", name="look_up", raw_arguments=raw).to_tool_call()
    asked(provider, model, user("U"), assistant("", call))
    assert json.loads(provider.posted[0])


def test_no_arguments_at_all_are_an_empty_object() -> None:
    assert RequestedCall.parse(id="a", name="look_up", raw_arguments="").arguments == {}


def test_a_local_alias_needs_no_key(provider: Provider) -> None:
    assert asked(provider, "local:llama").text == "It is on its way."
    assert json.loads(provider.posted[0])["model"] == "llama"
