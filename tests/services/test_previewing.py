"""The promises of the preview, held against what a provider on this machine was really posted."""

import hashlib
import json
import socket
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db import connection

from personas.models import Persona
from protege.inference.wire import wire_sha256
from protege.services import chains, runs
from protege.toolkit import tools
from tests.factories import (
    AttachmentFactory,
    EmailThreadFactory,
    MessageFactory,
    OutboundFactory,
    PersonaFactory,
    RunFactory,
    ToolUseFactory,
)
from tests.toolbox import LookUp
from threads.models import Message, Run

pytestmark = pytest.mark.django_db

MODELS = ["openai-chat:gpt-5-mini", "anthropic:claude-sonnet-4-5"]
PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 20
STEPS = [
    {"resolver": "load_text", "options": {"text": "{{ persona.instructions }}"}},
    {"resolver": "thread_history", "options": {}},
    {"resolver": "load_text", "options": {"text": "Late facts."}},
    {"resolver": "load_text", "options": {"text": "A note of a colleague.", "role": "user"}},
]


@pytest.fixture
def message() -> Any:
    """A mail with a picture and a PDF, in a thread with a tool round, two mails in a row and an earlier try."""
    persona = PersonaFactory(tools=["look_up"])
    chains.save(persona, "message", STEPS, expected_revision=0)
    thread = EmailThreadFactory(persona=persona)
    first = MessageFactory(thread=thread)
    ToolUseFactory(run=RunFactory(message=first))
    ToolUseFactory(run=first.runs.get(), position=1, result='{"error": {"code": "x", "message": "no", "retry": false}}')
    OutboundFactory(thread=thread, answers=first)
    MessageFactory(thread=thread, readable_body="And 78?")
    current = MessageFactory(thread=thread, readable_body="See the files.")
    AttachmentFactory(message=current, filename="photo.png", content_type="image/png", data=PNG)
    AttachmentFactory(message=current, filename="invoice.pdf", content_type="application/pdf", data=b"%PDF-1.4")
    ToolUseFactory(run=RunFactory(message=current, status="failed"), tool_call_id="earlier")
    with tools.temporarily("look_up", LookUp):
        yield Message.objects.select_related("thread__persona", "persona").get(pk=current.pk)


def set_model(persona: Persona, model: str) -> None:
    Persona.objects.filter(pk=persona.pk).update(model=model)
    persona.model = model


@pytest.mark.parametrize("model", MODELS)
def test_invariant_1_what_preview_shows_is_what_is_sent(message: Message, provider: Any, model: str) -> None:
    set_model(message.persona, model)
    run = RunFactory(message=message, status="queued", model=model)
    shown = runs.preview(runs.prepare(message.persona, message=message, run=run))
    assert provider.posted == [], "a preview opens no socket"
    done = runs.execute(run.pk)
    assert done.status == "succeeded", done.detail
    assert shown.wire is not None
    assert provider.posted == [shown.wire.body]
    assert done.wire_sha256 == shown.wire.sha256 == wire_sha256(provider.posted[0])
    assert done.outbound.get().text_body == "It is on its way."
    assert (done.input_tokens, done.output_tokens) == (11, 5)


@pytest.mark.parametrize("model", MODELS)
def test_no_credential_is_shown(message: Message, provider: Any, model: str, caplog: Any) -> None:
    set_model(message.persona, model)
    with caplog.at_level("DEBUG"):
        shown = json.dumps(runs.preview(runs.prepare(message.persona, message=message)).to_dict(full=True))
        runs.execute(RunFactory(message=message, status="queued", model=model).pk)
    assert "sk-very-secret" in json.dumps(provider.headers)
    assert "sk-very-secret" not in shown
    assert "sk-very-secret" not in caplog.text
    assert not any("sk-very-secret" in str(row) for row in Run.objects.values())


def test_a_failing_providers_words_stay_out_of_the_run(message: Message, provider: Any) -> None:
    set_model(message.persona, MODELS[0])
    provider.status = 400
    done = runs.execute(RunFactory(message=message, status="queued", model=MODELS[0]).pk)
    assert (done.status, done.code) == ("failed", "invalid_request")
    assert "secret text" not in done.detail


class Untouchable(LookUp):
    def run(self, context: Any, order: int) -> Any:
        raise AssertionError("a preview calls no tool")


@pytest.mark.parametrize("model", ["offline:echo", *MODELS])
def test_invariant_7_prepare_and_preview_write_nothing(
    message: Message, model: str, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    def only_reads(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        assert sql.lstrip().upper().startswith("SELECT"), sql
        return execute(sql, params, many, context)

    def no_socket(*args: Any) -> None:
        raise AssertionError("a preview opens no socket")

    def files() -> list[Any]:
        return sorted(Path(settings.PROTEGE["FILES_ROOT"]).rglob("*"))

    rows, kept = {model: list(model.objects.values()) for model in apps.get_models()}, files()
    # The loop of asyncio wakes itself over a pair of sockets, which it makes without connecting.
    monkeypatch.setattr(socket.socket, "connect", no_socket)
    tools._entries["look_up"] = Untouchable
    with connection.execute_wrapper(only_reads):
        shown = runs.preview(runs.prepare(message.persona, message=message, model=model)).to_dict()
    assert shown["wire"] is not None
    assert "look_up" in json.dumps(shown["wire"]["body"]["tools"])
    assert {model: list(model.objects.values()) for model in apps.get_models()} == rows
    assert files() == kept


def test_the_form_of_the_answer(message: Message) -> None:
    shown = runs.preview(runs.prepare(message.persona, message=message)).to_dict()
    assert list(shown) == [
        "persona", "trigger", "model", "messages", "left_out", "steps", "tokens", "notices", "wire", "comparison",
    ]  # fmt: skip
    first = shown["messages"][0]
    assert list(first) == [
        "role", "content", "tool_call_id", "tool_calls", "step", "tokens", "kept", "trust", "sources",
    ]  # fmt: skip
    assert {each["kept"] for each in shown["messages"]} == {"whole"}
    assert shown["left_out"] == []
    assert [step["resolver"] for step in shown["steps"]] == [step["resolver"] for step in STEPS]
    assert shown["steps"][1]["messages"] == 6
    assert shown["tokens"]["estimated"] > sum(each["tokens"] for each in shown["messages"])
    json.dumps(shown)


def test_bytes_of_files_are_described_unless_asked_for(message: Message) -> None:
    shown = runs.preview(runs.prepare(message.persona, message=message, model=MODELS[1]))
    picture = {"type": "image", "media_type": "image/png", "bytes": 28, "sha256": hashlib.sha256(PNG).hexdigest()}
    short, full = json.dumps(shown.to_dict()), json.dumps(shown.to_dict(full=True))
    assert short.count(json.dumps(picture)) == 2, "in the message and in the wire"
    assert "iVBOR" not in short
    assert "iVBOR" in full


def test_a_failing_step_hides_no_other(message: Message) -> None:
    persona = message.persona
    persona.chain_steps.filter(position=1).update(resolver="of_a_removed_app")
    shown = runs.preview(runs.prepare(persona, message=message))
    data = shown.to_dict()
    assert not shown.is_complete
    assert "of_a_removed_app" in data["steps"][1]["error"]
    assert [step["messages"] for step in data["steps"]] == [1, 0, 1, 1]
    assert data["wire"] is None
