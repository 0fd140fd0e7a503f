"""What came in by the doors, whatever became of it."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from personas.tenant_admin import ReadOnlyAdmin
from threads.admin.downloads import raw_mail_response
from threads.admin.letting_in import LettingInAdmin
from threads.admin.showing import line
from threads.models import ImapCursor, InboundMail, RawMail

VIEW_RAW = "protege_threads.view_raw_mail"


@admin.register(InboundMail)
class InboundMailAdmin(LettingInAdmin, ReadOnlyAdmin):
    """Each delivery. Mail that no tenant was found for is shown to administrators only."""

    owner = "tenant"
    actions = ("release", "rerun")
    list_display = ("id", "status", "reason", "source", "sender_line", "persona", "message", "received_at")
    list_filter = ("status", "persona", "received_at")
    list_select_related = ("persona", "message")
    list_defer = (
        "recipients", "persona__instructions", "persona__signature", "message__text_body", "message__readable_body",
    )  # fmt: skip
    search_fields = ("sender", "reason", "source", "recipients")
    fields = (
        "status", "reason", "source", "sender_line", "recipients_line", "persona", "tenant", "message", "attempts",
        "reached_at", "received_at", "raw_source",
    )  # fmt: skip
    readonly_fields = ("sender_line", "recipients_line", "raw_source")

    @admin.display(description="sender", ordering="sender")
    def sender_line(self, inbound: InboundMail) -> str:
        return "null path" if inbound.sender == "" else line(inbound.sender or "")

    @admin.display(description="recipients")
    def recipients_line(self, inbound: InboundMail) -> str:
        return line(", ".join(map(str, inbound.recipients)), 2_000)

    @admin.display(description="raw source")
    def raw_source(self, inbound: InboundMail) -> str | SafeString:
        if inbound.raw_id is None:
            return "deleted after its term"
        url = reverse("admin:protege_threads_inboundmail_raw", args=[inbound.pk])
        return format_html('<a href="{}">Download</a>', url)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        may_see = request.user.has_perm(VIEW_RAW)
        return tuple(name for name in self.fields if may_see or name != "raw_source")

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.raw_view)
        return [path("<int:pk>/raw/", view, name="protege_threads_inboundmail_raw"), *super().get_urls()]

    def raw_view(self, request: HttpRequest, pk: int) -> HttpResponse | Any:
        """The mail as it came, for those who may see more of it than the product shows."""
        inbound = self.get_queryset(request).filter(pk=pk).select_related("raw").first()
        may_see = request.user.has_perm(VIEW_RAW)
        if inbound is None or not may_see or not self.has_view_permission(request, inbound):
            raise Http404("There is no such mail, or you may not see its source.")
        return raw_mail_response(inbound)


@admin.register(RawMail)
class RawMailAdmin(ReadOnlyAdmin):
    """What is kept of raw mail, without its content, which is downloaded from the delivery."""

    owner = None
    on_index = False
    list_display = ("id", "media_type", "sha256", "created_at")
    list_defer = ("content",)
    ordering = ("-id",)
    fields = ("media_type", "sha256", "created_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[RawMail]:
        return super().get_queryset(request).defer("content")


@admin.register(ImapCursor)
class ImapCursorAdmin(ReadOnlyAdmin):
    """Deleting one makes the mailbox be read from its start; mail that is known already is not taken again."""

    owner = None
    deletable = True
    list_display = ("account", "uid_validity", "last_uid", "fetched_at")
    search_fields = ("account",)
