"""The page of a draft: what it answers, what has arrived since, its text to edit, and whether it goes out."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.widgets import AdminTextareaWidget, AdminTextInputWidget
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from protege.exceptions import DraftError, StaleDraftError
from protege.identity import author_of
from protege.mail.limits import SUBJECT_LENGTH
from protege.services import drafts
from threads.admin import showing
from threads.admin.acting import ActingAdmin
from threads.admin.transcript import Entry
from threads.models import Direction, Message, MessageStatus

APPROVE = "protege_threads.approve_draft"
DISCARD = "protege_threads.discard_draft"


class DraftForm(forms.Form):
    """`seen_revision` is the thread's revision on the page: whatever has happened since is told before it counts."""

    subject = forms.CharField(
        required=False, max_length=SUBJECT_LENGTH, widget=AdminTextInputWidget(attrs={"class": "vLargeTextField"})
    )
    body = forms.CharField(label="Text", widget=AdminTextareaWidget(attrs={"rows": 16}))
    seen_revision = forms.IntegerField(min_value=0, widget=forms.HiddenInput)

    def clean_body(self) -> str:
        return _lines(self.cleaned_data["body"])

    def changes(self, draft: Message) -> bool:
        """True when a person has put other words in."""
        before = (showing.line(draft.subject, SUBJECT_LENGTH), _lines(draft.text_body))
        return (showing.line(self.cleaned_data["subject"], SUBJECT_LENGTH), self.cleaned_data["body"]) != before


class WaitingFilter(admin.SimpleListFilter):
    """The mails of the persona that wait for a person to do something."""

    title = "waits for a person"
    parameter_name = "waits"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("draft", "Drafts"), ("failed", "Failed to be sent")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() not in ("draft", "failed"):
            return queryset
        return queryset.filter(direction=Direction.OUTBOUND, status=self.value())


