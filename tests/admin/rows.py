"""One row of each table, that belongs to a persona."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.db.models import Model

from personas import models as who
from personas.models import Persona
from resolvers import models as said
from tests import factories as make
from threads import models as what

OURS = sorted(
    (model for model in admin.site._registry if model._meta.app_label.startswith("protege_")),
    key=lambda model: model._meta.label,
)

NOBODYS = {what.RawMail, what.ImapCursor, what.PromptText, what.TokenRate}
"""Tables that belong to no tenant."""

_numbers = iter(range(1, 1_000_000))

MAKERS: dict[type[Model], Callable[[Persona], Any]] = {
    who.Persona: lambda persona: make.PersonaFactory(tenant=persona.tenant),
    who.PersonaAddress: lambda persona: make.PersonaAddressFactory(persona=persona),
    who.Responsibility: lambda persona: make.ResponsibilityFactory(persona=persona),
    what.EmailThread: lambda persona: make.EmailThreadFactory(persona=persona),
    what.Participant: lambda persona: make.ParticipantFactory(thread__persona=persona),
    what.ThreadTag: lambda persona: make.ThreadTagFactory(thread__persona=persona),
    what.Message: lambda persona: make.MessageFactory(thread__persona=persona),
    what.Attachment: lambda persona: make.AttachmentFactory(message__thread__persona=persona),
    what.RawMail: lambda persona: make.RawMailFactory(),
    what.InboundMail: lambda persona: make.InboundMailFactory(persona=persona, tenant=persona.tenant),
    what.ImapCursor: lambda persona: make.ImapCursorFactory(),
    what.Run: lambda persona: make.RunFactory(message__thread__persona=persona),
    what.ToolUse: lambda persona: make.ToolUseFactory(run__message__thread__persona=persona),
    what.PromptText: lambda persona: make.PromptTextFactory(text=f"Text {next(_numbers)}"),
    what.TokenRate: lambda persona: make.TokenRateFactory(),
    what.SearchText: lambda persona: make.SearchTextFactory(message__thread__persona=persona),
    what.ThreadVector: lambda persona: make.ThreadVectorFactory(thread__persona=persona),
    said.ChainStep: lambda persona: make.ChainStepFactory(persona=persona),
    said.ChainRevision: lambda persona: make.ChainRevisionFactory(persona=persona),
}


def row_of(model: type[Model], persona: Persona) -> Any:
    return MAKERS[model](persona)
