"""What a run was sent, kept once, and how many characters make a token."""

from django.db import models
from django.utils import timezone


class PromptText(models.Model):
    """A text of a request, stored once under its SHA-256 and pointed at by the runs' skeletons."""

    sha256 = models.CharField(max_length=64, primary_key=True)
    text = models.TextField()
    created_at = models.DateTimeField(default=timezone.now, editable=False, db_index=True)

    def __str__(self) -> str:
        return f"prompt text {self.pk[:12]}"


class TokenRate(models.Model):
    """Characters of Latin text a token, as measured for one model."""

    model = models.CharField(max_length=200, primary_key=True)
    rate = models.FloatField(help_text="Rounded to 0.1.")
    readings = models.PositiveIntegerField(default=0)
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"token rate {self.rate}"
