"""What may be asked of a preview. Every field is checked here, before any row that the body names is looked up."""

from collections.abc import Mapping, Sequence
from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema_field
from rest_framework import serializers

from protege import conf
from protege.api import shapes
from protege.inference.naming import check_model
from protege.services import chains

SUBJECTS = ("message", "responsibility", "mail")

EXAMPLES = [
    OpenApiExample("A stored mail", value={"message": 17}, request_only=True),
    OpenApiExample(
        "An unsaved chain, another model, and what it changes",
        value={
            "message": 17,
            "steps": [
                {"resolver": "load_text", "options": {"text": "You are {{ persona.name }}."}},
                {"resolver": "thread_history", "options": {"limit": 10}, "enabled": True, "on_error": "fail"},
            ],
            "model": "anthropic:claude-sonnet-4-5",
            "compare": "saved",
        },
        request_only=True,
    ),
    OpenApiExample(
        "A mail that was never received",
        value={"mail": "From: ana@client.example\r\nTo: helper@desk.example\r\nSubject: Order 77\r\n\r\nWhere is it?"},
        request_only=True,
    ),
]


@extend_schema_field({"oneOf": [{"type": "string", "enum": ["saved"]}, {"type": "integer", "minimum": 1}]})
class CompareField(serializers.Field[Any, Any, Any, Any]):
    """`"saved"` or the number of a revision."""

    default_error_messages = {"invalid": 'Give "saved" or the number of a revision.'}

    def to_internal_value(self, data: Any) -> str | int:
        if data == "saved" or (isinstance(data, int) and not isinstance(data, bool) and data > 0):
            return str(data) if data == "saved" else int(data)
        self.fail("invalid")

    def to_representation(self, value: Any) -> Any:
        return value


class PreviewRequestSerializer(shapes.KnownFieldsSerializer):
    """Exactly one of message, responsibility and mail; the rest is optional."""

    message = serializers.IntegerField(required=False, min_value=1, help_text="Id of an inbound message.")
    responsibility = serializers.IntegerField(required=False, min_value=1, help_text="Id of a responsibility.")
    mail = serializers.CharField(
        required=False,
        trim_whitespace=False,
        help_text="A mail as RFC 5322 text that was never received. Nothing of it is stored.",
    )
    steps = shapes.StepsField(required=False, help_text="An unsaved chain in place of the saved one.")
    model = serializers.CharField(required=False, max_length=200, help_text="Another model than the persona's.")
    compare = CompareField(required=False, help_text='"saved" or a revision: adds what differs from that chain.')
    full = serializers.BooleanField(required=False, default=False, help_text="Shows the bytes of files as well.")

    def validate_mail(self, value: str) -> str:
        if len(value.encode()) > conf.load().mail_size_limit:
            raise serializers.ValidationError("The mail is larger than mails may be here.")
        return value

    def validate_steps(self, value: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        return chains.clean_steps(value)

    def validate_model(self, value: str) -> str:
        check_model(value, conf.load())
        return value

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        given = [name for name in SUBJECTS if name in attrs]
        if len(given) != 1:
            named = f"not {' and '.join(given)}" if given else "none was given"
            raise serializers.ValidationError(f"Give exactly one of {', '.join(SUBJECTS)}; {named}.")
        return attrs
