"""The preview: what a model would be sent for one mail or responsibility. Writes nothing, and posts nothing."""

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from personas.models import Persona
from protege.api import preview_answer, preview_request, shapes
from protege.api.base import SCOPE_PARAMETERS, ProtegeView, persona_or_404
from protege.api.comparison import chain_to_compare, comparison
from protege.api.permissions import HasPermissions
from protege.api.preview_answer import PreviewSerializer
from protege.api.preview_request import PreviewRequestSerializer
from protege.api.principals import asking
from protege.exceptions import NotVisibleError
from protege.services import inbox, runs
from resolvers.chain import ResolverChain
from resolvers.models import Trigger
from threads.models import Direction, EmailThread, Message


class PreviewView(ProtegeView):
    """A preview of one persona's run."""

    permission_classes = [IsAuthenticated, HasPermissions]
    needs = {"POST": ["protege_personas.view_persona", "protege_resolvers.preview_chain"]}

    @extend_schema(
        summary="Preview what the model would be sent",
        parameters=SCOPE_PARAMETERS,
        request=PreviewRequestSerializer,
        responses={
            200: PreviewSerializer,
            422: PreviewSerializer,
            **shapes.errors(s400="A wrong field, or a model that cannot be built.", s404=shapes.NOT_VISIBLE),
        },
        examples=[*preview_request.EXAMPLES, *preview_answer.EXAMPLES],
    )
    def post(self, request: Request, pk: int) -> Response:
        persona = persona_or_404(request, pk)
        asked = PreviewRequestSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        shown, complete = _preview(request, persona, asked.validated_data)
        return Response(shown, status=status.HTTP_200_OK if complete else status.HTTP_422_UNPROCESSABLE_ENTITY)


def _preview(request: Request, persona: Persona, given: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """The answer, and whether a run would call the model with it. Rows are looked up before any work is done."""
    subject = _subject(request, persona, given)
    compare = given.get("compare")
    other = None if compare is None else chain_to_compare(persona, _trigger(given), compare)
    chain = ResolverChain.from_steps(given["steps"]) if "steps" in given else None
    prepared = runs.prepare(persona, **subject, chain=chain, model=given.get("model"))
    preview = runs.preview(prepared)
    shown = preview.to_dict(full=given["full"])
    if compare is not None:
        # The same mail, model and moment: what differs comes from the chain alone.
        baseline = runs.prepare(persona, **subject, chain=other, model=prepared.model, now=prepared.context.now)
        shown["comparison"] = comparison(shown, baseline, against=compare, full=given["full"])
    return shown, preview.is_complete


def _trigger(given: Mapping[str, Any]) -> str:
    return Trigger.RESPONSIBILITY if "responsibility" in given else Trigger.MESSAGE


def _subject(request: Request, persona: Persona, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the run would be for: a row of this persona that the caller may see, or a mail that is in no table."""
    if "responsibility" in given:
        return {"responsibility": _found(persona.responsibilities.filter(pk=given["responsibility"]).first())}
    if "message" in given:
        return {"message": _message(request, persona, given["message"])}
    return {"message": _pasted(request, persona, given["mail"])}


def _message(request: Request, persona: Persona, pk: int) -> Message:
    inbound = Message.objects.visible_to(*asking(request)).filter(persona=persona, direction=Direction.INBOUND)
    message: Message = _found(inbound.select_related("thread", "persona").filter(pk=pk).first())
    return message


def _pasted(request: Request, persona: Persona, mail: str) -> Message:
    """The mail, unsaved. Whoever pastes one may claim any thread, so the thread must be one that he can see."""
    message = inbox.parse(mail.encode(), persona)
    thread = message.thread.pk
    if thread is not None:
        _found(EmailThread.objects.visible_to(*asking(request)).filter(pk=thread).first())
    return message


def _found(row: Any) -> Any:
    if row is None:
        raise NotVisibleError("What the preview is for does not exist, is another persona's, or you may not see it.")
    return row
