"""The steps of a persona's chains, and every version that they have had."""

from typing import Any

from django.conf import settings
from django.db import models
from django.utils import timezone


class Trigger(models.TextChoices):
    """What starts a run; a persona has one chain for each."""

    MESSAGE = "message", "a mail is answered"
    RESPONSIBILITY = "responsibility", "a responsibility is due"


class OnError(models.TextChoices):
    FAIL = "fail", "fail: the run stops"
    SKIP = "skip", "skip: the run goes on without this step"


class ChainStep(models.Model):
    """One resolver of a chain with its options. `protege.services.chains.save` is the only writer."""

    persona = models.ForeignKey("protege_personas.Persona", on_delete=models.CASCADE, related_name="chain_steps")
    trigger = models.CharField(max_length=20, choices=Trigger.choices, help_text="Which of the persona's two chains.")
    position = models.PositiveIntegerField(help_text="Place in the chain: the order in which the model reads.")
    resolver = models.CharField(max_length=100, help_text="Name under which code registered the resolver.")
    options = models.JSONField(default=dict, blank=True, help_text="Checked by the resolver's own form.")
    enabled = models.BooleanField(default=True, help_text="Off: the step stays here and says nothing.")
    on_error = models.CharField(
        max_length=4, choices=OnError.choices, default=OnError.FAIL, help_text="What a failure of this step does."
    )

    class Meta:
        ordering = ["persona", "trigger", "position"]
        constraints = [
            models.UniqueConstraint(
                fields=["persona", "trigger", "position"],
                name="chainstep_position_unique",
                violation_error_message="The chain has a step at that position already.",
            )
        ]
        permissions = [
            ("preview_chain", "Can preview what a model would be sent"),
            ("revert_chain", "Can bring an earlier version of a chain back"),
            ("export_chain", "Can export and import chains"),
        ]

    def __str__(self) -> str:
        return f"step {self.pk}"

    def to_dict(self) -> dict[str, Any]:
        """The step as it stands in revisions, in the API and in an export."""
        return {
            "resolver": self.resolver,
            "options": self.options,
            "enabled": self.enabled,
            "on_error": self.on_error,
        }


class ChainRevision(models.Model):
    """A chain as it was saved once: the whole list of steps, never changed afterwards."""

    persona = models.ForeignKey("protege_personas.Persona", on_delete=models.CASCADE, related_name="chain_revisions")
    trigger = models.CharField(max_length=20, choices=Trigger.choices)
    number = models.PositiveIntegerField(help_text="1 for the first; two saves from one page clash on it.")
    steps = models.JSONField(default=list, help_text="The steps in order, as `ChainStep.to_dict` gives them.")
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    author_label = models.CharField(max_length=150, blank=True, help_text="Who saved it, for when they are gone.")
    note = models.CharField(max_length=300, blank=True, help_text="Why it was changed.")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["persona", "trigger", "-number"]
        constraints = [
            models.UniqueConstraint(
                fields=["persona", "trigger", "number"],
                name="chainrevision_number_unique",
                violation_error_message="The chain was saved by somebody else in the meantime.",
            )
        ]

    def __str__(self) -> str:
        return f"chain revision {self.number} of persona {self.persona_id}"
