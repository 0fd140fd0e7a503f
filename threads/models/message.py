"""A mail of a thread, in or out."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Q
from django.utils import timezone

from protege.principals import Principal, Scope
from protege.untrusted import fence
from threads.llm_text import header_block, listed_files

if TYPE_CHECKING:
    from threads.models.attachment import Attachment


class Direction(models.TextChoices):
    INBOUND = "inbound"
    OUTBOUND = "outbound"


class MessageStatus(models.TextChoices):
    RECEIVED = "received"
    IGNORED = "ignored"
    DRAFT = "draft"
    HELD = "held"
    QUEUED = "queued"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"
    DISCARDED = "discarded"


class Origin(models.TextChoices):
    ANSWER = "answer"
    TOOL = "tool"
    PERSON = "person"


class Trust(models.TextChoices):
    OWN_STAFF = "own_staff"
    VERIFIED = "verified"
    UNVERIFIED = "unverified"


LIVE_ANSWER = [
    MessageStatus.DRAFT,
    MessageStatus.HELD,
    MessageStatus.QUEUED,
    MessageStatus.SENDING,
    MessageStatus.SENT,
]
"""The states in which an outbound mail stands for the answer of its inbound one."""

UNSEQUENCED = [MessageStatus.DRAFT, MessageStatus.HELD, MessageStatus.DISCARDED]
"""The states of mails that have no place in the thread, as nobody has been sent them."""

OUT_IN_THE_WORLD = [MessageStatus.QUEUED, MessageStatus.SENDING, MessageStatus.SENT]


class MessageQuerySet(models.QuerySet["Message"]):
    def visible_to(self, principal: Principal, scope: Scope) -> "MessageQuerySet":
        """The messages of the threads that `principal` may see in `scope`.

        A correspondent sees what was sent, not what waits for a person or was thrown away.
        """
        from threads.models.thread import EmailThread

        visible = self.filter(thread__in=EmailThread.objects.visible_to(principal, scope))
        return visible.exclude(status__in=UNSEQUENCED) if scope is Scope.USER else visible


class Message(models.Model):
    """A mail as it was received, or as it goes out. What a model reads of it is `to_llm_text()`."""

    thread = models.ForeignKey("EmailThread", on_delete=models.CASCADE, related_name="messages")
    persona = models.ForeignKey("protege_personas.Persona", on_delete=models.PROTECT, related_name="messages")
    sequence = models.PositiveIntegerField(
        null=True, blank=True, help_text="Place in the thread, in order of receipt; empty for what was never sent."
    )
    direction = models.CharField(max_length=10, choices=Direction.choices)
    status = models.CharField(max_length=10, choices=MessageStatus.choices)
    origin = models.CharField(
        max_length=10, choices=Origin.choices, blank=True, help_text="Outbound: who wrote it; empty for inbound."
    )
    answers = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="answered_with",
        help_text="Outbound: the mail it answers.",
    )
    answered_by = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="covers",
        help_text="Inbound: the answer that covers it.",
    )
    run = models.ForeignKey("Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="outbound")
    message_id = models.CharField(max_length=255, help_text="Bare <...>; ours when the mail had none that is usable.")
    claimed_message_id = models.CharField(max_length=255, blank=True, help_text="The mail's own id when ours differs.")
    provider_message_id = models.CharField(
        max_length=255, blank=True, help_text="Id a sending service put in its place."
    )
    in_reply_to = models.CharField(max_length=255, blank=True)
    references = models.JSONField(default=list, blank=True)
    from_address = models.CharField(max_length=254, blank=True, help_text="Lower case.")
    from_name = models.CharField(max_length=200, blank=True)
    to = models.JSONField(default=list, blank=True, help_text='List of {"name": ..., "address": ...}.')
    cc = models.JSONField(default=list, blank=True)
    reply_to = models.JSONField(default=list, blank=True)
    subject = models.CharField(max_length=998, blank=True)
    text_body = models.TextField(blank=True, help_text="Whole text of the mail.")
    readable_body = models.TextField(blank=True, help_text="What the model reads: without quotes the thread holds.")
    sent_at = models.DateTimeField(null=True, blank=True, help_text="Inbound: the Date header. Outbound: when it left.")
    received_at = models.DateTimeField(default=timezone.now, editable=False)
    trust = models.CharField(max_length=10, choices=Trust.choices, default=Trust.UNVERIFIED)
    attempts = models.PositiveIntegerField(default=0, editable=False)
    next_attempt_at = models.DateTimeField(null=True, blank=True, editable=False)
    lease_expires_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_code = models.CharField(max_length=50, blank=True, help_text="Why it was ignored, or why sending failed.")
    warnings = models.JSONField(default=list, blank=True, help_text="Codes of what was odd about the mail.")
    thread_revision = models.PositiveIntegerField(null=True, blank=True, help_text="Drafts: what the author had read.")
    edited_at = models.DateTimeField(null=True, blank=True, help_text="Drafts: when a person last changed it.")

    objects = MessageQuerySet.as_manager()

    unsaved_files: "Sequence[Attachment]" = ()
    """The files of a mail that is only being looked at; a stored mail's are in `attachments`."""

    class Meta:
        ordering = ["thread", "sequence", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["persona", "message_id"],
                name="message_id_unique",
                violation_error_message="This persona has a message with that Message-ID already.",
            ),
            models.UniqueConstraint(
                fields=["thread", "sequence"],
                name="message_sequence_unique",
                violation_error_message="The thread has a message with that sequence number already.",
            ),
            models.UniqueConstraint(
                fields=["answers"],
                condition=Q(origin=Origin.ANSWER, status__in=LIVE_ANSWER),
                name="message_one_live_answer",
                violation_error_message="The mail has an answer already.",
            ),
            models.UniqueConstraint(
                fields=["run"],
                condition=Q(origin=Origin.ANSWER, status__in=LIVE_ANSWER),
                name="message_one_answer_a_run",
                violation_error_message="The run has written its answer already.",
            ),
            models.CheckConstraint(
                condition=Q(status__in=UNSEQUENCED, sequence__isnull=True)
                | (~Q(status__in=UNSEQUENCED) & Q(sequence__isnull=False)),
                name="message_sequence_when_sent",
                violation_error_message="A mail has a sequence number exactly when it was received or sent.",
            ),
            models.CheckConstraint(
                condition=Q(direction=Direction.INBOUND, origin="") | Q(direction=Direction.OUTBOUND) & ~Q(origin=""),
                name="message_origin_when_outbound",
                violation_error_message="An outbound mail names its origin, an inbound one has none.",
            ),
        ]
        indexes = [
            models.Index(fields=["next_attempt_at"], name="message_due", condition=Q(status=MessageStatus.QUEUED)),
            models.Index(fields=["lease_expires_at"], name="message_leased", condition=Q(status=MessageStatus.SENDING)),
            models.Index(fields=["persona", "direction", "received_at"], name="message_of_persona"),
        ]
        permissions = [
            ("approve_draft", "Can approve and edit drafts"),
            ("discard_draft", "Can discard drafts"),
            ("resend_message", "Can send a failed message again"),
        ]

    def __str__(self) -> str:
        return f"message {self.pk}"

    @property
    def is_inbound(self) -> bool:
        return self.direction == Direction.INBOUND

    @property
    def recipient_addresses(self) -> set[str]:
        """Who is named in To and Cc, in lower case."""
        return {str(entry["address"]).lower() for entry in (*self.to, *self.cc)}

    def files(self) -> "list[Attachment]":
        """Its attachments, whether it is stored or not."""
        return list(self.attachments.all()) if self.pk else list(self.unsaved_files)

    def to_llm_text(self, attachments: "Sequence[Attachment] | None" = None) -> str:
        """The mail as a model reads it: a header block, a blank line, the readable body, a note of the files.

        The body of an inbound mail stands in the fence for untrusted text. Pictures inside the HTML have their
        marker in the body and are no files to list. `attachments` saves the query when the caller has them.
        """
        files = [item for item in (self.files() if attachments is None else attachments) if not item.inline]
        body = self.readable_body.strip()
        if body and self.is_inbound:
            body = fence(body, label="body of the mail")
        return "\n\n".join(filter(None, [header_block(self), body, listed_files(files)]))

    def says_nothing(self, attachments: "Sequence[Attachment]") -> bool:
        """True when a model could learn nothing from it: no text, no file and, for an inbound mail, no subject."""
        subject = self.subject.strip() if self.is_inbound else ""
        return not (subject or self.readable_body.strip() or attachments)
