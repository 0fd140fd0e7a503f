"""Runs: what the model was asked, what it called, and how it ended."""

from django.db.models import Prefetch, QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.generics import RetrieveAPIView
from rest_framework.permissions import IsAuthenticated

from protege.api import shapes
from protege.api.base import SCOPE_PARAMETERS, VisibleRows
from protege.api.principals import asking
from threads.models import Run, ToolUse


class ToolUseSerializer(serializers.ModelSerializer[ToolUse]):
    """One call of a tool; calls that share `turn_index` were made by one answer of the model."""

    input = shapes.AnyJSONField(help_text="The arguments, parsed.")

    class Meta:
        model = ToolUse
        fields = [
            "id", "turn_index", "position", "tool_call_id", "name", "input", "raw_input", "result", "status",
            "started_at", "finished_at",
        ]  # fmt: skip
        read_only_fields = fields


class RunSerializer(serializers.ModelSerializer[Run]):
    """One piece of model work, with its calls in order."""

    notices = shapes.NoticesField()
    tool_uses = ToolUseSerializer(many=True)

    class Meta:
        model = Run
        fields = [
            "id", "persona", "thread", "message", "responsibility", "responsibility_label", "kind", "status", "code",
            "detail", "model", "now", "chain_revision", "thread_revision", "wire_sha256", "notices", "input_tokens",
            "output_tokens", "cached_tokens", "cost", "currency", "created_at", "started_at", "finished_at",
            "tool_uses",
        ]  # fmt: skip
        read_only_fields = fields


@extend_schema_view(
    get=extend_schema(
        summary="Show a run",
        parameters=SCOPE_PARAMETERS,
        responses={200: RunSerializer, **shapes.errors(s404=shapes.NOT_VISIBLE)},
    )
)
class RunDetail(VisibleRows, RetrieveAPIView[Run]):
    permission_classes = [IsAuthenticated]
    queryset = Run.objects.defer("request")
    serializer_class = RunSerializer

    def get_queryset(self) -> QuerySet[Run]:
        calls = ToolUse.objects.visible_to(*asking(self.request)).order_by("turn_index", "position")
        return super().get_queryset().prefetch_related(Prefetch("tool_uses", calls))
