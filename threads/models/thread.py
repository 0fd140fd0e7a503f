"""A conversation, who takes part in it, and what people have pinned to it."""

from typing import Any

from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from personas.models import ReplyMode
from protege.principals import Principal, Scope


class ThreadStatus(models.TextChoices):
    WAITING = "waiting"
    RUNNING = "running"
    DRAFTED = "drafted"
    ANSWERED = "answered"
    FAILED = "failed"
    IGNORED = "ignored"


class EmailThreadQuerySet(models.QuerySet["EmailThread"]):
    def visible_to(self, principal: Principal, scope: Scope) -> "EmailThreadQuerySet":
        """The threads that `principal` may see in `scope`.

        The one place that decides visibility: every page, view, tool and search goes through it, inside the SQL
        WHERE. An identity that the scope needs and the principal lacks raises `ScopeError`; it never means "all".
        """
        principal.require(scope)
        if scope is Scope.GLOBAL:
            return self
        owned = self.filter(tenant=principal.tenant)
        if scope is Scope.SELF:
            return owned.filter(persona_id=principal.persona)
        if scope is Scope.USER:
            return owned.filter(correspondent=principal.correspondent)
        return owned

    def take_sequence(self, thread_id: int) -> int:
        """The next sequence number of a thread; call it first in the transaction that writes the message.

        The UPDATE locks the row until that transaction ends, so that numbers follow the order of commits; it counts
        the message in `revision` too.
        """
        self.filter(pk=thread_id).update(
            last_sequence=F("last_sequence") + 1, revision=F("revision") + 1, last_activity=timezone.now()
        )
        return self.values_list("last_sequence", flat=True).get(pk=thread_id)

    def touch(self, thread_id: int) -> None:
        """Count a change of the thread's messages that gives out no sequence number."""
        self.filter(pk=thread_id).update(revision=F("revision") + 1, last_activity=timezone.now())


class EmailThread(models.Model):
    """One conversation of one persona; never shared between personas or tenants."""

    persona = models.ForeignKey("protege_personas.Persona", on_delete=models.PROTECT, related_name="threads")
    tenant = models.CharField(max_length=100, editable=False, help_text="The persona's; copied so that indexes use it.")
    correspondent = models.CharField(max_length=254, help_text="Who the thread is with: a lower-case address.")
    subject = models.CharField(max_length=998, blank=True, help_text="Subject of the first mail.")
    title = models.CharField(max_length=200, blank=True, help_text="A name given by people; empty: the subject.")
    description = models.TextField(blank=True)
    status = models.CharField(max_length=10, choices=ThreadStatus.choices, default=ThreadStatus.WAITING)
    reply_mode = models.CharField(
        max_length=10,
        choices=ReplyMode.choices,
        blank=True,
        help_text="Overrides the persona's; empty: as the persona.",
    )
    pinned = models.BooleanField(default=False)
    archived_at = models.DateTimeField(null=True, blank=True)
    paused_at = models.DateTimeField(null=True, blank=True, help_text="Since when nothing is answered in it.")
    summary = models.TextField(blank=True)
    summary_updated_at = models.DateTimeField(null=True, blank=True)
    summary_through = models.ForeignKey(
        "Message", null=True, blank=True, on_delete=models.SET_NULL, related_name="+", help_text="Last message covered."
    )
    opened_from = models.ForeignKey(
        "Message",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="The message whose run opened this thread.",
    )
    counted_with = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        editable=False,
        help_text="The thread that its first mail named without belonging to it: answers in both count together.",
    )
    last_sequence = models.PositiveIntegerField(default=0, editable=False, help_text="Last number given to a message.")
    revision = models.PositiveIntegerField(default=0, editable=False, help_text="Counts every message written.")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_activity = models.DateTimeField(default=timezone.now, editable=False)

    objects = EmailThreadQuerySet.as_manager()

    class Meta:
        verbose_name = "thread"
        ordering = ["-pinned", "-last_activity", "-id"]
        indexes = [
            models.Index(fields=["tenant", "-pinned", "-last_activity", "-id"], name="thread_of_tenant"),
            models.Index(fields=["tenant", "persona", "-pinned", "-last_activity", "-id"], name="thread_of_persona"),
            models.Index(
                fields=["tenant", "correspondent", "-pinned", "-last_activity", "-id"], name="thread_of_correspondent"
            ),
        ]
        permissions = [
            ("curate_emailthread", "Can rename, annotate, pin and archive threads"),
            ("recap_emailthread", "Can have threads summarised, which costs money"),
            ("pause_emailthread", "Can pause and release threads"),
        ]

    def __str__(self) -> str:
        return f"thread {self.pk}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self.tenant:
            self.tenant = self.persona.tenant
        self.correspondent = self.correspondent.lower()
        super().save(*args, **kwargs)

    @property
    def effective_reply_mode(self) -> str:
        """The thread's own reply mode, else the persona's."""
        return self.reply_mode or self.persona.reply_mode


class Participant(models.Model):
    """Somebody who wrote into the thread, or whom the persona wrote to in it. A name in Cc alone is none."""

    thread = models.ForeignKey(EmailThread, on_delete=models.CASCADE, related_name="participants")
    address = models.CharField(max_length=254, help_text="Lower case.")
    name = models.CharField(max_length=200, blank=True)
    failing_since = models.DateTimeField(null=True, blank=True, help_text="Since when mail to it comes back.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["thread", "address"], name="participant_unique"),
            models.CheckConstraint(condition=~Q(address=""), name="participant_has_address"),
        ]

    def __str__(self) -> str:
        return f"participant {self.pk}"


class ThreadTag(models.Model):
    """One tag of one thread; a row each, so that membership is exact whatever characters it holds."""

    thread = models.ForeignKey(EmailThread, on_delete=models.CASCADE, related_name="tags")
    name = models.CharField(max_length=64)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["thread", "name"], name="threadtag_unique")]
        indexes = [models.Index(fields=["name", "thread"], name="threadtag_by_name")]

    def __str__(self) -> str:
        return f"tag {self.pk}"
