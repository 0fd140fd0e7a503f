"""Mails and their files: to be read, as text. What is written here is written by the product."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from personas.tenant_admin import ReadOnlyAdmin, ReadOnlyInline
from protege.mail.limits import FILENAME_LENGTH, SUBJECT_LENGTH
from threads.admin.downloads import attachment_response
from threads.admin.drafts import DraftAdmin, WaitingFilter
from threads.admin.showing import address, addresses, line, text_block
from threads.admin.stepping_in import ResendingAdmin
from threads.models import Attachment, Message
from threads.models.attachment import readable_size


def download_link(attachment: Attachment) -> SafeString:
    url = reverse("admin:protege_threads_attachment_download", args=[attachment.pk])
    return format_html('<a href="{}">Download</a>', url)


class FileColumns:
    """How a file is shown, in whatever list."""

    @admin.display(description="file name", ordering="filename")
    def filename_line(self, attachment: Attachment) -> str:
        return line(attachment.filename, FILENAME_LENGTH)

    @admin.display(description="size", ordering="size")
    def file_size(self, attachment: Attachment) -> str:
        return readable_size(attachment.size)

    @admin.display(description="file")
    def download(self, attachment: Attachment) -> SafeString:
        return download_link(attachment)


class AttachmentInline(FileColumns, ReadOnlyInline):
    model = Attachment
    fields = ("filename_line", "content_type", "file_size", "text_status", "damaged", "download")
    readonly_fields = fields


@admin.register(Message)
class MessageAdmin(DraftAdmin, ResendingAdmin, ReadOnlyAdmin):
    inlines = (AttachmentInline,)
    actions = ("resend",)
    change_form_template = "protege_threads/message_change_form.html"
    list_display = ("id", "subject_line", "sender", "direction", "status", "persona", "thread", "received_at")
    list_display_links = ("id", "subject_line")
    list_filter = (WaitingFilter, "direction", "status", "origin", "trust", "persona", "received_at")
    list_select_related = ("persona", "thread")
    list_defer = (
        "text_body", "readable_body", "references", "to", "cc", "reply_to", "warnings", "persona__instructions",
        "persona__signature", "thread__summary", "thread__description",
    )  # fmt: skip
    ordering = ("-id",)
    search_fields = ("subject", "from_address", "from_name", "message_id")
    fieldsets = (
        (None, {"fields": ("thread", "persona", "from_line", "to_line", "cc_line", "subject_shown")}),
        ("Text", {"fields": ("readable",)}),
        (
            "State",
            {
                "fields": (
                    "direction", "status", "origin", "trust", "last_code", "answers", "answered_by", "run", "warnings",
                )
            },
        ),
        ("Whole text, with quotes", {"fields": ("whole",), "classes": ("collapse",)}),
        (
            "Mail",
            {
                "fields": (
                    "sequence", "message_id", "claimed_message_id", "provider_message_id", "in_reply_to", "references",
                    "reply_to_line", "sent_at", "received_at", "attempts", "next_attempt_at", "lease_expires_at",
                    "thread_revision", "edited_at",
                ),
                "classes": ("collapse",),
            },
        ),
    )  # fmt: skip
    readonly_fields = ("from_line", "to_line", "cc_line", "reply_to_line", "subject_shown", "readable", "whole")

    class Media:
        css = {"all": ["protege_threads/threads.css"]}

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        message = self.get_object(request, unquote(object_id))
        may = {
            "may_decide": message is not None and self.may_decide(request, message),
            "may_resend": message is not None and self.may_resend(request, message),
        }
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **may})

    @admin.display(description="subject", ordering="subject")
    def subject_line(self, message: Message) -> str:
        return line(message.subject)

    @admin.display(description="subject")
    def subject_shown(self, message: Message) -> str:
        return line(message.subject, SUBJECT_LENGTH)

    @admin.display(description="from", ordering="from_address")
    def sender(self, message: Message) -> str:
        return line(message.from_name or message.from_address)

    @admin.display(description="from")
    def from_line(self, message: Message) -> str:
        return address(message.from_name, message.from_address) or "-"

    @admin.display(description="to")
    def to_line(self, message: Message) -> str:
        return addresses(message.to)

    @admin.display(description="cc")
    def cc_line(self, message: Message) -> str:
        return addresses(message.cc)

    @admin.display(description="reply to")
    def reply_to_line(self, message: Message) -> str:
        return addresses(message.reply_to)

    @admin.display(description="as it is read")
    def readable(self, message: Message) -> SafeString:
        return text_block(message.readable_body)

    @admin.display(description="whole text")
    def whole(self, message: Message) -> SafeString:
        return text_block(message.text_body)


@admin.register(Attachment)
class AttachmentAdmin(FileColumns, ReadOnlyAdmin):
    """The files of mails. They are saved to disk, never shown: a stranger made them."""

    owner = "message"
    list_display = ("id", "filename_line", "content_type", "file_size", "message", "text_status", "download")
    list_display_links = ("id", "filename_line")
    list_filter = ("text_status", "damaged", "inline")
    list_select_related = ("message",)
    list_defer = ("text", "message__text_body", "message__readable_body", "message__references")
    ordering = ("-id",)
    search_fields = ("filename", "content_type", "sha256")
    fields = (
        "message", "filename_line", "content_type", "file_size", "download", "public_id", "sha256", "content_id",
        "inline", "damaged", "text_status", "extracted",
    )  # fmt: skip
    readonly_fields = fields

    class Media:
        css = {"all": ["protege_threads/threads.css"]}

    @admin.display(description="text taken out of it")
    def extracted(self, attachment: Attachment) -> SafeString:
        return text_block(attachment.text)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.download_view)
        return [path("<int:pk>/download/", view, name="protege_threads_attachment_download"), *super().get_urls()]

    def download_view(self, request: HttpRequest, pk: int) -> HttpResponse | Any:
        """The file. Without the permission, in another tenant and missing are the same."""
        attachment = self.get_queryset(request).filter(pk=pk).first()
        if attachment is None or not self.has_view_permission(request, attachment):
            raise Http404("There is no such attachment, or you may not see it.")
        return attachment_response(attachment)
