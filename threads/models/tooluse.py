"""One call of a tool, written down as it happens."""

from typing import Any

from django.conf import settings
from django.db import models

from protege.messages import ToolCall
from protege.principals import Principal, Scope
from protege.toolkit import canonical_json
from protege.untrusted import cut

REPLAY_RESULT_LIMIT = 4_000
"""Characters of a result that history shows."""


class ToolUseStatus(models.TextChoices):
    REQUESTED = "requested"
    WAITING = "waiting"
    STARTED = "started"
    OK = "ok"
    ERROR = "error"
    REFUSED = "refused"
    INTERRUPTED = "interrupted"


class ToolUseQuerySet(models.QuerySet["ToolUse"]):
    def visible_to(self, principal: Principal, scope: Scope) -> "ToolUseQuerySet":
        """The calls of the runs that `principal` may see in `scope`; none for a correspondent.

        A call may hold a mail that nobody has approved, and what a tool said to the model alone.
        """
        from threads.models.run import Run

        visible = self.filter(run__in=Run.objects.visible_to(principal, scope))
        return visible.none() if scope is Scope.USER else visible


class ToolUse(models.Model):
    """A call and its result. `(run, turn_index)` is a round: the calls that one answer of the model made."""

    run = models.ForeignKey("Run", on_delete=models.CASCADE, related_name="tool_uses")
    message = models.ForeignKey(
        "Message",
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="tool_uses",
        help_text="The inbound mail whose run called.",
    )
    turn_index = models.PositiveIntegerField()
    position = models.PositiveIntegerField()
    tool_call_id = models.CharField(max_length=255, help_text="As the provider gave it; not unique.")
    name = models.CharField(max_length=255)
    input = models.JSONField(default=dict, help_text="The arguments, parsed.")
    raw_input = models.TextField(blank=True, help_text="The arguments as they came, when they could not be parsed.")
    result = models.TextField(blank=True, help_text="What the model was given, as JSON.")
    status = models.CharField(max_length=12, choices=ToolUseStatus.choices, default=ToolUseStatus.REQUESTED)
    expires_at = models.DateTimeField(null=True, blank=True, help_text="Until when a person may decide it.")
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    decided_by_label = models.CharField(max_length=150, blank=True, help_text="Who decided, for when they are gone.")
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = ToolUseQuerySet.as_manager()

    class Meta:
        ordering = ["run", "turn_index", "position"]
        constraints = [
            models.UniqueConstraint(fields=["run", "turn_index", "position"], name="tooluse_position_unique")
        ]
        permissions = [("decide_tool_call", "Can approve, edit and refuse tool calls")]

    def __str__(self) -> str:
        return f"tool use {self.pk}"

    def to_tool_call(self) -> ToolCall:
        """The call as the model made it. Arguments that were no JSON object stay as text beside valid JSON."""
        arguments: Any = {"invalid_arguments": self.raw_input} if self.raw_input else self.input
        return ToolCall(id=self.tool_call_id, name=self.name, input=arguments)

    def replay_result(self, limit: int = REPLAY_RESULT_LIMIT) -> str:
        """The result as history shows it: at most `limit` characters and a marker, and never empty."""
        if not self.result:
            text = "The call was interrupted before it gave a result. It may or may not have done its work."
            return canonical_json({"error": {"code": "interrupted", "message": text, "retry": False}})
        if len(self.result) <= limit:
            return self.result
        return f"{cut(self.result, limit)}\n[cut: {len(self.result)} characters in all]"
