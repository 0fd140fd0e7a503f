"""The page of a persona: who it is, how it answers, and both of its chains."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.forms import BaseFormSet, ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.text import get_text_list

from personas.admin.forms import AliasForm, AliasFormSet, PersonaForm
from personas.models import Persona, PersonaAddress
from personas.tenant_admin import DeletionSummary, TenantAdmin, VisibleChoices
from protege.exceptions import StaleRevisionError
from protege.identity import author_of, principal_of
from protege.services import chains, inbox
from protege.services.wakeups import when_committed
from resolvers.admin.chain_formset import ChainFormSet
from resolvers.admin.chain_inline import MessageChainInline, ResponsibilityChainInline

FIELDSETS: Any = [
    (None, {"fields": (("name", "slug"), "address", "is_active")}),
    ("Voice", {"fields": ("instructions", "signature", "timezone")}),
    ("Model", {"fields": ("model", "fallback_models", ("context_window", "max_output_tokens"), "monthly_budget")}),
    ("Answers", {"fields": ("reply_mode", "holding_reply", "quote_history")}),
    ("Tools and history", {"fields": ("tools", "tool_policies", "history_scopes")}),
    (
        "Who may write to it",
        {
            "fields": ("allowed_senders", "denied_senders", "staff_senders", "form_senders", "own_lists"),
            "classes": ("collapse",),
        },
    ),
]

# What keeps a persona from being deleted, by related name, and what people call it.
KEPT = {"threads": "threads", "messages": "messages", "runs": "runs", "inbound_mails": "inbound mails"}


class AliasInline(VisibleChoices, admin.TabularInline):
    model = PersonaAddress
    form = AliasForm
    formset = AliasFormSet
    fields = ("address",)
    extra = 1
    verbose_name = "alias"
    verbose_name_plural = "Aliases"

    def get_queryset(self, request: HttpRequest) -> QuerySet[PersonaAddress]:
        # The primary address mirrors the persona's own field and is edited there.
        return super().get_queryset(request).filter(is_primary=False)


@admin.register(Persona)
class PersonaAdmin(TenantAdmin):
    form = PersonaForm
    fieldsets = FIELDSETS
    inlines = (AliasInline, MessageChainInline, ResponsibilityChainInline)
    list_display = ("name", "slug", "address", "model", "reply_mode", "is_active", "tenant")
    list_filter = ("is_active", "reply_mode", "tenant")
    list_defer = ("instructions", "signature", "holding_reply")
    search_fields = ("name", "slug", "address", "addresses__address")
    prepopulated_fields = {"slug": ("name",)}
    actions = ("deactivate",)
    change_form_template = "protege_personas/persona_change_form.html"
    delete_confirmation_template = "protege_personas/persona_delete.html"

    class Media:
        css = {"all": ["protege_personas/persona.css"]}

    def get_prepopulated_fields(self, request: HttpRequest, obj: Any = None) -> dict[str, Any]:
        # The slug of a persona that exists stands in prompts' paths and commands: it does not follow the name.
        return {} if obj is not None else super().get_prepopulated_fields(request, obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(principal_of(request).tenant) and super().has_add_permission(request)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form: Any = super().get_form(request, obj, change=change, **kwargs)
        form.tenant = principal_of(request).tenant or ""
        return form

    # Saving

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except StaleRevisionError:
            # Somebody saved between our check and our write. All is rolled back, and now the check sees it.
            return super().changeform_view(request, object_id, form_url, extra_context)

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if change and obj.is_active and "is_active" in form.changed_data:
            # With the transaction over: each mail has its own, and the persona is as the form says to all of them.
            when_committed(lambda: self._let_in(request, obj))

    def _let_in(self, request: HttpRequest, persona: Persona) -> None:
        let_in = inbox.release_waiting(persona)
        if let_in:
            said = f"Mails that came while {persona} was inactive: {len(let_in)}. They are taken in now."
            self.message_user(request, said, messages.SUCCESS)

    def save_formset(self, request: HttpRequest, form: ModelForm, formset: BaseFormSet, change: bool) -> None:
        if isinstance(formset, ChainFormSet):
            formset.save(author=author_of(request))
        else:
            super().save_formset(request, form, formset, change)

    def save_related(self, request: HttpRequest, form: ModelForm, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        if not change:
            chains.save_defaults(form.instance, author=author_of(request))

    # Deleting and what is there instead

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> DeletionSummary:
        """What deleting takes along, or why it cannot be: told from counts, as a persona may have a million mails."""
        personas = list(objs)
        protected = [line for persona in personas if (line := _what_keeps(persona))]
        deleted = [f"persona {persona} with its addresses, responsibilities and chains" for persona in personas]
        return deleted, {"personas": len(personas)}, set(), protected

    @admin.action(description="Deactivate selected personas", permissions=["change"])
    def deactivate(self, request: HttpRequest, queryset: QuerySet[Persona]) -> None:
        active = list(queryset.filter(is_active=True))
        for persona in active:
            self._deactivate(request, persona)
        self.message_user(request, f"Deactivated: {len(active)}. Their mail is kept and not answered.")

    def _deactivate(self, request: HttpRequest, persona: Persona) -> None:
        persona.is_active = False
        persona.save(update_fields=["is_active"])
        self.log_change(request, persona, "Deactivated.")

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.deactivate_view)
        own = path("<path:object_id>/deactivate/", view, name="protege_personas_persona_deactivate")
        return [own, *super().get_urls()]

    def deactivate_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """What the delete page offers for a persona that has threads."""
        persona = self.get_object(request, unquote(object_id))
        if request.method != "POST" or persona is None or not self.has_change_permission(request, persona):
            raise PermissionDenied
        self._deactivate(request, persona)
        self.message_user(request, f"{persona} is deactivated.", messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:protege_personas_persona_change", args=[quote(persona.pk)]))


def _what_keeps(persona: Persona) -> str:
    """ "persona ada has 12 threads and 3 runs", or nothing. One count a kind."""
    counts = {words: getattr(persona, name).count() for name, words in KEPT.items()}
    kept = [f"{count} {words if count > 1 else words[:-1]}" for words, count in counts.items() if count]
    return f"persona {persona} has {get_text_list(kept, 'and')}" if kept else ""
