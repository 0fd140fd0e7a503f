"""The smaller tables."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from personas.tenant_admin import ReadOnlyAdmin, TenantAdmin
from threads.admin.showing import line, text_block
from threads.models import Participant, PromptText, SearchText, ThreadTag, ThreadVector, TokenRate

LONG_COLUMNS_OF_THREAD = ("thread__summary", "thread__description")


@admin.register(Participant)
class ParticipantAdmin(ReadOnlyAdmin):
    owner = "thread"
    list_display = ("address", "name_line", "thread", "failing_since")
    list_filter = (("failing_since", admin.EmptyFieldListFilter),)
    list_select_related = ("thread",)
    list_defer = LONG_COLUMNS_OF_THREAD
    ordering = ("-id",)
    search_fields = ("address", "name")

    @admin.display(description="name", ordering="name")
    def name_line(self, participant: Participant) -> str:
        return line(participant.name)


@admin.register(ThreadTag)
class ThreadTagAdmin(TenantAdmin):
    owner = "thread"
    list_display = ("name", "thread")
    list_select_related = ("thread",)
    list_defer = LONG_COLUMNS_OF_THREAD
    ordering = ("name", "id")
    search_fields = ("name",)
    autocomplete_fields = ("thread",)


@admin.register(PromptText)
class PromptTextAdmin(ReadOnlyAdmin):
    """Texts are kept once for all tenants, so that only administrators read them here."""

    owner = None
    list_display = ("sha256", "created_at")
    list_defer = ("text",)
    ordering = ("-created_at", "sha256")
    search_fields = ("sha256",)
    fields = ("sha256", "created_at", "shown")
    readonly_fields = ("shown",)

    class Media:
        css = {"all": ["protege_threads/threads.css"]}

    @admin.display(description="text")
    def shown(self, prompt: PromptText) -> SafeString:
        return text_block(prompt.text)


@admin.register(TokenRate)
class TokenRateAdmin(ReadOnlyAdmin):
    """Deleting one makes the model be measured anew."""

    owner = None
    deletable = True
    list_display = ("model", "rate", "readings", "updated_at")
    ordering = ("model",)
    search_fields = ("model",)


@admin.register(SearchText)
class SearchTextAdmin(ReadOnlyAdmin):
    """What the search knows of a mail."""

    owner = "thread"
    on_index = False
    list_display = ("message_id", "thread")
    list_select_related = ("thread",)
    list_defer = ("text", *LONG_COLUMNS_OF_THREAD)
    ordering = ("-message_id",)


@admin.register(ThreadVector)
class ThreadVectorAdmin(ReadOnlyAdmin):
    """Which model a thread was embedded by; the numbers themselves tell people nothing."""

    owner = "thread"
    on_index = False
    list_display = ("thread", "provider", "model", "dimension", "updated_at")
    list_select_related = ("thread",)
    list_defer = LONG_COLUMNS_OF_THREAD
    ordering = ("-thread_id",)
    fields = ("thread", "provider", "model", "dimension", "updated_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[ThreadVector]:
        return super().get_queryset(request).defer("vector")
