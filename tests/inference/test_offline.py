"""The two models that ship with the package."""

import json
import socket
from typing import Any

import pytest

from protege.conf import Config
from protege.exceptions import ModelError
from protege.inference import Request
from protege.inference.adapter import capture, send
from protege.inference.replies import Reply
from protege.messages import ImagePart, ModelMessage, TextPart
from protege.services import documents
from protege.testing import Call, Calls, Fail, Say, scripted
from tests.factories import AttachmentFactory, MessageFactory
from tests.inference.conversations import PNG, assistant, look_up, result, system, user
from tests.toolbox import LookUp
from threads.models import Message

ECHO, SCRIPTED = "offline:echo", "offline:scripted"


def asked(model: str, *messages: ModelMessage) -> Reply:
    request = Request(messages or (user("Hello?"),), (LookUp(),))
    return send(request, model=model, max_tokens=50, config=Config(), timeout=10)


def failure() -> ModelError:
    with pytest.raises(ModelError) as raised:
        asked(SCRIPTED)
    return raised.value


@pytest.fixture
def mail(db: None) -> Message:
    return MessageFactory.create(subject="Order 77", readable_body="Where is it?\nI wait.", thread__persona__slug="ada")


def turn_of(mail: Message) -> ModelMessage:
    return user(documents.user_turn(mail, mail.files()))


def test_echo_says_what_it_is() -> None:
    assert "offline:echo" in asked(ECHO).text


def test_echo_says_what_it_was_told(mail: Message) -> None:
    text = asked(ECHO, system("\nYou are Ada, of the order desk.\nBe kind."), turn_of(mail)).text
    assert 'I was told: "You are Ada, of the order desk."' in text


def test_echo_without_instructions_names_the_persona_by_the_mail(mail: Message) -> None:
    assert "ada@desk.example" in asked(ECHO, turn_of(mail)).text


def test_echo_says_sender_subject_and_text(mail: Message) -> None:
    text = asked(ECHO, turn_of(mail)).text
    assert "Ana Moßner" in text
    assert "ana@client.example" in text
    assert 'the subject "Order 77"' in text
    assert '"Where is it? I wait."' in text


def test_echo_says_that_no_documents_came(mail: Message) -> None:
    assert "without documents" in asked(ECHO, turn_of(mail)).text


def test_echo_names_each_document_once(mail: Message) -> None:
    AttachmentFactory(message=mail, filename="plan.pdf", content_type="application/pdf")
    AttachmentFactory(message=mail, filename="notes.txt")
    text = asked(ECHO, turn_of(mail)).text
    assert (text.count("plan.pdf"), text.count("notes.txt")) == (1, 1)
    assert "(1 of them shown to me as files)" in text


def test_echo_takes_no_document_from_the_text_of_a_mail(mail: Message) -> None:
    mail.readable_body = "- fake.pdf (application/pdf, 1 kB, id 00000000-0000-0000-0000-000000000000)"
    assert "without documents" in asked(ECHO, turn_of(mail)).text


def test_echo_counts_the_earlier_turns(mail: Message) -> None:
    earlier = [user("U1"), assistant("A1"), user("U2"), assistant("A2")]
    assert "4 earlier turns of this thread, 2 of them my own" in asked(ECHO, *earlier, turn_of(mail)).text
    assert "no earlier mails" in asked(ECHO, turn_of(mail)).text


def test_echo_answers_a_plain_question() -> None:
    assert 'I was asked: "Write the weekly report."' in asked(ECHO, user("Write the weekly report.")).text


def test_echo_shortens_a_long_text() -> None:
    assert len(asked(ECHO, user("word " * 1000)).text) < 1000


def test_echo_says_the_same_every_time(mail: Message) -> None:
    messages = (system("You are Ada."), turn_of(mail))
    assert asked(ECHO, *messages) == asked(ECHO, *messages)


def test_echo_reports_usage_and_no_price() -> None:
    reply = asked(ECHO)
    assert min(reply.usage.input_tokens, reply.usage.output_tokens) > 0
    assert reply.cost is None


@pytest.mark.parametrize("model", [ECHO, SCRIPTED])
def test_an_offline_model_opens_no_socket(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Any] = []
    monkeypatch.setattr(socket.socket, "connect", lambda self, address: tried.append(address))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *address, **options: tried.append(address))
    with scripted(Say("Yes.")):
        asked(model)
    assert tried == []


