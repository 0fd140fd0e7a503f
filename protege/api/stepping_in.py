"""A person steps in: a thread is paused and released, a mail that failed is sent once more."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from protege.api import shapes
from protege.api.base import SCOPE_PARAMETERS, VisibleRows
from protege.api.drafts import refuse_body
from protege.api.messages import MessageDetail, MessageSerializer
from protege.api.permissions import HasPermissions
from protege.api.threads import ThreadSerializer, described_threads
from protege.identity import author_of
from protege.services import delivery, pausing

PAUSE = "protege_threads.pause_emailthread"
RESEND = "protege_threads.resend_message"

NO_BODY = "A body, which it does not take."


class ReleasedSerializer(serializers.Serializer[Any]):
    """The thread as it is now, and the run that answers its newest mail."""

    thread = ThreadSerializer()
    run = serializers.IntegerField(
        allow_null=True, help_text="Id of the run; null when there is nothing to answer, or it was not paused."
    )


class ThreadPause(VisibleRows):
    permission_classes = [IsAuthenticated, HasPermissions]
    needs = {"POST": [PAUSE]}
    queryset = described_threads()
    serializer_class = ThreadSerializer

    @extend_schema(
        summary="Pause a thread",
        description="Mail is stored and joined, and nothing is answered. A thread that is paused stays as it is.",
        parameters=SCOPE_PARAMETERS,
        request=None,
        responses={200: ThreadSerializer, **shapes.errors(s400=NO_BODY, s404=shapes.NOT_VISIBLE)},
    )
    def post(self, request: Request, pk: int) -> Response:
        thread = self.get_object()
        refuse_body(request)
        pausing.pause(thread.pk, author=author_of(request))
        return Response(ThreadSerializer(self.get_object()).data)


class ThreadRelease(VisibleRows):
    permission_classes = [IsAuthenticated, HasPermissions]
    needs = {"POST": [PAUSE]}
    queryset = described_threads()
    serializer_class = ReleasedSerializer

    @extend_schema(
        summary="Release a thread",
        description="The newest mail that nobody has answered gets a run. A thread that is not paused stays as it is.",
        parameters=SCOPE_PARAMETERS,
        request=None,
        responses={200: ReleasedSerializer, **shapes.errors(s400=NO_BODY, s404=shapes.NOT_VISIBLE)},
    )
    def post(self, request: Request, pk: int) -> Response:
        thread = self.get_object()
        refuse_body(request)
        run = pausing.release(thread.pk, author=author_of(request))
        return Response({"thread": ThreadSerializer(self.get_object()).data, "run": run.pk if run else None})


class MessageResend(VisibleRows):
    permission_classes = [IsAuthenticated, HasPermissions]
    needs = {"POST": [RESEND]}
    queryset = MessageDetail.queryset
    serializer_class = MessageSerializer

    @extend_schema(
        summary="Send a failed mail again",
        description="Under its own Message-ID, with as many tries as a new one has.",
        parameters=SCOPE_PARAMETERS,
        request=None,
        responses={
            200: MessageSerializer,
            **shapes.errors(
                s400=NO_BODY,
                s404=shapes.NOT_VISIBLE,
                s409="It has not failed (`not_failed`), or its mail has another answer (`answered_already`).",
            ),
        },
    )
    def post(self, request: Request, pk: int) -> Response:
        message = self.get_object()
        refuse_body(request)
        delivery.resend(message.pk)
        return Response(MessageSerializer(self.get_object()).data)
