"""Our messages as the LLM library's, and its answer as ours."""

import base64
import json
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import groupby
from typing import TYPE_CHECKING, Any

from protege.exceptions import ModelError
from protege.inference.call_ids import with_legal_ids
from protege.inference.replies import Reply, RequestedCall, Usage
from protege.messages import ModelMessage, Part, Role, TextPart, ToolCall, thaw
from protege.toolkit import Tool, canonical_json
from protege.untrusted import storable

if TYPE_CHECKING:
    from pydantic_ai import messages as library
    from pydantic_ai.models import Model, ModelRequestParameters

NO_RESULT = "(no result)"


def encode(
    messages: Sequence[ModelMessage], model: "Model", parameters: "ModelRequestParameters"
) -> "list[library.ModelMessage]":
    """The messages in the form that `model` posts.

    All between two assistant turns becomes one request, in order. The library's own preparation keeps late system
    text in its place; its repair stands on both sides of it, so that what it moves is valid again. What no database
    could store (NUL, lone surrogates) is not sent either, so that a later mail of the thread reads the same.
    """
    from pydantic_ai.messages import repair_messages

    grouped = _grouped(messages)
    prepared = model.prepare_messages(repair_messages(grouped), parameters)
    return repair_messages(prepared)


def declared(tools: Iterable[Tool]) -> "ModelRequestParameters":
    """The tools with their schemas, as a request declares them."""
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    definitions = [
        ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=tool.schema())
        for tool in tools
    ]
    return ModelRequestParameters(function_tools=definitions)


def decode(response: "library.ModelResponse") -> Reply:
    """The library's response as a `Reply`; hidden reasoning is no text."""
    from pydantic_ai.messages import TextPart as LibraryText
    from pydantic_ai.messages import ToolCallPart

    text = "".join(part.content for part in response.parts if isinstance(part, LibraryText))
    calls = [_requested(part) for part in response.parts if isinstance(part, ToolCallPart)]
    cost, currency = _price(response)
    return Reply(
        text=storable(text),
        tool_calls=tuple(calls),
        usage=Usage(
            input_tokens=response.usage.input_tokens,
            output_tokens=response.usage.output_tokens,
            cached_tokens=response.usage.cache_read_tokens,
        ),
        cost=cost,
        currency=currency,
        finish_reason=response.finish_reason or "stop",
    )


def _requested(part: "library.ToolCallPart") -> RequestedCall:
    raw = part.args if isinstance(part.args, str) else json.dumps(part.args or {})
    return RequestedCall.parse(id=part.tool_call_id, name=part.tool_name, raw_arguments=raw)


def _price(response: "library.ModelResponse") -> tuple[Decimal | None, str]:
    """What the call cost; an unknown model and missing usage both mean that it has no known price."""
    try:
        return response.cost().total_price, "USD"
    except (LookupError, ValueError, AssertionError):
        return None, ""


def _grouped(messages: Sequence[ModelMessage]) -> "list[library.ModelMessage]":
    from pydantic_ai.messages import ModelRequest

    grouped: list[Any] = []
    names: dict[str, str] = {}
    for is_assistant, turns in groupby(with_legal_ids(messages), key=lambda message: message.role is Role.ASSISTANT):
        if is_assistant:
            said = list(turns)
            names.update({call.id: call.name for turn in said for call in turn.tool_calls})
            grouped += [_response(turn) for turn in said]
        else:
            grouped.append(ModelRequest(parts=[_request_part(turn, names) for turn in turns]))
    return grouped


def _response(turn: ModelMessage) -> "library.ModelResponse":
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.messages import TextPart as LibraryText

    said = _only_text(turn)
    text = [LibraryText(said)] if said else []
    return ModelResponse(parts=[*text, *(_call(call) for call in turn.tool_calls)])


def _only_text(turn: ModelMessage) -> str:
    """The text of a turn that no provider takes files in; a file there is refused, as it would be lost unseen."""
    if not all(isinstance(part, TextPart) for part in turn.parts):
        raise ModelError(
            f"A turn of the role {turn.role.value} holds a picture or a document. Only user turns may hold files: "
            "give the step the role user.",
            code="invalid_request",
        )
    return str(storable(turn.text))


def _call(call: ToolCall) -> "library.ToolCallPart":
    from pydantic_ai.messages import ToolCallPart

    return ToolCallPart(call.name, json.loads(canonical_json(storable(thaw(call.input)))), call.id)


def _request_part(turn: ModelMessage, names: dict[str, str]) -> Any:
    from pydantic_ai.messages import SystemPromptPart, UserPromptPart

    if turn.role is Role.SYSTEM:
        return SystemPromptPart(_only_text(turn))
    if turn.role is Role.TOOL:
        return _tool_return(turn, names)
    if isinstance(turn.content, str):
        return UserPromptPart(storable(turn.content))
    return UserPromptPart([_user_content(part) for part in turn.parts])


def _tool_return(turn: ModelMessage, names: dict[str, str]) -> Any:
    """A result; a failure goes as the library's own kind of it, which each provider has a form for."""
    from pydantic_ai.messages import ToolReturnPart

    call_id = turn.tool_call_id or ""
    name, text = names.get(call_id, "unknown"), _only_text(turn)
    error = _error_of(text)
    if error is not None:
        return ToolReturnPart(name, canonical_json(error), call_id, outcome="failed")
    return ToolReturnPart(name, text or NO_RESULT, call_id)


def _error_of(result: str) -> Any | None:
    """What a failed `ToolResult` says, without the frame that the library puts round it again."""
    try:
        parsed = json.loads(result)
    except (ValueError, RecursionError):
        return None
    return parsed["error"] if isinstance(parsed, dict) and set(parsed) == {"error"} else None


def _user_content(part: Part) -> Any:
    from pydantic_ai.messages import BinaryContent

    if isinstance(part, TextPart):
        return storable(part.text)
    return BinaryContent(base64.b64decode(part.data), media_type=part.media_type)
