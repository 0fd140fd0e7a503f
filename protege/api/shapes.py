"""Shapes that several answers share."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema_field
from rest_framework import serializers

from resolvers.models import OnError


class ErrorSerializer(serializers.Serializer[Any]):
    """What every error looks like; `code` is stable, `detail` is for people."""

    code = serializers.CharField()
    detail = serializers.CharField()


class MailboxSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(allow_blank=True)
    address = serializers.CharField()


class StepSerializer(serializers.Serializer[Any]):
    """One resolver of a chain, as in the editor; the resolver's own form checks the options."""

    resolver = serializers.CharField(help_text="Name under which code registered the resolver.")
    options = serializers.DictField(required=False, help_text="Options of the resolver.")
    enabled = serializers.BooleanField(required=False, default=True)
    on_error = serializers.ChoiceField(choices=OnError.choices, required=False, default=OnError.FAIL)


@extend_schema_field(StepSerializer(many=True))
class StepsField(serializers.ListField):
    """A chain as it is sent. Only its being a list is checked here: the rules of the editor stand in one place."""


class CodesField(serializers.ListField):
    """Stored short codes."""

    child = serializers.CharField()


@extend_schema_field(OpenApiTypes.ANY)
class AnyJSONField(serializers.JSONField):
    """JSON of whatever shape."""


@extend_schema_field(
    {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"code": {"type": "string"}},
            "required": ["code"],
            "additionalProperties": True,
        },
    }
)
class NoticesField(serializers.JSONField):
    """What a person should know: a code, and the facts that belong to it."""


class KnownFieldsSerializer(serializers.Serializer[Any]):
    """A body in which a key that it does not have is an error that lists the legal ones."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict):
            unknown = sorted(set(data) - set(self.fields))
            if unknown:
                legal = ", ".join(self.fields)
                complaints = [f"Unknown key {name!r}. Use: {legal}." for name in unknown]
                raise serializers.ValidationError({"non_field_errors": complaints})
        return super().to_internal_value(data)


def errors(**texts: str) -> dict[int, OpenApiResponse]:
    """Error answers for a schema: `errors(s404="...")`. Every route has 403."""
    found = {403: OpenApiResponse(ErrorSerializer, description="Not allowed, or an identity is missing.")}
    for name, text in texts.items():
        found[int(name.removeprefix("s"))] = OpenApiResponse(ErrorSerializer, description=text)
    return found


NOT_VISIBLE = "It does not exist, or the caller may not see it."
BAD_LIST = "A cursor, limit or parameter that the list does not have."
