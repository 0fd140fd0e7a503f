"""Which rows of a registered model a step of the admin reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from django.core.exceptions import ValidationError
from django.db.models import QuerySet

from protege.exceptions import ResolverError
from resolvers import placeholders
from resolvers.registry import RegisteredModel, models

if TYPE_CHECKING:
    from protege.context import Context

FILTER_VALUES = tuple(
    name for name in placeholders.TRUSTED if not name.startswith("now.") and not name.endswith(".instructions")
)
"""The names whose values may be filtered by. What strangers write into a mail is none of them."""


def model_named(name: str) -> RegisteredModel:
    """The registered model `"app_label.Model"`; a `ResolverError` names the registered ones."""
    entry = models.get(name)
    if entry is None:
        known = ", ".join(models.names()) or "none"
        raise ResolverError(f"Code has not registered the model {name!r}. Registered: {known}.", code="unknown_model")
    return entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Filters and order of a step over a registered model; everything it may not read is refused when it is made."""

    entry: RegisteredModel
    filters: Mapping[str, str]
    order_by: tuple[str, ...] = ()
    serialize: str | None = None

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Self:
        """The selection that the options describe; `ValidationError` by option for what is not registered."""
        entry = model_named(str(options["model"]))
        order = options.get("order_by") or ()
        order = [item.strip() for item in order.split(",") if item.strip()] if isinstance(order, str) else order
        filters = options.get("filters") or {}
        errors = {
            "filters": filters_complaint(entry, filters),
            "order_by": _order_complaint(entry, order),
            "serialize": serializer_complaint(options.get("serialize"), entry.serializers),
        }
        if any(errors.values()):
            raise ValidationError({name: text for name, text in errors.items() if text})
        return cls(entry=entry, filters=filters, order_by=tuple(order), serialize=options.get("serialize") or None)

    @property
    def cross_thread(self) -> bool:
        """True for rows that belong to the sender."""
        return placeholders.SENDER in self.filters.values()

    def rows(self, context: "Context") -> "QuerySet[Any] | None":
        """The rows, not yet read; None when a value is missing, which never means "all" or "those without one"."""
        values = {lookup: filter_value(name, context) for lookup, name in self.filters.items()}
        if not all(values.values()):
            return None
        found = self._scoped(context).filter(**values)
        if self.serialize is None:
            # Related rows that the scope joined are not shown, and cannot be joined over columns that are not read.
            found = found.select_related(None).only(*self.entry.fields)
        if self.order_by:
            return found.order_by(*self.order_by, "pk")
        return found if found.ordered else found.order_by("pk")

    def _scoped(self, context: "Context") -> "QuerySet[Any]":
        scoped = self.entry.scope(self.entry.model._default_manager.all(), context)
        if not isinstance(scoped, QuerySet):
            raise ResolverError(
                f"The scope of {self.entry.name} returned {type(scoped).__name__}. It returns the narrowed queryset.",
                code="bad_scope",
            )
        return scoped


def filter_value(name: str, context: "Context") -> str:
    """The plain value behind `name`; "" when this run has none."""
    if name == placeholders.SENDER:
        # In a filter the address is a parameter, so an odd one does no harm and must find its own rows.
        return context.message.from_address.strip() if context.message is not None else ""
    return placeholders.values(context, [name])[name].strip()


def filters_complaint(entry: RegisteredModel, filters: object) -> str | None:
    if not isinstance(filters, Mapping):
        return 'Enter a JSON object of lookups and names, such as {"email__iexact": "message.from_address"}.'
    if not filters and not entry.allow_unfiltered:
        return f"Give at least one filter. {entry.name} may be filtered by: {', '.join(entry.lookups) or 'nothing'}."
    for lookup, name in filters.items():
        if lookup not in entry.lookups:
            return f"{entry.name} cannot be filtered by {lookup!r}. Use: {', '.join(entry.lookups) or 'nothing'}."
        if name not in FILTER_VALUES:
            return f"There is no value {name!r} to filter by. Use: {', '.join(FILTER_VALUES)}."
    return None


def _order_complaint(entry: RegisteredModel, order: object) -> str | None:
    if not isinstance(order, Sequence) or not all(isinstance(item, str) for item in order):
        return "Enter names of fields, with a minus for the other direction."
    wrong = [item for item in order if item.removeprefix("-") not in (*entry.fields, "pk")]
    return f"{entry.name} cannot be ordered by {wrong[0]!r}. Use: {', '.join(entry.fields)}." if wrong else None


def serializer_complaint(name: str | None, registered: Sequence[str]) -> str | None:
    if not name or name in registered:
        return None
    return f"The method {name!r} is not registered here. Registered: {', '.join(registered) or 'none'}."
