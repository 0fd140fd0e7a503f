"""From rows to a request: the chain is run, the turn that is answered put behind it. Read only.

Nothing is written, no tool is called and no socket opened, so that a preview costs nothing and shows everything.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from personas.models import Persona, Responsibility
from protege import conf
from protege.context import Context
from protege.exceptions import ProtegeError, RunRefusedError
from protege.inference import Request, build_request
from protege.inference.adapter import context_window
from protege.inference.naming import check_model
from protege.inference.tokens import DEFAULT_WINDOW, output_reserve
from protege.messages import ModelMessage, Notice, Role, TracedMessage
from protege.services import chains, documents
from protege.toolkit import Tool, tools, tools_for
from resolvers.chain import ResolverChain, StepOutcome
from resolvers.models import Trigger
from threads.models import Attachment, Direction, Message, Run, ToolUse
from threads.rounds import rounds

EARLIER_NOT_SHOWN = "[Earlier messages are not shown.]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A request and where each part of it comes from.

    `traced` is the request's list of messages, in order; `outcomes` what each step of the chain did; `refusal` is
    why a run with it must not call the model, or None. `window` and `max_output_tokens` are in tokens.
    """

    context: Context
    trigger: str
    model: str
    traced: tuple[TracedMessage, ...]
    tools: tuple[Tool, ...]
    outcomes: tuple[StepOutcome, ...]
    notices: tuple[Notice, ...]
    refusal: ProtegeError | None
    chain_revision: int
    window: int
    max_output_tokens: int

    @property
    def persona(self) -> Persona:
        return self.context.persona

    @property
    def request(self) -> Request:
        return build_request(tools=self.tools, context_messages=[traced.message for traced in self.traced])


def prepare(
    persona: Persona,
    *,
    message: Message | None = None,
    responsibility: Responsibility | None = None,
    chain: ResolverChain | None = None,
    model: str | None = None,
    now: datetime | None = None,
    run: Run | None = None,
) -> Prepared:
    """Assemble what the model would be sent for one mail or one responsibility.

    `chain` stands in place of the saved one, `model` in place of the persona's; `run` is the one being built or
    replayed. Raises `ModelNameError` for a model that cannot be built; whatever goes wrong in the chain is in the
    outcomes and in `refusal`.
    """
    if (message is None) == (responsibility is None):
        raise ValueError("Give exactly one of `message` and `responsibility`.")
    config = conf.load()
    name = model or persona.model
    check_model(name, config)
    context = _context(persona, message, responsibility, config, now or timezone.now(), run)
    trigger = Trigger.MESSAGE if message is not None else Trigger.RESPONSIBILITY
    chain = chain or ResolverChain.for_persona(persona, trigger)
    outcomes = tuple(chain.outcomes(context))
    said = [traced for outcome in outcomes for traced in outcome.messages]
    turn = [] if message is None else [*_user_turn(message), *_own_rounds(message, run)]
    traced = _opened_by_user([*said, *turn], message)
    offered = tools_for(persona.tools)
    window = persona.context_window or context_window(name) or DEFAULT_WINDOW
    return Prepared(
        context=context,
        trigger=trigger,
        model=name,
        traced=tuple(traced),
        tools=tuple(offered),
        outcomes=outcomes,
        notices=(*_notices(outcomes), *_missing_tools(persona)),
        refusal=_refusal(outcomes, [*said, *turn]),
        chain_revision=chains.current_revision(persona, trigger),
        window=window,
        max_output_tokens=output_reserve(window, persona.max_output_tokens),
    )


def _context(
    persona: Persona,
    message: Message | None,
    responsibility: Responsibility | None,
    config: conf.Config,
    now: datetime,
    run: Run | None,
) -> Context:
    named: dict[str, Any] = {"correlation_id": str(run.correlation_id), "run_id": run.pk} if run else {}
    return Context(persona=persona, message=message, responsibility=responsibility, config=config, now=now, **named)


def _user_turn(message: Message) -> list[TracedMessage]:
    """The mail that is answered, with its documents: the trailing user turn."""
    attachments: list[Attachment] = message.files()
    request = build_request(user_content=documents.user_turn(message, attachments))
    sources = [f"message:{message.pk or 'unsaved'}", *(f"attachment:{item.public_id}" for item in attachments)]
    return [TracedMessage(message=request.messages[0], sources=tuple(sources))]


def _own_rounds(message: Message, run: Run | None) -> list[TracedMessage]:
    """What earlier runs of the same mail called, after its turn; for a run taken over, what it called itself too."""
    if message.pk is None:
        return []
    uses = ToolUse.objects.filter(message=message)
    if run is not None:
        uses = uses.filter(run_id__lte=run.pk) if run.attempt > 1 else uses.filter(run_id__lt=run.pk)
    return list(rounds(uses.order_by("run_id", "turn_index", "position")))


def _opened_by_user(traced: list[TracedMessage], message: Message | None) -> list[TracedMessage]:
    """A list whose first entry after the system text is a user turn, as every provider wants it."""
    first = next((i for i, item in enumerate(traced) if item.message.role is not Role.SYSTEM), None)
    if first is None or traced[first].message.role is Role.USER:
        return traced
    opening = TracedMessage(message=ModelMessage(Role.USER, _opening(traced, message)))
    return [*traced[:first], opening, *traced[first:]]


def _opening(traced: list[TracedMessage], message: Message | None) -> str:
    """Whether something stood before what is shown, or the persona began the thread itself."""
    if message is None or message.thread_id is None:
        return EARLIER_NOT_SHOWN
    began = Message.objects.filter(thread=message.thread_id, sequence=1, direction=Direction.OUTBOUND)
    first = began.values_list("pk", "run__responsibility_label").first()
    if first is None or not any(f"message:{first[0]}" in item.sources for item in traced):
        return EARLIER_NOT_SHOWN
    return f"[You wrote first: {first[1]}.]" if first[1] else "[You wrote first.]"


def _notices(outcomes: Sequence[StepOutcome]) -> list[Notice]:
    return [notice for outcome in outcomes for notice in outcome.notices]


def _missing_tools(persona: Persona) -> list[Notice]:
    return [Notice("unknown_tool", {"tool": name}) for name in persona.tools if name not in tools]


def _refusal(outcomes: Sequence[StepOutcome], traced: Sequence[TracedMessage]) -> ProtegeError | None:
    for outcome in outcomes:
        if outcome.error is not None and not outcome.skipped:
            return outcome.error
    if not any(item.message.role is Role.USER for item in traced):
        return RunRefusedError(
            "The chain gives no user turn, so there is nothing for the model to answer. "
            "Add a step with the role user, such as load_text with the instructions.",
            code="no_user_turn",
        )
    if traced[-1].message.role is Role.ASSISTANT:
        return RunRefusedError(
            "The chain ends on a turn of the assistant, so there is nothing for the model to answer. "
            "End it with a step of the role user.",
            code="no_user_turn",
        )
    return None
