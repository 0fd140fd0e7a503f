"""A provider on this machine: it speaks Chat Completions and Messages, and keeps what it was posted."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from personas.models import Persona
from protege.services import chains
from protege.toolkit import tools
from tests.factories import MessageFactory, ParticipantFactory, PersonaFactory, RunFactory
from tests.toolbox import LookUp
from threads.models import Run

OPENAI_ANSWER = {
    "id": "x", "object": "chat.completion", "created": 0, "model": "m",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "It is on its way."}},
    ],
    "usage": {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16},
}  # fmt: skip
ANTHROPIC_ANSWER = {
    "id": "x", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn", "stop_sequence": None,
    "content": [{"type": "text", "text": "It is on its way."}],
    "usage": {"input_tokens": 11, "output_tokens": 5},
}  # fmt: skip


class Provider(ThreadingHTTPServer):
    """`posted` are the parsed bodies, `headers` their headers."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.posted: list[Any] = []
        self.headers: list[dict[str, str]] = []
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.posted.append(body)
        self.server.headers.append(dict(self.headers))
        answer = ANTHROPIC_ANSWER if self.path.endswith("/messages") else OPENAI_ANSWER
        if self.server.status != 200:
            answer = {"error": {"message": "the customer's secret text", "type": "bad"}}
        sent = json.dumps(answer).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def provider(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    """Both providers at an address of this machine, with a key that must show up nowhere."""
    monkeypatch.setenv("TEST_PROVIDER_KEY", "sk-very-secret")
    with Provider() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        at = {"api_key_env": "TEST_PROVIDER_KEY"}
        settings.PROTEGE = {
            **settings.PROTEGE,
            "PROVIDERS": {
                "openai-chat": {"kind": "openai-chat", "base_url": f"{server.url}/v1", **at},
                "anthropic": {"kind": "anthropic", "base_url": server.url, **at},
            },
        }
        yield server
        server.shutdown()


@pytest.fixture
def assistant() -> Iterator[Persona]:
    """A persona that says what the test's script says, and may look up orders and write mails."""
    with tools.temporarily("look_up", LookUp):
        persona = PersonaFactory(model="offline:scripted", tools=["look_up", "send_email"])
        chains.save_defaults(persona)
        yield persona


@pytest.fixture
def run(assistant: Persona) -> Run:
    """A queued run for a mail of Ana's to the assistant."""
    message = MessageFactory(thread__persona=assistant)
    ParticipantFactory(thread=message.thread, address=message.from_address)
    return RunFactory(message=message, status="queued")
