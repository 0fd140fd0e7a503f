"""The base class of everything that says something to a model before it answers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from django import forms
from django.core.exceptions import ValidationError

from protege.exceptions import ResolverError
from protege.messages import ModelMessage, Notice, Part, Role, ToolCall, TracedMessage
from resolvers.forms import NoOptionsForm, clean_by, complaints

if TYPE_CHECKING:
    from protege.context import Context

KINDS = ("system", "history", "documents", "lent", "summary", "related")
"""What the budget tells apart when it has to cut."""


class ResolverNotImplementedError(ResolverError, NotImplementedError):
    """A subclass of `Resolver` without a `resolve` of its own."""

    code = "resolver_not_implemented"


class BadOptionsError(ResolverError):
    """Stored options that the resolver's form refuses; the message names each and why."""

    code = "bad_options"

    def __init__(self, owner: str, error: ValidationError) -> None:
        super().__init__(f"Correct the options of the step {owner}. {' '.join(complaints(error))}")


@dataclass(frozen=True, slots=True)
class _Record:
    """Where a message that this instance made comes from."""

    message: ModelMessage
    sources: tuple[str, ...]
    exchange: int | None


class Resolver:
    """Assembles a part of what a model reads. Subclasses set `name` and override `resolve`.

    `kind` tells the budget what it may cut; None means: by the role of each message. `options_form` is the form of
    the options that a step of the admin may have; its fields are keyword arguments of the constructor, unless
    `from_options` says otherwise. A fresh instance is made for every run.
    """

    name: ClassVar[str] = ""
    label: ClassVar[str] = ""
    description: ClassVar[str] = ""
    kind: ClassVar[str | None] = None
    options_form: ClassVar[type[forms.Form]] = NoOptionsForm

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Self:
        """An instance with the stored options, which are checked by the form once more: code and rows drift apart."""
        owner = cls.name or cls.__name__
        try:
            return cls(**clean_by(cls.options_form, options, owner=owner))
        except ValidationError as error:
            raise BadOptionsError(owner, error) from error

    def resolve(self, context: "Context") -> ModelMessage | Iterable[ModelMessage] | None:
        """One message, several, or None for "nothing to contribute". Reads the context and never changes it."""
        raise ResolverNotImplementedError(f"{type(self).__name__} does not implement resolve(context).")

    def message(
        self,
        role: Role | str,
        content: str | Sequence[Part],
        *,
        tool_call_id: str | None = None,
        tool_calls: Sequence[ToolCall] | None = None,
        source: str | Sequence[str] | None = None,
    ) -> ModelMessage:
        """A message whose origin is remembered; `source` is a label such as `crm:customer-17`, or several."""
        message = ModelMessage(Role(role), content, tool_call_id, tuple(tool_calls or ()))
        return self._record(message, sources=(source,) if isinstance(source, str) else tuple(source or ()))

    def notice(self, code: str, **facts: Any) -> None:
        """Tell whoever reads the preview or the run something that no message says."""
        self._notices().append(Notice(code, facts))

    def traced(self, message: ModelMessage, *, step: int) -> TracedMessage:
        """`message` with its provenance, when this very object was made by `self.message`."""
        record = self._records().get(id(message))
        return TracedMessage(
            message=message,
            step=step,
            kind=self.kind or ("system" if message.role is Role.SYSTEM else "history"),
            sources=record.sources if record else (),
            exchange=record.exchange if record else None,
        )

    @property
    def notices(self) -> tuple[Notice, ...]:
        return tuple(self._notices())

    def _record(
        self, message: ModelMessage, *, sources: Sequence[str] = (), exchange: int | None = None
    ) -> ModelMessage:
        # The record holds the message, so that its id belongs to no other object while this instance lives.
        self._records()[id(message)] = _Record(message, tuple(sources), exchange)
        return message

    # Both are made on first use and in `__dict__`: a subclass need not call our `__init__`, and may be frozen.

    def _records(self) -> dict[int, _Record]:
        records: dict[int, _Record] = self.__dict__.setdefault("_protege_records", {})
        return records

    def _notices(self) -> list[Notice]:
        notices: list[Notice] = self.__dict__.setdefault("_protege_notices", [])
        return notices
