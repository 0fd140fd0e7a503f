"""The two models that ship with the package, behind the same wire as any other.

Both speak Chat Completions over a transport that answers from within, so that preview, tools and usage take the
path that a paid model takes. `offline:echo` says in plain words what it was sent; `offline:scripted` says what a
test has put down for it.
"""

import json
from typing import TYPE_CHECKING, Any

from protege.exceptions import ModelError
from protege.inference.echo import echo
from protege.inference.scripts import Call, Calls, Fail, Line, Say, running_script

if TYPE_CHECKING:
    import httpx2

CHARACTERS_A_TOKEN = 4


def offline_transport(model: str) -> "httpx2.AsyncBaseTransport":
    """A transport that answers as `model` (`echo` or `scripted`) and opens no socket."""
    import httpx2

    answer = _echo if model == "echo" else _scripted

    class OfflineTransport(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            body = json.loads(await request.aread())
            line = answer(body)
            if isinstance(line, Fail):
                return httpx2.Response(line.status, json=dict(line.body), request=request)
            return httpx2.Response(200, json=_completion(body, line), request=request)

    return OfflineTransport()


def _echo(body: dict[str, Any]) -> Line:
    return Say(echo(body["messages"]))


def _scripted(body: dict[str, Any]) -> Line:
    script = running_script()
    line = script.answer(body) if script is not None else None
    if line is None:
        raise ModelError(
            "The script of offline:scripted has no line left. Give it one more: "
            "with scripted(Say('...')) from protege.testing.",
            code="script_exhausted",
        )
    return line


def _completion(body: dict[str, Any], line: Say | Call | Calls) -> dict[str, Any]:
    """A chat.completion object; the clock and the ids in it are fixed, so that answers are the same every time."""
    if isinstance(line, Call):
        line = Calls(line)
    calls = list(line.calls) if isinstance(line, Calls) else []
    message: dict[str, Any] = {"role": "assistant", "content": line.text or None}
    if calls:
        message["tool_calls"] = [_call(call, position) for position, call in enumerate(calls)]
    finish = "tool_calls" if calls else getattr(line, "finish", "stop")
    return {
        "id": "offline",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": _usage(body, message),
    }


def _call(call: Call, position: int) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.raw_arguments()}
    return {"id": call.id or f"call_{position}", "type": "function", "function": function}


def _usage(body: dict[str, Any], message: dict[str, Any]) -> dict[str, int]:
    prompt = len(json.dumps(body["messages"])) // CHARACTERS_A_TOKEN
    completion = max(1, len(json.dumps(message)) // CHARACTERS_A_TOKEN)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
