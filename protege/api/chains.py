"""A persona's chains: read with the revision they are at, and replaced as a whole by whoever has read that one."""

import re
from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from personas.models import Persona
from protege.api import shapes
from protege.api.base import SCOPE_PARAMETERS, ProtegeView, persona_or_404
from protege.api.errors import PreconditionRequired
from protege.api.permissions import HasPermissions
from protege.exceptions import NotVisibleError
from protege.identity import author_of
from protege.services import chains
from resolvers.models import ChainRevision, ChainStep, Trigger

# A strong tag is what we give; proxies that compress make it a weak one. The save itself compares the numbers.
_ETAG = re.compile(r'\s*(?:W/)?"?([0-9]{1,9})"?\s*')

EXAMPLE = OpenApiExample(
    "A chain",
    value={
        "steps": [
            {"resolver": "load_text", "options": {"text": "You are {{ persona.name }}."}},
            {"resolver": "thread_history", "options": {"limit": 20}},
        ],
        "note": "Shorter history",
    },
    request_only=True,
)


class ChainSerializer(serializers.Serializer[Any]):
    """A chain as it is saved; the number is also the ETag."""

    revision = serializers.IntegerField(help_text="Number of the last revision, 0 before the first.")
    steps = shapes.StepSerializer(many=True)


class ChainChangeSerializer(shapes.KnownFieldsSerializer):
    """The chain that replaces the saved one."""

    steps = shapes.StepsField(help_text="All steps, in order.")
    note = serializers.CharField(
        required=False, allow_blank=True, default="", max_length=300, help_text="Why it was changed."
    )


TRIGGER = OpenApiParameter("trigger", str, OpenApiParameter.PATH, enum=Trigger.values, description="Which chain.")
ETAG = OpenApiParameter("ETag", str, OpenApiParameter.HEADER, response=[200], description="The revision, quoted.")
IF_MATCH = OpenApiParameter(
    "If-Match", str, OpenApiParameter.HEADER, required=True, description="The ETag of the chain that you changed."
)


def etag(revision: int) -> str:
    return f'"{revision}"'


def expected_revision(request: Request) -> int:
    """The revision that If-Match names; 428 without the header."""
    header = request.headers.get("If-Match")
    if header is None:
        raise PreconditionRequired()
    match = _ETAG.fullmatch(header)
    if match is None:
        raise serializers.ValidationError(["If-Match must be the ETag of the chain that you changed."])
    return int(match[1])


class ChainView(ProtegeView):
    """One of the two chains of a persona."""

    permission_classes = [IsAuthenticated, HasPermissions]
    needs = {
        "GET": ["protege_personas.view_persona", "protege_resolvers.view_chainstep"],
        "PUT": ["protege_personas.view_persona", "protege_resolvers.change_chainstep"],
    }

    @extend_schema(
        summary="Show a chain",
        parameters=[TRIGGER, *SCOPE_PARAMETERS, ETAG],
        responses={200: ChainSerializer, **shapes.errors(s404=shapes.NOT_VISIBLE)},
    )
    def get(self, request: Request, pk: int, trigger: str) -> Response:
        persona, trigger = _chain_or_404(request, pk, trigger)
        # The number before the steps: the other way round, a save in between would be undone by the caller's next.
        revision = chains.current_revision(persona, trigger)
        rows = ChainStep.objects.filter(persona=persona, trigger=trigger).order_by("position", "pk")
        return _answer(revision, [row.to_dict() for row in rows])

    @extend_schema(
        summary="Replace a chain",
        parameters=[TRIGGER, *SCOPE_PARAMETERS, IF_MATCH, ETAG],
        request=ChainChangeSerializer,
        responses={
            200: ChainSerializer,
            **shapes.errors(
                s400="A step or key that is wrong; one line each.",
                s404=shapes.NOT_VISIBLE,
                s409="Somebody has saved the chain in the meantime.",
                s428="If-Match is missing.",
            ),
        },
        examples=[EXAMPLE],
    )
    def put(self, request: Request, pk: int, trigger: str) -> Response:
        persona, trigger = _chain_or_404(request, pk, trigger)
        revision = _save(request, persona, trigger)
        return _answer(revision.number, revision.steps)


def _chain_or_404(request: Request, pk: int, trigger: str) -> tuple[Persona, str]:
    persona = persona_or_404(request, pk)
    if trigger not in Trigger.values:
        raise NotVisibleError(f"A persona has no such chain. It has: {', '.join(Trigger.values)}.")
    return persona, trigger


def _save(request: Request, persona: Persona, trigger: str) -> ChainRevision:
    expected = expected_revision(request)
    change = ChainChangeSerializer(data=request.data)
    change.is_valid(raise_exception=True)
    given = change.validated_data
    author, note = author_of(request), given["note"]
    return chains.save(persona, trigger, given["steps"], expected_revision=expected, author=author, note=note)


def _answer(revision: int, steps: list[dict[str, Any]]) -> Response:
    return Response({"revision": revision, "steps": steps}, headers={"ETag": etag(revision)})
