"""Personas with chains, mails, and the asking of previews, for the tests of the preview."""

import base64
from typing import Any

from rest_framework import serializers
from rest_framework.test import APIClient

from personas.models import Persona
from protege.services import chains
from resolvers import Resolver
from tests.api.callers import PREVIEW, VIEW_PERSONA, VIEW_THREADS, staff
from tests.factories import AttachmentFactory, EmailThreadFactory, MessageFactory, PersonaFactory
from threads.models import Message

SYSTEM = {"resolver": "load_text", "options": {"text": "You are {{ persona.name }}."}}
DUTY = {"resolver": "load_text", "options": {"source": "responsibility-instructions", "role": "user"}}
OPENAI = "openai-chat:gpt-5-mini"
MAIL = "From: Ana <ana@client.example>\nTo: helper@desk.example\nSubject: Order 78\nMessage-ID: <new@x>\n\nAnd 78?\n"
PNG = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00"
    b"\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82"
)


class Broken(Resolver):
    name = "broken"

    def resolve(self, context: Any) -> Any:
        raise RuntimeError("the text of a mail")


class Asker(Resolver):
    """Says who the run acts for."""

    name = "asker"

    def resolve(self, context: Any) -> Any:
        return self.message("system", repr(context.principal))


class Clock(Resolver):
    """Says the run's one clock, to the microsecond."""

    name = "clock"

    def resolve(self, context: Any) -> Any:
        return self.message("system", context.now.isoformat())


def persona_with(*steps: dict[str, Any], trigger: str = "message", **fields: Any) -> Persona:
    persona: Persona = PersonaFactory(**fields)
    chains.save(persona, trigger, steps, expected_revision=0)
    return persona


def mail_to(persona: Persona, **fields: Any) -> Message:
    message: Message = MessageFactory(thread=EmailThreadFactory(persona=persona), **fields)
    return message


def caller() -> APIClient:
    return staff(VIEW_PERSONA, VIEW_THREADS, PREVIEW)


def post(who: APIClient, persona: Persona | int, **body: Any) -> Any:
    pk = persona if isinstance(persona, int) else persona.pk
    return who.post(f"/api/personas/{pk}/preview/", body, format="json")


def shown(persona: Persona, **body: Any) -> dict[str, Any]:
    answer = post(caller(), persona, **body)
    assert answer.status_code == 200, answer.json()
    found: dict[str, Any] = answer.json()
    return found


def stored_picture(persona: Persona) -> dict[str, Any]:
    message = mail_to(persona)
    AttachmentFactory(message=message, data=PNG, filename="a.png", content_type="image/png")
    return {"message": message.pk}


def pasted_picture() -> dict[str, Any]:
    part = "Content-Type: image/png\nContent-Disposition: attachment; filename=a.png\nContent-Transfer-Encoding: base64"
    data = base64.b64encode(PNG).decode()
    header, text = MAIL.split("\n\n", 1)
    body = f"--b\n\n{text}\n--b\n{part}\n\n{data}\n--b--\n"
    return {"mail": f"{header}\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n{body}"}


def assert_shape(serializer: Any, value: Any) -> None:
    """`value` has the keys of `serializer`, all the way down; what the schema promises is what is answered."""
    if value is None:
        assert serializer.allow_null
    elif isinstance(serializer, serializers.ListSerializer):
        for item in value:
            assert_shape(serializer.child, item)
    elif isinstance(serializer, serializers.Serializer):
        assert set(value) == set(serializer.fields)
        for name, field in serializer.fields.items():
            assert_shape(field, value[name])
    else:
        serializer.run_validation(value)
