"""The admin of who speaks."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from personas.admin.forms import ResponsibilityForm
from personas.admin.persona import PersonaAdmin
from personas.models import PersonaAddress, Responsibility
from personas.tenant_admin import ReadOnlyAdmin, TenantAdmin

__all__ = ["PersonaAddressAdmin", "PersonaAdmin", "ResponsibilityAdmin"]


@admin.register(Responsibility)
class ResponsibilityAdmin(TenantAdmin):
    owner = "persona"
    form = ResponsibilityForm
    fieldsets = (
        (None, {"fields": ("persona", ("name", "slug"), "enabled")}),
        ("What", {"fields": ("instructions",)}),
        ("When", {"fields": ("schedule", ("next_run_at", "last_run_at"))}),
        ("To whom", {"fields": ("recipients", "subject")}),
    )
    readonly_fields = ("next_run_at", "last_run_at")
    autocomplete_fields = ("persona",)
    list_display = ("name", "slug", "persona", "schedule", "enabled", "next_run_at", "last_run_at")
    list_filter = ("enabled", "persona")
    list_select_related = ("persona",)
    list_defer = ("instructions", "persona__instructions", "persona__signature")
    search_fields = ("name", "slug", "persona__slug", "persona__name")

    def get_prepopulated_fields(self, request: HttpRequest, obj: Any = None) -> dict[str, Any]:
        return {} if obj is not None else {"slug": ("name",)}


@admin.register(PersonaAddress)
class PersonaAddressAdmin(ReadOnlyAdmin):
    """Whose an address is; aliases are edited on the page of their persona."""

    owner = "persona"
    on_index = False
    list_display = ("address", "persona", "is_primary")
    list_filter = ("is_primary", "persona")
    list_select_related = ("persona",)
    list_defer = ("persona__instructions", "persona__signature")
    search_fields = ("address",)
