"""Messages as text, with what is known about their files; never the raw source, HTML or bytes."""

from typing import Any

from django.db.models import F, PositiveBigIntegerField, Prefetch, QuerySet, Value
from django.db.models.functions import Coalesce
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.fields import SkipField
from rest_framework.generics import RetrieveAPIView
from rest_framework.permissions import IsAuthenticated

from protege.api import shapes
from protege.api.base import SCOPE_PARAMETERS, VisibleList, VisibleRows
from protege.api.principals import asking
from protege.exceptions import NotVisibleError
from threads.models import Attachment, EmailThread, Message

UNSENT_LAST = 2**31
"""Place of what was never sent, behind every number that a message can have."""


class AttachmentSerializer(serializers.ModelSerializer[Attachment]):
    """What is known about a file; `public_id` is the id that tools accept."""

    class Meta:
        model = Attachment
        fields = ["public_id", "filename", "content_type", "size", "sha256", "inline", "damaged", "text_status"]
        read_only_fields = fields


class WholeTextField(serializers.CharField):
    """The whole text, quotes and all. A list does not load it, and then leaves it out."""

    def get_attribute(self, instance: Message) -> Any:
        if "text_body" in instance.get_deferred_fields():
            raise SkipField
        return instance.text_body


class MessageSerializer(serializers.ModelSerializer[Message]):
    """A mail of a thread, with the text that the model reads of it."""

    to = shapes.MailboxSerializer(many=True)
    cc = shapes.MailboxSerializer(many=True)
    reply_to = shapes.MailboxSerializer(many=True)
    warnings = shapes.CodesField(help_text="Codes of what was odd about the mail.")
    attachments = AttachmentSerializer(many=True)
    text_body = WholeTextField(required=False, help_text="Whole text, quotes and all; only for a single message.")

    class Meta:
        model = Message
        fields = [
            "id", "thread", "persona", "sequence", "direction", "status", "origin", "answers", "answered_by", "run",
            "message_id", "in_reply_to", "from_address", "from_name", "to", "cc", "reply_to", "subject",
            "readable_body", "text_body", "sent_at", "received_at", "trust", "last_code", "warnings",
            "attachments",
        ]  # fmt: skip
        read_only_fields = fields


def _with_files(messages: "QuerySet[Message]") -> "QuerySet[Message]":
    return messages.prefetch_related(Prefetch("attachments", Attachment.objects.defer("text").order_by("id")))


@extend_schema_view(
    get=extend_schema(
        summary="List the messages of a thread",
        description="In the order of the thread; drafts and what was never sent come last.",
        parameters=SCOPE_PARAMETERS,
        responses={
            200: MessageSerializer(many=True),
            **shapes.errors(s400=shapes.BAD_LIST, s404=shapes.NOT_VISIBLE),
        },
    )
)
class ThreadMessages(VisibleList):
    permission_classes = [IsAuthenticated]
    queryset = _with_files(Message.objects.defer("text_body"))
    serializer_class = MessageSerializer
    # Drafts have no sequence, and where a null sorts differs between databases.
    order = ("place", "id")

    def get_queryset(self) -> "QuerySet[Any]":
        thread = self.kwargs["pk"]
        if not EmailThread.objects.visible_to(*asking(self.request)).filter(pk=thread).exists():
            raise NotVisibleError("There is no such thread, or you may not see it.")
        place = Coalesce(F("sequence"), Value(UNSENT_LAST), output_field=PositiveBigIntegerField())
        return super().get_queryset().filter(thread=thread).annotate(place=place)


@extend_schema_view(
    get=extend_schema(
        summary="Show a message",
        parameters=SCOPE_PARAMETERS,
        responses={200: MessageSerializer, **shapes.errors(s404=shapes.NOT_VISIBLE)},
    )
)
class MessageDetail(VisibleRows, RetrieveAPIView[Message]):
    permission_classes = [IsAuthenticated]
    queryset = _with_files(Message.objects.all())
    serializer_class = MessageSerializer
