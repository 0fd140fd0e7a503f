"""What code offers to chains by name: resolvers, sources of records and texts, and models to read."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from django import forms
from django.core.exceptions import FieldDoesNotExist
from django.db.models import Model, QuerySet

from protege.exceptions import RegistryError
from protege.registry import Registry
from resolvers.base import KINDS, Resolver

if TYPE_CHECKING:
    from protege.context import Context

R = TypeVar("R", bound=type[Resolver])
F = TypeVar("F", bound=Callable[..., Any])

_SECRET_NAME = re.compile(
    r"pass_?(word|wd|phrase|code)|secret(?!ar)|token|api_?key|private_?key|access_?key|credential"
    r"|(^|_)(pwd|otp|totp|pin|cvv|cvc)($|_)",
    re.IGNORECASE,
)


def is_secret(field: str) -> bool:
    """True for the names of fields that hold passwords, keys and their like: no model ever reads those."""
    return _SECRET_NAME.search(field) is not None


# Resolvers


def _check_resolver(entry: object) -> str | None:
    if not (isinstance(entry, type) and issubclass(entry, Resolver)):
        return "it is no subclass of resolvers.Resolver."
    if not (isinstance(entry.options_form, type) and issubclass(entry.options_form, forms.BaseForm)):
        return "its `options_form` is no Django form class."
    if entry.kind is not None and entry.kind not in KINDS:
        return f"its `kind` is {entry.kind!r}; use one of: {', '.join(KINDS)}."
    return None


resolvers: Registry[type[Resolver]] = Registry("resolver", check=_check_resolver)


def register_resolver(resolver: R) -> R:
    """Class decorator: offer the resolver to chains under its `name`."""
    resolvers.register(getattr(resolver, "name", ""), resolver)
    return resolver


# Sources


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A callable that takes the context, under the name by which a step of the admin chooses it.

    `cross_thread` says that what it gives belongs to the sender beyond this thread: it is withheld from senders
    whom nobody has verified. `serializers` are the methods of its records that a step may choose.
    """

    name: str
    load: Callable[["Context"], Any]
    cross_thread: bool = False
    serializers: tuple[str, ...] = ()
    label: str = ""


def _check_source(entry: object) -> str | None:
    if not isinstance(entry, Source) or not callable(entry.load):
        return "a source is a callable that takes the context."
    return None


sources: Registry[Source] = Registry("source", check=_check_source)


def register_source(
    name: str, *, cross_thread: bool = False, serializers: Sequence[str] = (), label: str = ""
) -> Callable[[F], F]:
    """Decorator: offer a callable that takes the context to `load_record` and `load_text` under `name`."""

    def register(load: F) -> F:
        sources.register(name, _source(name, load, cross_thread, serializers, label))
        return load

    return register


def _source(name: str, load: Any, cross_thread: bool, serializers: Sequence[str], label: str) -> Source:
    return Source(name=name, load=load, cross_thread=cross_thread, serializers=tuple(serializers), label=label)


# Models


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredModel:
    """A model that steps of the admin may read, and the limits within which they may.

    `fields` are what is shown and ordered by, `lookups` what may be filtered by, `scope(queryset, context)` narrows
    the rows to those that the run may see, `serializers` are methods that give a record's text.
    """

    model: type[Model]
    fields: tuple[str, ...]
    lookups: tuple[str, ...]
    scope: Callable[[QuerySet[Any], "Context"], QuerySet[Any]]
    serializers: tuple[str, ...] = ()
    allow_unfiltered: bool = False

    @property
    def name(self) -> str:
        return self.model._meta.label

    @property
    def label(self) -> str:
        return f"{self.model._meta.verbose_name} ({self.name})"


def _check_model(entry: object) -> str | None:
    if not isinstance(entry, RegisteredModel):
        return "it was not made by register_model."
    if not entry.fields:
        return "`fields` is empty; name the fields that may be read."
    if not callable(entry.scope):
        return "it needs a `scope(queryset, context)` that narrows the rows to those a run may see."
    return _field_complaint(entry) or _serializer_complaint(entry)


def _field_complaint(entry: RegisteredModel) -> str | None:
    columns = {field.name for field in entry.model._meta.concrete_fields}
    for name in (*entry.fields, *entry.lookups):
        if is_secret(name):
            return f"{name!r} looks like a password, key or token, which no model may read."
        if name in entry.fields and name not in columns:
            return f"it has no column {name!r}."
        if not _is_field(entry.model, name.split("__")[0]):
            return f"it has no field {name.split('__')[0]!r}."
    return None


def _is_field(model: type[Model], name: str) -> bool:
    try:
        return name == "pk" or model._meta.get_field(name) is not None
    except FieldDoesNotExist:
        return False


def _serializer_complaint(entry: RegisteredModel) -> str | None:
    missing = [name for name in entry.serializers if not callable(getattr(entry.model, name, None))]
    return f"it has no method {missing[0]!r}." if missing else None


models: Registry[RegisteredModel] = Registry("model", check=_check_model)


def register_model(
    model: type[Model],
    *,
    fields: Sequence[str],
    lookups: Sequence[str],
    scope: Callable[[QuerySet[Any], "Context"], QuerySet[Any]],
    serializers: Sequence[str] = (),
    allow_unfiltered: bool = False,
) -> RegisteredModel:
    """Let steps of the admin read `model`, within these limits, as `"app_label.Model"`."""
    entry = _registered(model, fields, lookups, scope, serializers, allow_unfiltered)
    return models.register(entry.name, entry)


def _registered(
    model: Any, fields: Sequence[str], lookups: Sequence[str], scope: Any, serializers: Sequence[str], unfiltered: bool
) -> RegisteredModel:
    if not (isinstance(model, type) and issubclass(model, Model)):
        raise RegistryError(f"{model!r} cannot be registered as a model: it is no Django model class.")
    if any(isinstance(names, str) for names in (fields, lookups, serializers)):
        raise RegistryError("`fields`, `lookups` and `serializers` are lists of names, not one text.")
    return RegisteredModel(
        model=model,
        fields=tuple(fields),
        lookups=tuple(lookups),
        scope=scope,
        serializers=tuple(serializers),
        allow_unfiltered=unfiltered,
    )


# For tests


@contextmanager
def temporary_resolver(resolver: R) -> Iterator[R]:
    """Register a resolver for the length of a `with` block."""
    with resolvers.temporarily(getattr(resolver, "name", ""), resolver):
        yield resolver


@contextmanager
def temporary_source(
    name: str, load: Callable[["Context"], Any], *, cross_thread: bool = False, serializers: Sequence[str] = ()
) -> Iterator[Source]:
    """Register a source for the length of a `with` block."""
    with sources.temporarily(name, _source(name, load, cross_thread, serializers, "")) as source:
        yield source


@contextmanager
def temporary_model(model: type[Model], **limits: Any) -> Iterator[RegisteredModel]:
    """Register a model, with the arguments of `register_model`, for the length of a `with` block."""
    given = {"serializers": (), "allow_unfiltered": False, **limits}
    unfiltered = given.pop("allow_unfiltered")
    entry = _registered(model, **given, unfiltered=unfiltered)
    with models.temporarily(entry.name, entry):
        yield entry