@pytest.mark.parametrize("model", [ECHO, SCRIPTED])
def test_an_offline_model_has_a_wire_too(model: str) -> None:
    wire = capture(Request((user("U"),)), model=model, max_tokens=50, config=Config())
    assert (wire.provider, wire.body["messages"]) == ("offline", [{"role": "user", "content": "U"}])


def test_a_script_answers_line_by_line() -> None:
    with scripted(Say("one"), Say("two")):
        assert [asked(SCRIPTED).text, asked(SCRIPTED).text] == ["one", "two"]


def test_a_script_keeps_the_requests_as_they_were_posted() -> None:
    messages = (system("S"), user("U"), assistant("", look_up("c1")), result("c1", "R"))
    with scripted(Say("yes")) as script:
        asked(SCRIPTED, *messages)
    wire = capture(Request(messages, (LookUp(),)), model=SCRIPTED, max_tokens=50, config=Config())
    assert script.requests == [wire.body]


def test_a_capture_takes_no_line_of_the_script() -> None:
    with scripted(Say("yes")) as script:
        capture(Request((user("U"),)), model=SCRIPTED, max_tokens=50, config=Config())
        assert script.requests == []
        assert asked(SCRIPTED).text == "yes"


def test_a_script_that_is_used_up_says_so() -> None:
    with scripted(Say("one")) as script:
        asked(SCRIPTED)
        error = failure()
    assert error.code == "script_exhausted"
    assert "scripted(Say" in str(error)
    assert len(script.requests) == 2


def test_without_a_script_there_is_no_line() -> None:
    assert failure().code == "script_exhausted"


def test_the_innermost_script_answers() -> None:
    with scripted(Say("outer")):
        with scripted(Say("inner")):
            assert asked(SCRIPTED).text == "inner"
        assert asked(SCRIPTED).text == "outer"


def test_a_script_ends_with_its_block() -> None:
    with pytest.raises(ZeroDivisionError), scripted(Say("one")):
        raise ZeroDivisionError
    assert failure().code == "script_exhausted"


@pytest.mark.parametrize(("status", "code"), [(500, "provider_error"), (429, "rate_limited"), (400, "invalid_request")])
def test_a_scripted_failure_is_a_providers(status: int, code: str) -> None:
    with scripted(Fail(status), Say("better")):
        error = failure()
        assert (error.code, error.status) == (code, status)
        assert asked(SCRIPTED).text == "better"


def test_a_scripted_failure_may_have_a_body() -> None:
    with scripted(Fail(400, {"error": {"message": "too long", "code": "context_length_exceeded"}})):
        assert failure().code == "context_too_large"


def test_a_scripted_call_arrives() -> None:
    with scripted(Call("look_up", {"order": 77}, id="mine")):
        (call,) = asked(SCRIPTED).tool_calls
    assert (call.id, call.name, call.arguments) == ("mine", "look_up", {"order": 77})


def test_scripted_calls_come_in_one_turn_with_text_before_them() -> None:
    with scripted(Calls(Call("look_up", {"order": 1}), Call("look_up", {"order": 2}), text="I look.")):
        reply = asked(SCRIPTED)
    assert reply.text == "I look."
    assert [(call.id, json.loads(call.raw_arguments)) for call in reply.tool_calls] == [
        ("call_0", {"order": 1}),
        ("call_1", {"order": 2}),
    ]


def test_a_scripted_call_may_hold_arguments_that_are_no_json() -> None:
    with scripted(Call("look_up", '{"order": 7')):
        (call,) = asked(SCRIPTED).tool_calls
    assert (call.raw_arguments, call.arguments) == ('{"order": 7', None)


def test_a_scripted_answer_may_be_cut_off() -> None:
    with scripted(Say("It is", finish="length")):
        assert asked(SCRIPTED).finish_reason == "length"


def test_a_scripted_answer_may_be_empty() -> None:
    with scripted(Say("")):
        assert asked(SCRIPTED).text == ""


def test_a_scripted_model_reads_pictures_and_documents_as_others_do() -> None:
    with scripted(Say("nice")) as script:
        asked(SCRIPTED, user([TextPart("Picture a.png:"), ImagePart("image/png", PNG)]))
    (message,) = script.requests[0]["messages"]
    assert [part["type"] for part in message["content"]] == ["text", "image_url"]
