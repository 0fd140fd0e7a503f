"""A person steps in: a thread is paused and released, a mail that failed is sent once more."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern

from protege.exceptions import MailError
from protege.identity import author_of
from protege.services import delivery, pausing
from threads.admin.acting import ActingAdmin
from threads.models import EmailThread, Message, MessageStatus

PAUSE = "protege_threads.pause_emailthread"
RESEND = "protege_threads.resend_message"


class PausedFilter(admin.SimpleListFilter):
    title = "paused"
    parameter_name = "paused"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("no", "No"), ("yes", "Yes")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(paused_at__isnull=self.value() == "no") if self.value() in ("no", "yes") else queryset


class PausingAdmin(ActingAdmin):
    """The buttons of a thread. Each is one change of the row: of two who press it, the second is told."""

    def get_urls(self) -> list[URLPattern]:
        own = [self.post_path("pause", self.pause_view), self.post_path("release", self.release_view)]
        return [*own, *super().get_urls()]

    def pause_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        thread: EmailThread = self.row_for(request, pk, PAUSE)
        if pausing.pause(thread, author=author_of(request)):
            self.log_change(request, thread, "Paused.")
            self.message_user(request, "The thread is paused: mail is kept and not answered.", messages.SUCCESS)
        else:
            self.message_user(request, "The thread was paused already.", messages.WARNING)
        return self.back_to(pk)

    def release_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        thread: EmailThread = self.row_for(request, pk, PAUSE)
        was_paused = thread.paused_at is not None
        run = pausing.release(thread, author=author_of(request))
        if run is not None:
            said, level = f"The thread is released: run {run.pk} answers its newest mail.", messages.SUCCESS
        elif was_paused:
            said, level = "The thread is released. No mail in it waits for an answer.", messages.SUCCESS
        else:
            said, level = "The thread was not paused.", messages.WARNING
        if was_paused:
            self.log_change(request, thread, "Released.")
        self.message_user(request, said, level)
        return self.back_to(pk)


class ResendingAdmin(ActingAdmin):
    """ "Send again" for mails that failed, on their page and in the list."""

    def has_resend_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(RESEND) and self.has_view_permission(request)

    def get_urls(self) -> list[URLPattern]:
        return [self.post_path("resend", self.resend_view), *super().get_urls()]

    def may_resend(self, request: HttpRequest, message: Message) -> bool:
        return message.status == MessageStatus.FAILED and self.has_resend_permission(request)

    def resend_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        message: Message = self.row_for(request, pk, RESEND)
        if refusal := self._resend(request, message):
            self.message_user(request, refusal, messages.ERROR)
        else:
            self.message_user(request, "The mail is sent again, under its own Message-ID.", messages.SUCCESS)
        return self.back_to(pk)

    @admin.action(description="Send selected messages again", permissions=["resend"])
    def resend(self, request: HttpRequest, queryset: QuerySet[Message]) -> None:
        refusals = {message.pk: self._resend(request, message) for message in queryset.order_by("pk")}
        again = [str(pk) for pk, refusal in refusals.items() if not refusal]
        if again:
            self.message_user(request, f"Sent again: messages {', '.join(again)}.", messages.SUCCESS)
        for pk, refusal in refusals.items():
            if refusal:
                self.message_user(request, f"Message {pk}: {refusal}", messages.ERROR)

    def _resend(self, request: HttpRequest, message: Message) -> str:
        """Queue it; the words of the refusal, or nothing."""
        try:
            delivery.resend(message.pk)
        except MailError as error:
            return str(error)
        self.log_change(request, message, "Sent again.")
        return ""
