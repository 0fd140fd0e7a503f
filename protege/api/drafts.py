"""Answers that wait for a person: list, read, edit, approve, discard. What may happen to them is the service's."""

from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import Prefetch, QuerySet
from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.generics import RetrieveAPIView
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from protege.api import shapes
from protege.api.base import SCOPE_PARAMETERS, VisibleList, VisibleRows
from protege.api.messages import AttachmentSerializer
from protege.api.permissions import HasPermissions
from protege.identity import author_of
from protege.mail.limits import SUBJECT_LENGTH
from protege.services import drafts
from protege.services.placing import lock
from threads.models import Attachment, Direction, Message, MessageStatus

APPROVE = "protege_threads.approve_draft"
DISCARD = "protege_threads.discard_draft"

NO_DRAFT = "It is no longer a draft (`not_a_draft`)."
STALE = "The thread has moved on (`stale_draft`), or it is no longer a draft (`not_a_draft`)."


class DraftSerializer(serializers.ModelSerializer[Message]):
    """A mail that waits for a person; `revision` is what to send as `seen_revision`."""

    to = shapes.MailboxSerializer(many=True)
    cc = shapes.MailboxSerializer(many=True)
    # No choices: two components with the same set would leave its name in the schema to a hash.
    status = serializers.CharField(help_text="`draft` while it waits.")
    body = serializers.CharField(source="text_body", help_text="Text of the mail, without signature and quote.")
    warnings = shapes.CodesField(help_text="Codes of what is odd about the mail.")
    attachments = AttachmentSerializer(many=True)
    revision = serializers.IntegerField(source="thread.revision", help_text="Revision of its thread now.")
    stale = serializers.SerializerMethodField(help_text="Approving it needs `seen_revision`: the thread has moved on.")

    class Meta:
        model = Message
        fields = [
            "id", "thread", "persona", "run", "answers", "origin", "status", "sequence", "from_address", "from_name",
            "to", "cc", "subject", "body", "attachments", "warnings", "last_code", "received_at", "edited_at",
            "revision", "stale",
        ]  # fmt: skip
        read_only_fields = fields

    def get_stale(self, draft: Message) -> bool:
        return draft.status == MessageStatus.DRAFT and drafts.is_stale(draft, draft.thread.revision)


class _SeenSerializer(shapes.KnownFieldsSerializer):
    seen_revision = serializers.IntegerField(
        required=False,
        min_value=0,
        help_text="`revision` of the draft as you read it: whatever has happened since is a 409.",
    )


class DraftApprovalSerializer(_SeenSerializer):
    """Without `seen_revision`, the draft is sent only when nothing has arrived since it was written."""


class DraftChangeSerializer(_SeenSerializer):
    """What to change; what is left out stays."""

    body = serializers.CharField(required=False, allow_blank=True, help_text="Whole text of the mail.")
    subject = serializers.CharField(required=False, allow_blank=True, max_length=SUBJECT_LENGTH)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not {"body", "subject"} & set(attrs):
            raise serializers.ValidationError("Nothing to change. Send `body`, `subject` or both.")
        return attrs


class StaleDraftSerializer(shapes.ErrorSerializer):
    """With the code `stale_draft`, what to read before approving again."""

    arrived = serializers.ListField(
        child=serializers.IntegerField(), required=False, help_text="Messages that the draft does not know of."
    )
    revision = serializers.IntegerField(required=False, help_text="Revision of the thread now, for `seen_revision`.")


STALE_ANSWER = OpenApiResponse(
    StaleDraftSerializer,
    description=STALE,
    examples=[
        OpenApiExample(
            "Something has arrived",
            value={
                "code": "stale_draft",
                "detail": "Since this draft was written, 1 messages have arrived in its thread or a draft was changed. "
                "Read the thread again, then approve with the revision 4.",
                "arrived": [31],
                "revision": 4,
            },
        )
    ],
)


class _Drafts(VisibleRows):
    """What the persona wrote, of the caller's rows; one that is no draft any more is told apart by the services."""

    queryset = (
        Message.objects.filter(direction=Direction.OUTBOUND)
        .select_related("thread")
        .prefetch_related(Prefetch("attachments", Attachment.objects.defer("text").order_by("id")))
    )
    serializer_class = DraftSerializer

    def now(self) -> Response:
        """The row as it is after a change."""
        return Response(DraftSerializer(self.get_object()).data)


