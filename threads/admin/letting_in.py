"""What a person lets in: quarantined mail is released, failed and unroutable mail is processed again."""

from collections.abc import Callable, Iterable

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from protege.exceptions import MailError
from protege.services import inbox
from threads.admin.acting import ActingAdmin
from threads.models import InboundMail, InboundStatus

RELEASE = "protege_threads.release_inboundmail"

STUCK = (InboundStatus.QUARANTINED, InboundStatus.FAILED, InboundStatus.UNROUTABLE)


class LettingInAdmin(ActingAdmin):
    """The actions of the list of deliveries, each told by what became of which mail."""

    def has_release_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(RELEASE) and self.has_view_permission(request)

    @admin.action(description="Release selected quarantined mails", permissions=["release"])
    def release(self, request: HttpRequest, queryset: QuerySet[InboundMail]) -> None:
        self._each(request, queryset, lambda pk: [inbox.release(pk)], "Released.")

    @admin.action(description="Process selected failed mails again", permissions=["release"])
    def rerun(self, request: HttpRequest, queryset: QuerySet[InboundMail]) -> None:
        self._each(request, queryset, inbox.rerun, "Processed again.")

    def _each(
        self,
        request: HttpRequest,
        queryset: QuerySet[InboundMail],
        act: Callable[[int], Iterable[InboundMail]],
        done: str,
    ) -> None:
        """In the order in which they came, so that an answer comes after what it answers."""
        became: dict[tuple[str, str], list[str]] = {}
        for inbound in queryset.order_by("received_at", "pk"):
            try:
                rows = list(act(inbound.pk))
            except MailError as error:
                self.message_user(request, str(error), messages.ERROR)
                continue
            self.log_change(request, inbound, done)
            for row in rows:
                became.setdefault((row.status, row.reason), []).append(_named(row))
        for (status, reason), names in became.items():
            said = f"{InboundStatus(status).label}{f' ({reason})' if reason else ''}: {', '.join(names)}."
            self.message_user(request, said, messages.WARNING if status in STUCK else messages.SUCCESS)


def _named(row: InboundMail) -> str:
    return f"{row} as message {row.message_id}" if row.message_id is not None else str(row)
