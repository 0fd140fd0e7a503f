"""What came in by the doors, before and beside the threads."""

import zlib

from django.db import models
from django.db.models import Q
from django.utils import timezone


class RawMail(models.Model):
    """The bytes as they came, in a table of their own, so that no list reads them."""

    sha256 = models.CharField(max_length=64, db_index=True)
    media_type = models.CharField(max_length=100, default="message/rfc822")
    content = models.BinaryField(help_text="Compressed by zlib.")
    created_at = models.DateTimeField(default=timezone.now, editable=False, db_index=True)

    def __str__(self) -> str:
        return f"raw mail {self.pk}"

    @staticmethod
    def pack(raw: bytes) -> bytes:
        return zlib.compress(raw)

    def unpack(self) -> bytes:
        """The bytes as they were received."""
        return zlib.decompress(bytes(self.content))


class InboundStatus(models.TextChoices):
    RECEIVED = "received"
    PROCESSED = "processed"
    IGNORED = "ignored"
    DUPLICATE = "duplicate"
    QUARANTINED = "quarantined"
    FAILED = "failed"
    UNROUTABLE = "unroutable"


class InboundMail(models.Model):
    """One delivery to one persona, and what became of it; accepted once this row is committed."""

    raw = models.ForeignKey(RawMail, null=True, blank=True, on_delete=models.SET_NULL, related_name="deliveries")
    persona = models.ForeignKey(
        "protege_personas.Persona",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="inbound_mails",
        help_text="Empty until it is routed.",
    )
    tenant = models.CharField(
        max_length=100, blank=True, help_text="The tenant its door is bound to, or its persona's."
    )
    recipients = models.JSONField(default=list, blank=True, help_text="Envelope recipients.")
    sender = models.CharField(
        max_length=254, null=True, blank=True, help_text="Envelope sender; empty text: null path."
    )
    source = models.CharField(max_length=50, blank=True, help_text="The door it came by.")
    status = models.CharField(max_length=12, choices=InboundStatus.choices, default=InboundStatus.RECEIVED)
    reason = models.CharField(max_length=50, blank=True, help_text="Code of why it is not processed.")
    waived = models.JSONField(
        default=list, blank=True, help_text="Reasons that a person has set aside by releasing it."
    )
    alerted_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="When the operators were told of its reason."
    )
    attempts = models.PositiveIntegerField(default=0)
    message = models.ForeignKey("Message", null=True, blank=True, on_delete=models.SET_NULL, related_name="deliveries")
    reached_at = models.DateTimeField(null=True, blank=True, help_text="When the mail server took it, where known.")
    received_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["-received_at", "-id"]
        indexes = [
            models.Index(fields=["received_at"], name="inbound_waiting", condition=Q(status=InboundStatus.RECEIVED)),
            models.Index(fields=["status", "-received_at", "-id"], name="inbound_by_status"),
            models.Index(
                fields=["reason", "alerted_at"], name="inbound_alerted", condition=Q(alerted_at__isnull=False)
            ),
        ]
        permissions = [
            ("view_raw_mail", "Can download the raw source of mails"),
            ("release_inboundmail", "Can release and re-run inbound mails"),
        ]

    def __str__(self) -> str:
        return f"inbound mail {self.pk}"


class ImapCursor(models.Model):
    """How far a mailbox has been fetched; the `\\Seen` flag is nobody's memory."""

    account = models.CharField(max_length=255, help_text="Host, user and folder.")
    uid_validity = models.BigIntegerField()
    last_uid = models.BigIntegerField(default=0)
    fetched_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["account"], name="imapcursor_unique")]

    def __str__(self) -> str:
        return f"cursor {self.pk}"