@extend_schema_view(
    get=extend_schema(
        summary="List drafts",
        description="Mails that wait for a person, the oldest first.",
        parameters=SCOPE_PARAMETERS,
        responses={200: DraftSerializer(many=True), **shapes.errors(s400=shapes.BAD_LIST)},
    )
)
class DraftList(_Drafts, VisibleList):
    permission_classes = [IsAuthenticated, HasPermissions]
    needs = {"GET": [APPROVE]}
    order = ("received_at", "id")

    def get_queryset(self) -> "QuerySet[Any]":
        return super().get_queryset().filter(status=MessageStatus.DRAFT)


@extend_schema_view(
    get=extend_schema(
        summary="Show a draft",
        parameters=SCOPE_PARAMETERS,
        responses={200: DraftSerializer, **shapes.errors(s404=shapes.NOT_VISIBLE)},
    )
)
class DraftDetail(_Drafts, RetrieveAPIView[Message]):
    permission_classes = [IsAuthenticated, HasPermissions]
    needs = {"GET": [APPROVE], "PATCH": [APPROVE]}

    def get_queryset(self) -> "QuerySet[Any]":
        rows = super().get_queryset()
        return rows if self.request.method == "PATCH" else rows.filter(status=MessageStatus.DRAFT)

    @extend_schema(
        summary="Edit a draft",
        description="No newer answer replaces it from then on.",
        parameters=SCOPE_PARAMETERS,
        request=DraftChangeSerializer,
        responses={
            200: DraftSerializer,
            **shapes.errors(s400="A field that is wrong, or no text (`empty_draft`).", s404=shapes.NOT_VISIBLE),
            409: STALE_ANSWER,
        },
    )
    def patch(self, request: Request, pk: int) -> Response:
        draft = self.get_object()
        change = DraftChangeSerializer(data=request.data)
        change.is_valid(raise_exception=True)
        _edit(draft, **change.validated_data, author=author_of(request))
        return self.now()


class DraftApproval(_Drafts):
    permission_classes = [IsAuthenticated, HasPermissions]
    needs = {"POST": [APPROVE]}

    @extend_schema(
        summary="Approve a draft",
        description="Sends it. Of two approvals, the second is a 409 and sends nothing.",
        parameters=SCOPE_PARAMETERS,
        request=DraftApprovalSerializer,
        responses={
            200: DraftSerializer,
            **shapes.errors(s400="A field that is wrong.", s404=shapes.NOT_VISIBLE),
            409: STALE_ANSWER,
        },
    )
    def post(self, request: Request, pk: int) -> Response:
        draft = self.get_object()
        approval = DraftApprovalSerializer(data=request.data)
        approval.is_valid(raise_exception=True)
        drafts.approve(draft.pk, author=author_of(request), **approval.validated_data)
        return self.now()


class DraftDisposal(_Drafts):
    permission_classes = [IsAuthenticated, HasPermissions]
    needs = {"POST": [DISCARD]}

    @extend_schema(
        summary="Discard a draft",
        description="The mail that it was to answer stays unanswered.",
        parameters=SCOPE_PARAMETERS,
        request=None,
        responses={
            200: DraftSerializer,
            **shapes.errors(s400="A body, which it does not take.", s404=shapes.NOT_VISIBLE, s409=NO_DRAFT),
        },
    )
    def post(self, request: Request, pk: int) -> Response:
        draft = self.get_object()
        refuse_body(request)
        drafts.discard(draft.pk, author=author_of(request))
        return self.now()


def refuse_body(request: Request) -> None:
    """What a route does not take must not be passed over, as if it had had an effect."""
    if request.data:
        raise serializers.ValidationError(["This takes no body."])


def _edit(
    draft: Message,
    *,
    author: AbstractBaseUser,
    body: str | None = None,
    subject: str | None = None,
    seen_revision: int | None = None,
) -> None:
    """Without a body the present one stays: read under the lock, so that nobody's edit in between is undone."""
    with transaction.atomic():
        if body is None:
            lock(draft.thread_id)
            body = Message.objects.values_list("text_body", flat=True).get(pk=draft.pk)
        drafts.edit(draft.pk, body=body, subject=subject, author=author, seen_revision=seen_revision)
