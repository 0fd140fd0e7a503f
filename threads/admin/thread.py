"""The page of a thread: what was said, readable from top to bottom, and what people may note about it."""

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.contrib.admin.widgets import AdminTextareaWidget
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from personas.tenant_admin import DeletionSummary, VisibleChoices
from threads.admin.drafts import decides
from threads.admin.showing import address, line, text_block
from threads.admin.stepping_in import PAUSE, PausedFilter, PausingAdmin
from threads.admin.transcript import transcript
from threads.models import Attachment, EmailThread, Message, Run, ThreadTag, ToolUse

FACTS = ("facts_subject", "facts_persona", "participants", "status", "last_activity")
NUMBERS = (
    "correspondent", "tenant", "created_at", "paused_at", "archived_at", "summary_text", "summary_updated_at",
    "summary_through", "opened_from", "last_sequence", "revision",
)  # fmt: skip
CURATE = "protege_threads.curate_emailthread"


class ThreadForm(forms.ModelForm):
    archived = forms.BooleanField(required=False, help_text="Hidden from lists; a new mail brings it back.")

    class Meta:
        model = EmailThread
        fields = ("title", "description", "pinned", "reply_mode")
        widgets = {"description": AdminTextareaWidget(attrs={"rows": 3})}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "archived" in self.fields:
            self.fields["archived"].initial = self.instance.archived_at is not None


class ArchivedFilter(admin.SimpleListFilter):
    title = "archived"
    parameter_name = "archived"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("no", "No"), ("yes", "Yes")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(archived_at__isnull=self.value() == "no") if self.value() in ("no", "yes") else queryset


class TagInline(VisibleChoices, admin.TabularInline):
    """Tags are curation, so that whoever curates may write them."""

    model = ThreadTag
    fields = ("name",)
    extra = 1
    max_num = 50
    verbose_name = "tag"
    verbose_name_plural = "tags"

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _curates(request) or super().has_add_permission(request, obj)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _curates(request) or super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _curates(request) or super().has_delete_permission(request, obj)


@admin.register(EmailThread)
class EmailThreadAdmin(PausingAdmin):
    form = ThreadForm
    inlines = (TagInline,)
    change_form_template = "protege_threads/thread_change_form.html"
    list_display = ("subject_line", "correspondent", "persona", "status", "pin_mark", "last_activity")
    list_display_links = ("subject_line",)
    list_filter = ("status", ArchivedFilter, PausedFilter, "pinned", "persona", "last_activity")
    list_select_related = ("persona",)
    list_defer = ("summary", "description", "persona__instructions", "persona__signature")
    search_fields = ("subject", "correspondent", "title")
    actions = ("pin", "unpin", "archive", "unarchive")
    readonly_fields = (*FACTS, *NUMBERS)
    fieldsets = (
        (None, {"fields": ("facts_subject", ("facts_persona", "status"), ("participants", "last_activity"))}),
        ("Notes", {"fields": ("title", "description", ("pinned", "archived"), "reply_mode")}),
        ("Numbers", {"fields": NUMBERS, "classes": ("collapse",)}),
    )

    class Media:
        css = {"all": ["protege_threads/threads.css"]}

    # Who may do what: to curate is a permission of its own, and does not reach how mail is answered.

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_curate_permission(self, request: HttpRequest) -> bool:
        return super().has_view_permission(request) and (_curates(request) or super().has_change_permission(request))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_curate_permission(request)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        may_change = super().has_change_permission(request, obj)
        return self.readonly_fields if may_change else (*self.readonly_fields, "reply_mode")

    # The list

    @admin.display(description="subject", ordering="subject")
    def subject_line(self, thread: EmailThread) -> str:
        return line(thread.title or thread.subject)

    @admin.display(description="pinned", ordering="pinned")
    def pin_mark(self, thread: EmailThread) -> str:
        # A column of red crosses would look like a list of failures.
        return "pinned" if thread.pinned else ""

    @admin.action(description="Pin selected threads", permissions=["curate"])
    def pin(self, request: HttpRequest, queryset: QuerySet[EmailThread]) -> None:
        self.message_user(request, f"Pinned: {_update(queryset, pinned=True)}.")

    @admin.action(description="Unpin selected threads", permissions=["curate"])
    def unpin(self, request: HttpRequest, queryset: QuerySet[EmailThread]) -> None:
        self.message_user(request, f"Unpinned: {_update(queryset, pinned=False)}.")

    @admin.action(description="Archive selected threads", permissions=["curate"])
    def archive(self, request: HttpRequest, queryset: QuerySet[EmailThread]) -> None:
        fresh = queryset.filter(archived_at__isnull=True)
        self.message_user(request, f"Archived: {_update(fresh, archived_at=timezone.now())}.")

    @admin.action(description="Bring selected threads back from the archive", permissions=["curate"])
    def unarchive(self, request: HttpRequest, queryset: QuerySet[EmailThread]) -> None:
        self.message_user(request, f"Brought back: {_update(queryset, archived_at=None)}.")

    # The page

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        thread = self.get_object(request, unquote(object_id))
        shown = transcript(thread, request.GET.get("page")) if thread is not None else None
        may = request.user.has_perm
        context = {
            "transcript": shown,
            "may_download": may("protege_threads.view_attachment"),
            "may_pause": may(PAUSE),
            "may_decide": decides(request),
        }
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **context})

    @admin.display(description="persona")
    def facts_persona(self, thread: EmailThread) -> SafeString:
        page = reverse("admin:protege_personas_persona_change", args=[thread.persona_id])
        shown = address(thread.persona.name, thread.persona.address)
        return format_html('<a href="{}">{}</a>', page, shown)

    @admin.display(description="subject")
    def facts_subject(self, thread: EmailThread) -> str:
        return line(thread.subject, 300)

    @admin.display(description="participants")
    def participants(self, thread: EmailThread) -> str:
        people = thread.participants.order_by("address")[:50]
        return ", ".join(address(person.name, person.address) for person in people) or "-"

    @admin.display(description="summary")
    def summary_text(self, thread: EmailThread) -> SafeString:
        return text_block(thread.summary)

    # Writing

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if "archived" in form.changed_data:
            obj.archived_at = timezone.now() if form.cleaned_data["archived"] else None
            obj.save(update_fields=["archived_at"])

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> DeletionSummary:
        """What goes with the threads, in numbers: the permission to delete a thread is that for all it holds."""
        threads = [thread.pk for thread in objs]
        counts = {
            "threads": len(threads),
            "messages": Message.objects.filter(thread__in=threads).count(),
            "attachments": Attachment.objects.filter(message__thread__in=threads).count(),
            "runs": Run.objects.filter(thread__in=threads).count(),
            "tool uses": ToolUse.objects.filter(run__thread__in=threads).count(),
        }
        return [format_html("thread {}", pk) for pk in threads], counts, set(), []

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        EmailThread.objects.filter(pk__in=list(queryset.values_list("pk", flat=True))).delete()


def _curates(request: HttpRequest) -> bool:
    return bool(request.user.has_perm(CURATE))


def _update(threads: QuerySet[EmailThread], **values: Any) -> int:
    return threads.order_by().update(**values)
