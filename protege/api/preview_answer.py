"""The shape of a preview's answer, for the schema. `Preview.to_dict` makes it; a test holds the two together."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema_field
from rest_framework import serializers

from protege.api import shapes
from protege.messages import Role
from resolvers.models import Trigger

_PART = {
    "type": "object",
    "required": ["type"],
    "properties": {
        "type": {"type": "string", "enum": ["text", "image", "document"]},
        "text": {"type": "string"},
        "filename": {"type": "string"},
        "media_type": {"type": "string"},
        "bytes": {"type": "integer", "description": "Size; the bytes themselves are shown with `full` only."},
        "sha256": {"type": "string"},
        "data": {"type": "string", "description": "Base64, with `full` only."},
    },
}


@extend_schema_field({"oneOf": [{"type": "string"}, {"type": "array", "items": _PART}]})
class ContentField(serializers.JSONField):
    """A text, or a list of parts."""


@extend_schema_field({"type": "object", "additionalProperties": True})
class ObjectField(serializers.JSONField):
    """A JSON object of whatever keys."""


class PreviewCallSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    name = serializers.CharField()
    input = ObjectField()


class PreviewMessageSerializer(serializers.Serializer[Any]):
    """One entry of what the model would read."""

    role = serializers.ChoiceField(choices=[(role.value, role.value) for role in Role])
    content = ContentField()
    tool_call_id = serializers.CharField(allow_null=True)
    tool_calls = PreviewCallSerializer(many=True)
    step = serializers.IntegerField(allow_null=True, help_text="Index of the step that said it; null: the engine.")
    tokens = serializers.IntegerField()
    kept = serializers.ChoiceField(choices=[("whole", "whole"), ("cut", "cut")])
    trust = serializers.CharField(allow_null=True, help_text="That of the mail; null for other text.")
    sources = serializers.ListField(child=serializers.CharField())


class PreviewLeftOutSerializer(serializers.Serializer[Any]):
    step = serializers.IntegerField(allow_null=True)
    what = serializers.CharField()
    reason = serializers.CharField()
    tokens = serializers.IntegerField()


class PreviewStepSerializer(serializers.Serializer[Any]):
    """What became of one step; `error` says why it failed."""

    position = serializers.IntegerField()
    resolver = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # a field of that name hides the serializer's own
    enabled = serializers.BooleanField()
    messages = serializers.IntegerField()
    tokens = serializers.IntegerField()
    milliseconds = serializers.FloatField()
    queries = serializers.IntegerField()
    error = serializers.CharField(allow_null=True)


class PreviewTokensSerializer(serializers.Serializer[Any]):
    estimated = serializers.IntegerField(help_text="Of the whole request, with a margin.")
    window = serializers.IntegerField()
    reserved = serializers.IntegerField(help_text="For the answer; sent as its limit.")


class PreviewWireSerializer(serializers.Serializer[Any]):
    """The request that would be posted first; the hash is over the body as it is posted."""

    provider = serializers.CharField()
    method = serializers.CharField()
    url = serializers.CharField()
    body = ObjectField()
    sha256 = serializers.CharField()


class ComparedTokensSerializer(serializers.Serializer[Any]):
    before = serializers.IntegerField()
    after = serializers.IntegerField()
    difference = serializers.IntegerField()


class PreviewComparisonSerializer(serializers.Serializer[Any]):
    """Messages that only one of the two chains gives."""

    against = ContentField(help_text='"saved" or the number of a revision.')
    added = PreviewMessageSerializer(many=True)
    removed = PreviewMessageSerializer(many=True)
    tokens = ComparedTokensSerializer()


class PreviewSerializer(serializers.Serializer[Any]):
    """Exactly what the model would be sent, and why."""

    persona = serializers.IntegerField()
    trigger = serializers.ChoiceField(choices=Trigger.choices)
    model = serializers.CharField()
    messages = PreviewMessageSerializer(many=True)
    left_out = PreviewLeftOutSerializer(many=True)
    steps = PreviewStepSerializer(many=True)
    tokens = PreviewTokensSerializer()
    notices = shapes.NoticesField()
    wire = PreviewWireSerializer(allow_null=True, help_text="Null when nothing would be sent.")
    comparison = PreviewComparisonSerializer(allow_null=True)


def _message(role: str, content: str, **facts: Any) -> dict[str, Any]:
    filled: dict[str, Any] = {"tool_call_id": None, "tool_calls": [], "step": None, "kept": "whole", "trust": None}
    return {"role": role, "content": content, "sources": [], **filled, **facts}


def _step(error: str | None) -> dict[str, Any]:
    said = {"messages": 0, "tokens": 0} if error else {"messages": 1, "tokens": 8}
    place = {"position": 0, "resolver": "load_text", "label": "Text", "enabled": True}
    return {**place, **said, "milliseconds": 0.4, "queries": 0, "error": error}


_TURN = _message("user", "From: ana@client.example ...", tokens=41, sources=["message:17"])

_ANSWER = {
    "persona": 1,
    "trigger": "message",
    "model": "openai-chat:gpt-5-mini",
    "messages": [_message("system", "You are Helper.", step=0, tokens=8, sources=["text@0f1e2d3c4b5a"]), _TURN],
    "left_out": [],
    "steps": [_step(None)],
    "tokens": {"estimated": 54, "window": 128_000, "reserved": 4_096},
    "notices": [],
    "wire": {
        "provider": "openai",
        "method": "POST",
        "url": "https://api.openai.com/v1/chat/completions",
        "body": {"model": "gpt-5-mini", "messages": [{"role": "system", "content": "You are Helper."}]},
        "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    },
    "comparison": None,
}

_FAILED = {
    **_ANSWER,
    "messages": [_TURN],
    "steps": [_step("The prompt file 'ada.md' does not exist.")],
    "notices": [{"code": "prompt_missing", "message": "The prompt file 'ada.md' does not exist."}],
    "wire": None,
}

EXAMPLES = [
    OpenApiExample("What would be sent", value=_ANSWER, response_only=True, status_codes=["200"]),
    OpenApiExample("A step that failed", value=_FAILED, response_only=True, status_codes=["422"]),
]
