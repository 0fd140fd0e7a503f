"""Personas, to look at."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.generics import RetrieveAPIView
from rest_framework.permissions import IsAuthenticated

from personas.models import Persona
from protege.api import shapes
from protege.api.base import SCOPE_PARAMETERS, VisibleList, VisibleRows
from protege.api.permissions import HasPermissions
from protege.api.principals import visible_personas


class PersonaSerializer(serializers.ModelSerializer[Persona]):
    """A persona as it is configured."""

    aliases = serializers.SerializerMethodField(help_text="Addresses besides the primary one.")
    fallback_models = shapes.CodesField()
    tools = shapes.CodesField()
    tool_policies = serializers.DictField(child=serializers.CharField())
    history_scopes = shapes.CodesField()

    class Meta:
        model = Persona
        fields = [
            "id", "tenant", "slug", "name", "address", "aliases", "instructions", "model", "fallback_models",
            "context_window", "max_output_tokens", "tools", "tool_policies", "history_scopes", "reply_mode",
            "timezone", "signature", "holding_reply", "quote_history", "monthly_budget", "is_active",
        ]  # fmt: skip
        read_only_fields = fields

    def get_aliases(self, persona: Persona) -> list[str]:
        # Not `persona.aliases`, which asks the database for each row.
        return sorted(item.address for item in persona.addresses.all() if not item.is_primary)


class _Personas(VisibleRows):
    """The personas of the caller's tenant."""

    queryset = Persona.objects.prefetch_related("addresses")
    serializer_class = PersonaSerializer
    needs = {"GET": ["protege_personas.view_persona"]}

    def get_queryset(self) -> "QuerySet[Any]":
        return visible_personas(self.request).prefetch_related("addresses")


@extend_schema_view(
    get=extend_schema(
        summary="List personas",
        parameters=SCOPE_PARAMETERS,
        responses={200: PersonaSerializer(many=True), **shapes.errors(s400=shapes.BAD_LIST)},
    )
)
class PersonaList(_Personas, VisibleList):
    permission_classes = [IsAuthenticated, HasPermissions]
    order = ("tenant", "slug", "id")


@extend_schema_view(
    get=extend_schema(
        summary="Show a persona",
        parameters=SCOPE_PARAMETERS,
        responses={200: PersonaSerializer, **shapes.errors(s404=shapes.NOT_VISIBLE)},
    )
)
class PersonaDetail(_Personas, RetrieveAPIView[Persona]):
    permission_classes = [IsAuthenticated, HasPermissions]
