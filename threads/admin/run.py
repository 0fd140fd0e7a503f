"""Runs and tool calls: what was asked of a model, what it did, and what it cost."""

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from personas.tenant_admin import ReadOnlyAdmin, ReadOnlyInline
from threads.admin.showing import cost, json_block, line, notice_list, tokens
from threads.models import Run, ToolUse


class CallColumns:
    """How a tool call is shown, in whatever list."""

    @admin.display(description="tool", ordering="name")
    def tool(self, use: ToolUse) -> str:
        return line(use.name)

    @admin.display(description="arguments")
    def arguments(self, use: ToolUse) -> SafeString:
        return json_block(use.raw_input or use.input)


class ToolUseInline(CallColumns, ReadOnlyInline):
    model = ToolUse
    fields = ("turn_index", "position", "tool", "status", "arguments", "answer")
    readonly_fields = fields
    ordering = ("turn_index", "position")

    @admin.display(description="result")
    def answer(self, use: ToolUse) -> SafeString:
        return json_block(use.replay_result())


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    inlines = (ToolUseInline,)
    list_display = (
        "id", "status", "code", "kind", "persona", "thread_link", "model", "tokens", "cost_shown", "created_at",
    )  # fmt: skip
    list_filter = ("status", "kind", "persona", "created_at")
    list_select_related = ("persona", "thread")
    list_defer = (
        "request", "notices", "detail", "persona__instructions", "persona__signature", "thread__summary",
        "thread__description",
    )  # fmt: skip
    search_fields = ("code", "model", "correlation_id", "responsibility_label")
    fieldsets = (
        (None, {"fields": ("persona", "thread", "message", "duty", "kind", "status", "code", "detail")}),
        ("What it took", {"fields": ("model", "tokens", "cost_shown", "created_at", "started_at", "finished_at")}),
        ("Notices", {"fields": ("notices_shown",)}),
        (
            "Receipt",
            {
                "fields": (
                    "correlation_id", "now", "chain_revision", "thread_revision", "token_rate", "wire_sha256",
                    "attempt", "lease_expires_at", "request_shown",
                ),
                "classes": ("collapse",),
            },
        ),
    )  # fmt: skip
    readonly_fields = ("tokens", "cost_shown", "notices_shown", "request_shown", "duty")

    class Media:
        css = {"all": ["protege_threads/threads.css"]}

    @admin.display(description="thread", ordering="thread")
    def thread_link(self, run: Run) -> str | SafeString:
        if run.thread is None:
            return "-"
        url = reverse("admin:protege_threads_emailthread_change", args=[run.thread_id])
        return format_html('<a href="{}">{}</a>', url, line(run.thread.title or run.thread.subject, 60))

    @admin.display(description="tokens", ordering="input_tokens")
    def tokens(self, run: Run) -> str:
        return tokens(run)

    @admin.display(description="cost", ordering="cost")
    def cost_shown(self, run: Run) -> str:
        return cost(run)

    @admin.display(description="notices")
    def notices_shown(self, run: Run) -> SafeString:
        return notice_list(run.notices)

    @admin.display(description="responsibility")
    def duty(self, run: Run) -> str:
        # The label stays when the responsibility is deleted.
        return run.responsibility_label or (line(run.responsibility.slug) if run.responsibility else "-")

    @admin.display(description="first request")
    def request_shown(self, run: Run) -> SafeString:
        return json_block(run.request)


@admin.register(ToolUse)
class ToolUseAdmin(CallColumns, ReadOnlyAdmin):
    owner = "run"
    list_display = ("id", "tool", "status", "run", "message", "turn_index", "position", "started_at")
    list_display_links = ("id", "tool")
    list_filter = ("status",)
    list_select_related = ("run", "message")
    list_defer = (
        "input", "raw_input", "result", "run__request", "run__notices", "message__text_body", "message__readable_body",
    )  # fmt: skip
    ordering = ("-id",)
    search_fields = ("name", "tool_call_id")
    fields = (
        "run", "message", "turn_index", "position", "tool_call_id", "tool", "status", "arguments", "answer",
        "expires_at", "decided", "started_at", "finished_at",
    )  # fmt: skip
    readonly_fields = fields

    class Media:
        css = {"all": ["protege_threads/threads.css"]}

    @admin.display(description="result")
    def answer(self, use: ToolUse) -> SafeString:
        return json_block(use.result)

    @admin.display(description="decided by")
    def decided(self, use: ToolUse) -> str:
        # The label stays when the account is deleted.
        return use.decided_by_label or (str(use.decided_by) if use.decided_by else "-")
