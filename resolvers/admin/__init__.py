"""Chains and their versions. They are edited on the page of their persona, by `protege.services.chains` alone."""

import json

from django.contrib import admin
from django.utils.html import format_html
from django.utils.safestring import SafeString

from personas.tenant_admin import ReadOnlyAdmin
from resolvers.models import ChainRevision, ChainStep


@admin.register(ChainStep)
class ChainStepAdmin(ReadOnlyAdmin):
    """Which persona uses which resolver."""

    owner = "persona"
    list_display = ("id", "persona", "trigger", "position", "resolver", "enabled", "on_error")
    list_filter = ("trigger", "resolver", "enabled", "persona")
    list_select_related = ("persona",)
    list_defer = ("options", "persona__instructions", "persona__signature")
    search_fields = ("resolver", "persona__slug", "persona__name")


@admin.register(ChainRevision)
class ChainRevisionAdmin(ReadOnlyAdmin):
    """Every version that a chain has had."""

    owner = "persona"
    list_display = ("id", "persona", "trigger", "number", "by", "note", "created_at")
    list_filter = ("trigger", "persona")
    list_select_related = ("persona",)
    list_defer = ("steps", "persona__instructions", "persona__signature")
    ordering = ("-created_at", "-id")
    search_fields = ("persona__slug", "persona__name", "note", "author_label")
    fields = ("persona", "trigger", "number", "by", "note", "created_at", "chain")

    @admin.display(description="saved by")
    def by(self, revision: ChainRevision) -> str:
        # The label stays when the account is deleted.
        return revision.author_label or "-"

    @admin.display(description="steps")
    def chain(self, revision: ChainRevision) -> SafeString:
        return format_html('<pre class="pr-json">{}</pre>', json.dumps(revision.steps, ensure_ascii=False, indent=2))
