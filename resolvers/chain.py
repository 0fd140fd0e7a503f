"""The chain: runs its steps in order and keeps what each of them said, asked and cost."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from django.db import connections

from protege.exceptions import ProtegeError, ResolverError
from protege.messages import ModelMessage, Notice, TracedMessage
from resolvers.base import Resolver
from resolvers.options import resolver_class, step_shape

if TYPE_CHECKING:
    from personas.models import Persona
    from protege.context import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One place in a chain; `build` makes the fresh resolver of a run."""

    key: str
    label: str
    build: Callable[[], Resolver]
    enabled: bool = True
    on_error: str = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcome:
    """What became of one step in one run.

    `position` is the index in the chain. `error` is set for a step that failed, and `skipped` when the chain goes on
    regardless; `queries` counts those of all databases.
    """

    position: int
    key: str
    label: str
    enabled: bool
    messages: tuple[TracedMessage, ...] = ()
    notices: tuple[Notice, ...] = ()
    error: ProtegeError | None = None
    skipped: bool = False
    milliseconds: float = 0.0
    queries: int = 0


class ResolverChain:
    """An ordered list of resolvers. Chain order is message order: nothing is hoisted, merged or dropped."""

    def __init__(self, steps: Iterable[Step] = ()) -> None:
        self._steps = list(steps)

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(self._steps)

    def use(self, resolver: type[Resolver], *args: Any, **kwargs: Any) -> Self:
        """Append a resolver; the arguments go to its constructor, once a run. Returns the chain."""
        if not (isinstance(resolver, type) and issubclass(resolver, Resolver)):
            raise TypeError(f"{resolver!r} is no subclass of resolvers.Resolver. Give the class, then its arguments.")
        key = resolver.name or resolver.__name__
        build = partial(resolver, *args, **kwargs)
        self._steps.append(Step(key=key, label=str(resolver.label or key), build=build))
        return self

    @classmethod
    def for_persona(cls, persona: "Persona", trigger: str) -> Self:
        """The chain that the admin shows for `trigger`, `"message"` or `"responsibility"`. One query."""
        from resolvers.models import ChainStep, Trigger

        rows = ChainStep.objects.filter(persona_id=persona.pk, trigger=Trigger(trigger)).order_by("position", "pk")
        return cls.from_steps([row.to_dict() for row in rows])

    @classmethod
    def from_steps(cls, steps: Sequence[Mapping[str, Any]]) -> Self:
        """A chain that need not be saved, under the rules of the admin: `{"resolver": ..., "options": {...}, ...}`.

        A step of a wrong shape is a `ValidationError`. A resolver that nobody registers, or options that it refuses,
        make that step fail when the chain runs, so that they hide no other step.
        """
        return cls(_stored_step(step_shape(step, index)) for index, step in enumerate(steps))

    def run(self, context: "Context") -> list[ModelMessage]:
        """All messages, in chain order; raises the error of the first step that fails."""
        return [traced.message for traced in self.trace(context)]

    def trace(self, context: "Context") -> Iterator[TracedMessage]:
        """The messages of `run` with their provenance."""
        for outcome in self.outcomes(context):
            if outcome.error is not None and not outcome.skipped:
                raise outcome.error
            yield from outcome.messages

    def outcomes(self, context: "Context") -> Iterator[StepOutcome]:
        """What each step said, one after the other. A step that fails is an outcome too and hides no later one."""
        for position, step in enumerate(self._steps):
            if step.enabled:
                yield _run_step(step, position, context)
            else:
                yield StepOutcome(position=position, key=step.key, label=step.label, enabled=False)


def _stored_step(step: Mapping[str, Any]) -> Step:
    key = step["resolver"]
    return Step(
        key=key,
        label=_label(key),
        build=lambda: resolver_class(key).from_options(step["options"]),
        enabled=step["enabled"],
        on_error=step["on_error"],
    )


def _label(key: str) -> str:
    from resolvers.registry import resolvers

    return str(getattr(resolvers.get(key), "label", "") or key)


def _run_step(step: Step, position: int, context: "Context") -> StepOutcome:
    resolver: Resolver | None = None
    messages: tuple[TracedMessage, ...] = ()
    failure: Exception | None = None
    with _QueryCount() as count:
        started = time.perf_counter()
        try:
            resolver = step.build()
            said = tuple(_said(resolver.resolve(context), _Place(step, position, context)))
            messages = tuple(resolver.traced(message, step=position) for message in said)
        except Exception as error:  # a resolver may be the host's code: whatever it raises is this step's outcome
            failure = error
        milliseconds = (time.perf_counter() - started) * 1_000
    return StepOutcome(
        position=position,
        key=step.key,
        label=step.label,
        enabled=True,
        messages=messages,
        notices=_notices(resolver, step, position, failure),
        error=_as_error(failure, _Place(step, position, context)) if failure else None,
        skipped=failure is not None and step.on_error == "skip",
        milliseconds=milliseconds,
        queries=count.queries,
    )


def _notices(resolver: Resolver | None, step: Step, position: int, failure: Exception | None) -> tuple[Notice, ...]:
    notices = resolver.notices if resolver is not None else ()
    if failure is None or step.on_error != "skip":
        return notices
    facts = {"step": position, "resolver": step.key, "error": type(failure).__name__}
    return (*notices, Notice("step_skipped", facts))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an error happened, in words that hold no text of a mail."""

    step: Step
    position: int
    context: "Context"

    def __str__(self) -> str:
        return f"Step {self.position} ({self.step.key}) of the persona {self.context.persona}"


def _as_error(failure: Exception, place: _Place) -> ProtegeError:
    """Our own errors as they are, with a note of the place; others wrapped, without their text."""
    if isinstance(failure, ProtegeError):
        failure.add_note(f"{place}.")
        return failure
    error = ResolverError(
        f"{place} failed with {type(failure).__name__}. Correct the resolver or its options, or set the step's "
        "on_error to skip."
    )
    error.__cause__ = failure
    return error


def _said(answer: object, place: _Place) -> Iterator[ModelMessage]:
    if answer is None:
        return
    if isinstance(answer, ModelMessage):
        yield answer
        return
    if isinstance(answer, str | bytes | bytearray | Mapping) or not isinstance(answer, Iterable):
        raise _wrong_type(place, type(answer).__name__)
    for item in answer:
        if not isinstance(item, ModelMessage):
            raise _wrong_type(place, f"an iterable with {type(item).__name__}")
        yield item


def _wrong_type(place: _Place, what: str) -> ResolverError:
    return ResolverError(
        f"{place} returned {what}. `resolve` returns a ModelMessage, an iterable of them, or None.", code="bad_return"
    )


class _QueryCount(ExitStack):
    """Counts the statements on all connections while it is entered."""

    queries = 0

    def __enter__(self) -> Self:
        super().__enter__()
        for connection in connections.all():
            self.enter_context(connection.execute_wrapper(self._count))
        return self

    def _count(self, execute: Callable[..., Any], *args: Any) -> Any:
        self.queries += 1
        return execute(*args)