class DraftAdmin(ActingAdmin):
    """The pages and buttons of drafts. The services decide; of two who act at once, the second is told."""

    # In one query with the revision: a text must not be shown with the revision of a later one.
    row_related = ("thread", "run", "answers")

    def get_list_display(self, request: HttpRequest) -> Any:
        shown = super().get_list_display(request)
        return [*shown, "draft_link"] if decides(request) else shown

    def get_urls(self) -> list[URLPattern]:
        page = self.admin_site.admin_view(self.draft_view)
        own = [
            path("<int:pk>/draft/", page, name="protege_threads_message_draft"),
            self.post_path("edit", self.edit_view),
            self.post_path("approve", self.approve_view),
            self.post_path("discard", self.discard_view),
        ]
        return [*own, *super().get_urls()]

    def draft_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        draft: Message = self.row_for(request, pk, APPROVE, DISCARD)
        return self._page(request, draft) if draft.status == MessageStatus.DRAFT else self._no_draft(request, pk)

    def edit_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        return self._write(request, pk, approve=False)

    def approve_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        return self._write(request, pk, approve=True)

    def discard_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        draft: Message = self.row_for(request, pk, DISCARD)
        try:
            drafts.discard(pk, author=author_of(request))
        except DraftError:
            return self._no_draft(request, pk)
        self.log_change(request, draft, "Discarded.")
        self.message_user(request, "The draft is discarded. Nothing was sent.", messages.SUCCESS)
        return self.back_to(pk)

    def _write(self, request: HttpRequest, pk: int, *, approve: bool) -> HttpResponse:
        draft: Message = self.row_for(request, pk, APPROVE)
        if draft.status != MessageStatus.DRAFT:
            return self._no_draft(request, pk)
        form = DraftForm(request.POST)
        if not form.is_valid():
            return self._page(request, draft, form, status=400)
        try:
            done = self._store(request, draft, form, approve=approve)
        except StaleDraftError as error:
            return self._page(request, self.row_for(request, pk, APPROVE), form, stale=error, status=409)
        except DraftError:
            return self._no_draft(request, pk)
        self.log_change(request, draft, done)
        if approve:
            self.message_user(request, "The draft is approved, and sent as soon as possible.", messages.SUCCESS)
            return self.back_to(pk)
        self.message_user(request, "The draft is saved. It still waits for approval.", messages.SUCCESS)
        return self._to_draft(pk)

    def _store(self, request: HttpRequest, draft: Message, form: DraftForm, *, approve: bool) -> str:
        """Save what was changed and send it, or neither: the words that a person sees are the words that go out."""
        seen, author = form.cleaned_data["seen_revision"], author_of(request)
        with transaction.atomic():
            edited = not approve or form.changes(draft)
            if edited:
                text, subject = form.cleaned_data["body"], form.cleaned_data["subject"]
                stored = drafts.edit(draft.pk, body=text, subject=subject, author=author, seen_revision=seen)
                seen = stored.thread.revision
            if approve:
                drafts.approve(draft.pk, author=author, seen_revision=seen)
        return " ".join(word for word, was in (("Edited.", edited), ("Approved.", approve)) if was)

    def _page(
        self,
        request: HttpRequest,
        draft: Message,
        form: DraftForm | None = None,
        *,
        stale: StaleDraftError | None = None,
        status: int = 200,
    ) -> HttpResponse:
        # The revision first: what arrives while the page is built is shown, and told once more at the approval.
        revision = stale.current if stale is not None else draft.thread.revision
        is_stale = stale is not None or drafts.is_stale(draft, revision)
        stored = {"subject": draft.subject, "body": draft.text_body}
        typed = {name: form.data.get(name, "") for name in stored} if form is not None else stored
        shown = form if form is not None and stale is None else DraftForm(initial={**typed, "seen_revision": revision})
        may_approve = request.user.has_perm(APPROVE)
        context = {
            **self.admin_site.each_context(request),
            "title": "Draft",
            "opts": self.opts,
            "media": self.media,
            "draft": draft,
            "entry": Entry(message=draft),
            "answers": Entry(message=draft.answers) if draft.answers is not None else None,
            "arrived": self._arrived(request, draft) if is_stale else [],
            "is_stale": is_stale,
            "was_refused": stale is not None,
            "has_newer_answer": draft.last_code == drafts.STALE,
            "form": shown,
            "stored": showing.text_block(draft.text_body) if _lines(typed["body"]) != _lines(draft.text_body) else "",
            "may_approve": may_approve,
            "may_discard": request.user.has_perm(DISCARD),
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "protege_threads/draft.html", context, status=status)

    def _arrived(self, request: HttpRequest, draft: Message) -> list[Entry]:
        rows = self.get_queryset(request).filter(pk__in=drafts.arrived_since(draft)).order_by("sequence")
        return [Entry(message=message) for message in rows]

    def _no_draft(self, request: HttpRequest, pk: int) -> HttpResponse:
        self.message_user(request, "It is no longer a draft: nothing was changed or sent now.", messages.ERROR)
        return self.back_to(pk)

    def _to_draft(self, pk: int) -> HttpResponse:
        return HttpResponseRedirect(reverse("admin:protege_threads_message_draft", args=[pk]))

    def may_decide(self, request: HttpRequest, message: Message) -> bool:
        return message.status == MessageStatus.DRAFT and decides(request)

    @admin.display(description="draft")
    def draft_link(self, message: Message) -> str | SafeString:
        if message.status != MessageStatus.DRAFT:
            return ""
        url = reverse("admin:protege_threads_message_draft", args=[message.pk])
        return format_html('<a href="{}">Read and decide</a>', url)


def decides(request: HttpRequest) -> bool:
    """True for people to whom the page of a draft is open."""
    may = request.user.has_perm
    reads = may("protege_threads.view_message") or may("protege_threads.change_message")
    return reads and (may(APPROVE) or may(DISCARD))


def _lines(text: str) -> str:
    """As it is compared and stored: browsers send line breaks of their own kind."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()
