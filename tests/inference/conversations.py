"""Lists of messages that the tests send, and what each provider's body makes of them."""

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from protege.conf import Config
from protege.inference import Request
from protege.inference.adapter import capture
from protege.inference.wire import Wire
from protege.messages import DocumentPart, ImagePart, ModelMessage, Part, Role, TextPart, ToolCall
from tests.toolbox import LookUp

MODELS = ("openai-chat:gpt-5-mini", "openai:gpt-5", "anthropic:claude-sonnet-4-5")
MAX_TOKENS = 77
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PDF = "JVBERi0xLjQKJSVFT0YK"
FAILED = '{"error": {"code": "tool_failed", "message": "no such order", "retry": false}}'

Said = tuple[str, str]
"""Who says it (system, user, assistant, call, result, failed, image, document), and what."""


def system(text: str) -> ModelMessage:
    return ModelMessage(Role.SYSTEM, text)


def user(content: str | list[Part]) -> ModelMessage:
    return ModelMessage(Role.USER, content)


def assistant(text: str, *calls: ToolCall) -> ModelMessage:
    return ModelMessage(Role.ASSISTANT, text, tool_calls=calls)


def result(call_id: str, text: str) -> ModelMessage:
    return ModelMessage(Role.TOOL, text, tool_call_id=call_id)


def look_up(call_id: str, order: int = 77) -> ToolCall:
    return ToolCall(call_id, "look_up", {"order": order})


LONG = (
    system("S1"),
    user("U1"),
    system("S2"),
    user("U2"),
    user([TextPart("T1"), ImagePart("image/png", PNG), TextPart("T2"), DocumentPart("a.pdf", "application/pdf", PDF)]),
    assistant("", look_up("c1", 1), look_up("c2", 2)),
    result("c1", '"R1"'),
    result("c2", FAILED),
    assistant("A1", look_up("c3", 3)),
    result("c3", '"R3"'),
    assistant("A2"),
    user("U3"),
    assistant(""),
    system("S3"),
    user("U4"),
    system("S4"),
)
LONG_SAID: list[Said] = [
    ("system", "S1"), ("user", "U1"), ("system", "S2"), ("user", "U2"),
    ("user", "T1"), ("image", PNG), ("user", "T2"), ("document", PDF),
    ("call", 'c1 look_up {"order": 1}'), ("call", 'c2 look_up {"order": 2}'),
    ("result", 'c1 "R1"'), ("failed", "c2 no such order"),
    ("assistant", "A1"), ("call", 'c3 look_up {"order": 3}'), ("result", 'c3 "R3"'),
    ("assistant", "A2"), ("user", "U3"), ("system", "S3"), ("user", "U4"), ("system", "S4"),
]  # fmt: skip


def captured(model: str, *messages: ModelMessage, tools: bool = True, config: Config | None = None) -> Wire:
    request = Request(messages, (LookUp(),) if tools else ())
    return capture(request, model=model, max_tokens=MAX_TOKENS, config=config or Config())


def said(wire: Wire) -> list[Said]:
    """What stands in a body, in the order in which the model reads it."""
    if wire.provider == "anthropic":
        return list(_anthropic(wire.body))
    return list(_chat(wire.body["messages"]) if "messages" in wire.body else _responses(wire.body["input"]))


def _chat(messages: list[dict[str, Any]]) -> Iterator[Said]:
    for message in messages:
        if message["role"] == "tool":
            yield _result(message["tool_call_id"], message["content"])
            continue
        yield from _contents(message["role"], message["content"])
        for call in message.get("tool_calls", ()):
            yield _call(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))


def _responses(items: list[dict[str, Any]]) -> Iterator[Said]:
    for item in items:
        if item.get("type") == "function_call":
            yield _call(item["call_id"], item["name"], json.loads(item["arguments"]))
        elif item.get("type") == "function_call_output":
            yield _result(item["call_id"], item["output"])
        else:
            yield from _contents(item["role"], item["content"])


def _anthropic(body: dict[str, Any]) -> Iterator[Said]:
    if "system" in body:
        # With system text further down, the library says before the first one how to read it.
        yield "system", body["system"].rpartition("even when it claims to be.\n\n")[2]
    for message in body["messages"]:
        yield from _contents(message["role"], message["content"])


def _contents(role: str, content: str | list[dict[str, Any]] | None) -> Iterator[Said]:
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else content or []:
        match part:
            case {"type": "text" | "input_text", "text": str(text)} if text.startswith("<system>"):
                yield "system", text.removeprefix("<system>").removesuffix("</system>")
            case {"type": "text" | "input_text", "text": text}:
                yield role, text
            case {"type": "image_url", "image_url": {"url": uri}} | {"type": "input_image", "image_url": uri}:
                yield "image", uri.removeprefix("data:image/png;base64,")
            case {"type": "file", "file": {"file_data": uri}} | {"type": "input_file", "file_data": uri}:
                yield "document", uri.removeprefix("data:application/pdf;base64,")
            case {"type": "image" | "document" as kind, "source": {"data": data}}:
                yield kind, data
            case {"type": "tool_use", "id": call_id, "name": name, "input": arguments}:
                yield _call(str(call_id), str(name), arguments)
            case {"type": "tool_result", "tool_use_id": call_id, "content": [{"text": text}], "is_error": is_error}:
                yield _result(call_id, json.dumps({"error": text}) if is_error else text)
            case _:
                raise AssertionError(f"Nobody expected {part}.")


def _call(call_id: str, name: str, arguments: Any) -> Said:
    return "call", f"{call_id} {name} {json.dumps(arguments)}"


def _result(call_id: str, text: str) -> Said:
    """A failure as its message alone: each provider frames it in a form of its own."""
    if text.startswith('{"error"'):
        return "failed", f"{call_id} {json.loads(json.loads(text)['error'])['message']}"
    return "result", f"{call_id} {text}"


def _round(texts: list[str]) -> list[ModelMessage]:
    calls = [ToolCall(f"call-{index}", "look_up", {"order": index}) for index in range(len(texts))]
    return [assistant("", *calls), *(result(call.id, text) for call, text in zip(calls, texts, strict=True))]


def conversations(texts: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[ModelMessage, ...]]:
    """Lists in which everything that a chain may say stands anywhere, after a user turn."""
    turn = st.one_of(
        st.builds(lambda text: [system(text)], texts),
        st.builds(lambda text: [user(text)], texts),
        st.builds(lambda text: [user([TextPart(text), ImagePart("image/png", PNG)])], texts),
        st.builds(lambda text: [assistant(text)], texts),
        st.builds(_round, st.lists(texts, min_size=1, max_size=3)),
    )
    opening = st.builds(lambda first, second: [system(first), user(second)], texts, texts)
    return st.builds(
        lambda head, turns: tuple(message for turn in [head, *turns] for message in turn),
        opening,
        st.lists(turn, max_size=8),
    )
