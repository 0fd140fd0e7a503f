"""A provider on this machine: it speaks Chat Completions and Messages, and keeps what it was posted."""

import json
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, Self

from protege.conf import Config

CHAT = "openai-chat:gpt-5-mini"
ANTHROPIC = "anthropic:claude-sonnet-4-5"
SECRET = "sk-very-secret"


def chat_answer(message: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    said = {"role": "assistant", "content": "It is on its way.", **(message or {})}
    answer = {
        "id": "x", "object": "chat.completion", "created": 0, "model": "gpt-5-mini",
        "choices": [{"index": 0, "finish_reason": "stop", "message": said}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16,
                  "prompt_tokens_details": {"cached_tokens": 4}},
    }  # fmt: skip
    return {**answer, **fields}


def anthropic_answer(*content: dict[str, Any], **fields: Any) -> dict[str, Any]:
    answer = {
        "id": "x", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
        "stop_reason": "end_turn", "stop_sequence": None,
        "content": list(content) or [{"type": "text", "text": "It is on its way."}],
        "usage": {"input_tokens": 7, "output_tokens": 5, "cache_read_input_tokens": 4},
    }  # fmt: skip
    return {**answer, **fields}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the server says next; `body` None is a good answer, `cut` breaks the connection in the midst of it."""

    status: int = 200
    body: Any = None
    slow: bool = False
    cut: bool = False


class Provider(ThreadingHTTPServer):
    """`posted` are the bodies as bytes; `headers` their headers, by lower-case name."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.posted: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.answer = Answer()
        self.closing = Event()

    def __enter__(self) -> Self:
        Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *args: object) -> None:
        self.closing.set()
        self.shutdown()
        self.server_close()

    @property
    def config(self) -> Config:
        """Both providers and a local alias, all at this server's address."""
        url, key = f"http://127.0.0.1:{self.server_port}", {"api_key_env": "TEST_KEY"}
        return Config(
            providers={
                "openai-chat": {"kind": "openai-chat", "base_url": f"{url}/v1", **key},
                "anthropic": {"kind": "anthropic", "base_url": url, **key},
                "local": {"base_url": f"{url}/v1"},
            }
        )


class _Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_POST(self) -> None:
        self.server.posted.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        answer = self.server.answer
        if answer.slow:
            self.server.closing.wait(10)
            return
        body = answer.body
        if body is None:
            body = anthropic_answer() if self.path.endswith("/messages") else chat_answer()
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent) + 100 * answer.cut))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""
