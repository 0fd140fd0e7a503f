"""One piece of model work: for a mail, for a responsibility, for a recap."""

import uuid

from django.db import models
from django.db.models import Q
from django.utils import timezone

from protege.principals import Principal, Scope


class RunKind(models.TextChoices):
    REPLY = "reply"
    RESPONSIBILITY = "responsibility"
    RECAP = "recap"


class RunStatus(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    REFUSED = "refused"
    SUPERSEDED = "superseded"
    CANCELLED = "cancelled"


UNFINISHED = [RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.WAITING]


class RunQuerySet(models.QuerySet["Run"]):
    def visible_to(self, principal: Principal, scope: Scope) -> "RunQuerySet":
        """The runs of visible threads, and of visible personas those that have no thread."""
        from personas.models import Persona
        from threads.models.thread import EmailThread

        in_threads = Q(thread__in=EmailThread.objects.visible_to(principal, scope))
        if scope is Scope.USER:
            return self.filter(in_threads)
        without = Q(thread__isnull=True, persona__in=Persona.objects.visible_to(principal, scope))
        return self.filter(in_threads | without)


class Run(models.Model):
    """The row is the queue: a task is only a wake-up, and `attempt` is the fencing token of whoever works on it."""

    persona = models.ForeignKey("protege_personas.Persona", on_delete=models.PROTECT, related_name="runs")
    thread = models.ForeignKey("EmailThread", null=True, blank=True, on_delete=models.CASCADE, related_name="runs")
    message = models.ForeignKey(
        "Message",
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="runs",
        help_text="The inbound mail it answers.",
    )
    responsibility = models.ForeignKey(
        "protege_personas.Responsibility", null=True, blank=True, on_delete=models.SET_NULL, related_name="runs"
    )
    responsibility_label = models.CharField(max_length=100, blank=True, help_text="Its slug, for when it is gone.")
    kind = models.CharField(max_length=15, choices=RunKind.choices)
    status = models.CharField(max_length=10, choices=RunStatus.choices, default=RunStatus.QUEUED)
    code = models.CharField(max_length=50, blank=True, help_text="Short reason for its state.")
    detail = models.TextField(blank=True, help_text="The reason in words; never text of a mail or prompt.")
    correlation_id = models.UUIDField(default=uuid.uuid4, editable=False, db_index=True)
    model = models.CharField(max_length=200, blank=True)
    now = models.DateTimeField(null=True, blank=True, help_text="The run's one clock.")
    request = models.JSONField(default=dict, blank=True, help_text="Skeleton of the first request.")
    notices = models.JSONField(default=list, blank=True, help_text="What was left out, skipped or repaired.")
    wire_sha256 = models.CharField(max_length=64, blank=True, help_text="Of the first request's canonical JSON.")
    chain_revision = models.PositiveIntegerField(null=True, blank=True)
    thread_revision = models.PositiveIntegerField(null=True, blank=True)
    token_rate = models.FloatField(null=True, blank=True, help_text="Characters a token that it counted with.")
    input_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    cached_tokens = models.PositiveIntegerField(default=0)
    cost = models.DecimalField(max_digits=14, decimal_places=6, null=True, blank=True, help_text="Empty: unpriced.")
    currency = models.CharField(max_length=3, blank=True)
    attempt = models.PositiveIntegerField(default=0, editable=False)
    lease_expires_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = RunQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["thread"],
                condition=Q(kind=RunKind.REPLY, status=RunStatus.RUNNING),
                name="run_one_running_a_thread",
                violation_error_message="Another run works on this thread.",
            ),
            models.UniqueConstraint(
                fields=["message"],
                condition=Q(kind=RunKind.REPLY, status__in=UNFINISHED),
                name="run_one_unfinished_a_message",
                violation_error_message="A run for this mail has not finished yet.",
            ),
        ]
        indexes = [
            models.Index(fields=["created_at"], name="run_queued", condition=Q(status=RunStatus.QUEUED)),
            models.Index(fields=["lease_expires_at"], name="run_leased", condition=Q(status=RunStatus.RUNNING)),
        ]
        permissions = [("cancel_run", "Can cancel runs"), ("rerun_run", "Can run again what failed")]

    def __str__(self) -> str:
        return f"run {self.pk}"

    @property
    def is_finished(self) -> bool:
        return self.status not in UNFINISHED
