"""What every page shares on which a person does something to a row that only the product writes otherwise."""

from collections.abc import Callable
from typing import Any, ClassVar

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_POST

from personas.tenant_admin import TenantAdmin


class ActingAdmin(TenantAdmin):
    """Base of admin classes with buttons of their own; `row_related` is loaded in one query with the row."""

    row_related: ClassVar[tuple[str, ...]] = ()

    def post_path(self, what: str, view: Callable[..., HttpResponse]) -> URLPattern:
        """`<pk>/what/`, for POST alone, called `<app>_<model>_<what>`."""
        name = f"{self.opts.app_label}_{self.opts.model_name}_{what}"
        return path(f"<int:pk>/{what}/", self.admin_site.admin_view(require_POST(view)), name=name)

    def row_for(self, request: HttpRequest, pk: int, *permissions: str) -> Any:
        """The row, for who has one of `permissions`: without them 403, and 404 for what the list does not show."""
        if not any(request.user.has_perm(name) for name in permissions) or not self.has_view_permission(request):
            raise PermissionDenied
        rows = self.get_queryset(request).filter(pk=pk)
        row = (rows.select_related(*self.row_related) if self.row_related else rows).first()
        if row is None:
            raise Http404("There is no such row, or you may not see it.")
        return row

    def back_to(self, pk: int) -> HttpResponseRedirect:
        return HttpResponseRedirect(reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_change", args=[pk]))
