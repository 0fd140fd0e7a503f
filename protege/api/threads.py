"""Threads, and the messages of one."""

from typing import Any

import django_filters
from django import forms
from django.db.models import Count, Model, OuterRef, Prefetch, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.generics import RetrieveAPIView
from rest_framework.permissions import IsAuthenticated

from protege.api import shapes
from protege.api.base import SCOPE_PARAMETERS, VisibleList, VisibleRows
from threads.models import EmailThread, Message, Run, ThreadStatus, ThreadTag

ARCHIVED = ("exclude", "include", "only")
LARGEST_ID = 2**63 - 1


class ThreadSerializer(serializers.ModelSerializer[EmailThread]):
    """A conversation; `last_activity` is moved by messages and not by curation."""

    tags = serializers.SerializerMethodField()
    archived = serializers.SerializerMethodField()
    created = serializers.DateTimeField(source="created_at")
    messages = serializers.IntegerField(source="message_count", help_text="How many it has.")
    runs = serializers.IntegerField(source="run_count", help_text="How many it has.")

    class Meta:
        model = EmailThread
        fields = [
            "id", "tenant", "persona", "correspondent", "subject", "title", "description", "tags", "pinned", "archived",
            "archived_at", "paused_at", "status", "reply_mode", "created", "last_activity", "messages", "runs",
            "summary", "summary_updated_at", "revision",
        ]  # fmt: skip
        read_only_fields = fields

    def get_tags(self, thread: EmailThread) -> list[str]:
        return [tag.name for tag in thread.tags.all()]

    def get_archived(self, thread: EmailThread) -> bool:
        return thread.archived_at is not None


def _count(model: type[Model]) -> Coalesce:
    """How many rows of `model` a thread has; counted row by row of the page, not by a join that multiplies."""
    rows: Any = model._default_manager.filter(thread=OuterRef("pk")).order_by().values("thread")
    return Coalesce(Subquery(rows.annotate(count=Count("pk")).values("count")), Value(0))


def described_threads() -> "QuerySet[EmailThread]":
    """Threads with all that their row shows, in a fixed number of queries."""
    return EmailThread.objects.annotate(message_count=_count(Message), run_count=_count(Run)).prefetch_related(
        Prefetch("tags", ThreadTag.objects.order_by("name"))
    )


class _Choice(django_filters.ChoiceFilter):
    """A choice whose error names the legal ones."""

    def __init__(self, legal: tuple[str, ...], **kwargs: Any) -> None:
        message = f"%(value)s is unknown. Use one of: {', '.join(legal)}."
        choices = [(name, name) for name in legal]
        super().__init__(choices=choices, error_messages={"invalid_choice": message}, **kwargs)


class _Id(django_filters.NumberFilter):
    """A whole number; not a choice of rows, which would show what the caller may not see."""

    field_class = forms.IntegerField


class ThreadFilter(django_filters.FilterSet):
    status = _Choice(tuple(ThreadStatus.values), help_text="Where the newest mail stands.")
    archived = _Choice(ARCHIVED, method="keep_archived", help_text="Archived threads; `exclude` by default.")
    persona = _Id(field_name="persona_id", max_value=LARGEST_ID, help_text="Id of the persona.")

    class Meta:
        model = EmailThread
        fields = ["status", "archived", "persona"]

    def __init__(self, data: Any = None, *args: Any, **kwargs: Any) -> None:
        given = {name: value for name, value in (data or {}).items() if value != ""}
        super().__init__({"archived": "exclude", **given}, *args, **kwargs)

    def keep_archived(self, queryset: "QuerySet[EmailThread]", name: str, value: str) -> "QuerySet[EmailThread]":
        if value == "include":
            return queryset
        return queryset.filter(archived_at__isnull=value == "exclude")


@extend_schema_view(
    get=extend_schema(
        summary="List threads",
        description="Pinned ones first, then by last activity.",
        parameters=SCOPE_PARAMETERS,
        responses={200: ThreadSerializer(many=True), **shapes.errors(s400=shapes.BAD_LIST)},
    )
)
class ThreadList(VisibleList):
    permission_classes = [IsAuthenticated]
    queryset = described_threads()
    serializer_class = ThreadSerializer
    filter_backends = [DjangoFilterBackend]
    filterset_class = ThreadFilter
    filters = ("status", "archived", "persona")
    order = ("-pinned", "-last_activity", "-id")


@extend_schema_view(
    get=extend_schema(
        summary="Show a thread",
        parameters=SCOPE_PARAMETERS,
        responses={200: ThreadSerializer, **shapes.errors(s404=shapes.NOT_VISIBLE)},
    )
)
class ThreadDetail(VisibleRows, RetrieveAPIView[EmailThread]):
    permission_classes = [IsAuthenticated]
    queryset = described_threads()
    serializer_class = ThreadSerializer
