"""Django's permissions by the method of the request. A view names them; what it does not name is closed."""

from collections.abc import Mapping, Sequence

from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

Needed = Mapping[str, Sequence[str]]


class HasPermissions(BasePermission):
    """The permissions that the view's `needs` lists for the method: `{"GET": ["protege_personas.view_persona"]}`.

    A method that is not listed needs all of them, so that nobody learns more from a method that does not exist.
    """

    def has_permission(self, request: Request, view: APIView) -> bool:
        needs: Needed = view.needs  # type: ignore[attr-defined]  # a view without it is a mistake, and fails
        method = "GET" if request.method == "HEAD" else str(request.method)
        every = [permission for permissions in needs.values() for permission in permissions]
        return bool(request.user.is_authenticated and request.user.has_perms(needs.get(method, every)))
