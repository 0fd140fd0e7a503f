"""What all our views share, whatever the host's own REST_FRAMEWORK says. How callers log in is the host's."""

from collections.abc import Callable
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.generics import GenericAPIView, ListAPIView
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response
from rest_framework.views import APIView

from personas.models import Persona
from protege.api import errors
from protege.api.paging import KeysetPagination
from protege.api.parsing import StrictJSONParser
from protege.api.principals import NO_PERSONA, asking, visible_personas
from protege.exceptions import NotVisibleError
from protege.principals import Scope

SCOPE_PARAMETERS = [
    OpenApiParameter(
        "scope", str, enum=[scope.value for scope in Scope], description="Whose rows; without it the widest granted."
    ),
    OpenApiParameter("as_persona", int, description="With the scope `self`: the persona to look as."),
]


class ErrorShape(APIView):
    """One shape of errors, also in a host that has chosen another for its own API."""

    def get_exception_handler(self) -> Callable[[Exception, dict[str, Any]], Response | None]:
        return errors.handle


class ProtegeView(ErrorShape):
    """JSON in and out, and no OPTIONS answer that would describe what is behind a form."""

    renderer_classes = [JSONRenderer]
    parser_classes = [StrictJSONParser]
    metadata_class = None
    schema = AutoSchema()


class VisibleRows(ProtegeView, GenericAPIView[Any]):
    """Reads of the rows that the caller may see, by `visible_to`; `queryset` holds the rows of everybody."""

    filter_backends: list[type[Any]] = []

    def get_queryset(self) -> "QuerySet[Any]":
        rows: Any = super().get_queryset()
        visible: QuerySet[Any] = rows.visible_to(*asking(self.request))
        return visible

    def get_object(self) -> Any:
        rows = self.get_queryset()
        row = rows.filter(pk=self.kwargs["pk"]).first()
        if row is None:
            raise NotVisibleError(f"There is no such {rows.model._meta.verbose_name}, or you may not see it.")
        return row


class VisibleList(VisibleRows, ListAPIView[Any]):
    """A list of them; `order` is its total order, `filters` the names of its own query parameters."""

    pagination_class = KeysetPagination
    order: tuple[str, ...] = ("id",)
    filters: tuple[str, ...] = ()

    def filter_queryset(self, queryset: "QuerySet[Any]") -> "QuerySet[Any]":
        self._refuse_unknown_parameters()
        return super().filter_queryset(queryset)

    def _refuse_unknown_parameters(self) -> None:
        """A filter that is misspelt must not give the rows that it was to leave out."""
        known = [*self.filters, "scope", "as_persona", "limit", "cursor"]
        unknown = sorted(set(self.request.query_params) - set(known))
        if unknown:
            raise serializers.ValidationError(
                [f"Unknown parameter {name!r}. Use: {', '.join(known)}." for name in unknown]
            )


def persona_or_404(request: HttpRequest, pk: int) -> Persona:
    """The persona of the address; `NotVisibleError` when there is none that the caller may see."""
    persona = visible_personas(request).filter(pk=pk).first()
    if persona is None:
        raise NotVisibleError(NO_PERSONA)
    return persona
