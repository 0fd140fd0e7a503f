"""The one pagination of all lists: the HTTP face of `protege.api.keyset`."""

from typing import Any

from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from protege.api import keyset


class KeysetPagination(BasePagination):
    """`?limit=` and `?cursor=` to `{"results": [...], "limit": 50, "next": "<cursor>" | null}`.

    The view's `order` is the total order of its list. The limit that is echoed is the one in force, after the cap.
    """

    def paginate_queryset(self, queryset: Any, request: Request, view: APIView | None = None) -> list[Any]:
        self._page: keyset.Page[Any] = keyset.page(
            queryset,
            getattr(view, "order", ("id",)),
            cursor=request.query_params.get("cursor"),
            limit=keyset.effective_limit(request.query_params.get("limit")),
        )
        return self._page.rows

    def get_paginated_response(self, data: Any) -> Response:
        return Response({"results": data, "limit": self._page.limit, "next": self._page.next})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": "object",
            "required": ["results", "limit", "next"],
            "properties": {
                "results": schema,
                "limit": {"type": "integer", "example": keyset.DEFAULT_LIMIT, "description": "The limit in force."},
                "next": {"type": "string", "nullable": True, "description": "Cursor of the next page; null: the last."},
            },
        }

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, Any]]:
        return [
            _parameter("limit", f"Rows a page; {keyset.DEFAULT_LIMIT}, at most {keyset.LIMIT_CAP}.", type="integer"),
            _parameter("cursor", "`next` of the page before.", type="string"),
        ]


def _parameter(name: str, description: str, **schema: Any) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "description": description, "schema": schema}
