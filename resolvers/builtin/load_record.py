"""Records of the host's own tables."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self

from django import forms
from django.core.exceptions import ValidationError

from protege.messages import ModelMessage, Role
from resolvers import records
from resolvers.base import BadOptionsError, Resolver
from resolvers.forms import JSONObjectField, RoleField
from resolvers.registry import models, register_resolver, sources
from resolvers.selection import FILTER_VALUES, Selection, serializer_complaint
from resolvers.sources import source_named, withheld

if TYPE_CHECKING:
    from protege.context import Context

Loader = Callable[["Context"], Any]

MODEL_OPTIONS = ("filters", "order_by", "limit")


class OrderField(forms.Field):
    """Names of fields with commas between them; stored options may hold a list as well."""

    def to_python(self, value: Any) -> str:
        items = value if isinstance(value, list | tuple) else [value or ""]
        if not all(isinstance(item, str) for item in items):
            raise ValidationError("Enter names of fields with commas between them.", code="invalid")
        return ", ".join(items).strip()


class LoadRecordForm(forms.Form):
    source = forms.ChoiceField(required=False, help_text="Records that code has registered.")
    model = forms.ChoiceField(required=False, help_text="Or a model that code has registered.")
    filters = JSONObjectField(
        help_text='With a model: {"email__iexact": "message.from_address"}. A lookup that the registration lists, and '
        f"one of: {', '.join(FILTER_VALUES)}. A blank value finds nothing.",
    )
    order_by = OrderField(required=False, help_text="Such as -created_at, name.")
    limit = forms.IntegerField(required=False, min_value=1, help_text="Most records to read; empty: PROTEGE's limit.")
    serialize = forms.CharField(required=False, max_length=100, help_text="A registered method; empty: JSON.")
    role = RoleField()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["source"].choices = [("", "-"), *sources.choices()]  # type: ignore[attr-defined]  # a choice field
        self.fields["model"].choices = [("", "-"), *models.choices()]  # type: ignore[attr-defined]  # a choice field

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if not self.errors:
            check_options(cleaned)
        return cleaned


def check_options(options: Mapping[str, Any]) -> None:
    """`ValidationError` by option for whatever code has not registered."""
    if bool(options.get("source")) == bool(options.get("model")):
        raise ValidationError("Give exactly one of source and model.", code="one_of")
    limit = options.get("limit")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise ValidationError({"limit": "Enter a whole number from 1 on, or nothing."})
    if options.get("model"):
        Selection.from_options(options)
        return
    wrong = [name for name in MODEL_OPTIONS if options.get(name)]
    if wrong:
        raise ValidationError({wrong[0]: "This belongs to a model, not to a source."})
    complaint = serializer_complaint(options.get("serialize"), source_named(options["source"]).serializers)
    if complaint:
        raise ValidationError({"serialize": complaint})


@register_resolver
class LoadRecordResolver(Resolver):
    """Writes down what `loader(context)` returns: a model instance, a queryset, any iterable, or None.

    `serialize` is the name of a method on each record, a callable, or None for indented JSON of its concrete fields,
    where password-like ones never stand. At most `PROTEGE["RECORD_LIMIT"]` records are read.
    """

    name = "load_record"
    label = "Records"
    description = "Records of a registered source or model."
    options_form = LoadRecordForm

    _selection: Selection | None = None
    _withheld_as: str | None = None
    _limit: int | None = None

    def __init__(self, loader: Loader, *, role: str = Role.SYSTEM, serialize: records.Serialize = None) -> None:
        if not callable(loader):
            raise ValueError("LoadRecordResolver takes a callable `loader(context)`.")
        if serialize is not None and not isinstance(serialize, str) and not callable(serialize):
            raise ValueError("`serialize` is the name of a method, a callable, or None.")
        self.loader = loader
        self.role = Role(role)
        self.serialize = serialize

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Self:
        try:
            check_options(options)
        except ValidationError as error:
            raise BadOptionsError(cls.name, error) from error
        return cls._of_model(options) if options.get("model") else cls._of_source(options)

    @classmethod
    def _of_source(cls, options: Mapping[str, Any]) -> Self:
        source = source_named(options["source"])
        resolver = cls(source.load, role=_role(options), serialize=options.get("serialize") or None)
        resolver._withheld_as = source.name if source.cross_thread else None
        return resolver

    @classmethod
    def _of_model(cls, options: Mapping[str, Any]) -> Self:
        selection = Selection.from_options(options)
        resolver = cls(selection.rows, role=_role(options), serialize=selection.serialize)
        resolver._selection = selection
        resolver._withheld_as = selection.entry.name if selection.cross_thread else None
        resolver._limit = options.get("limit")
        return resolver

    def resolve(self, context: "Context") -> ModelMessage | None:
        if self._withheld_as is not None and withheld(self, context, what=self._withheld_as):
            return None
        found = self._found(context)
        fields = self._selection.entry.fields if self._selection is not None else None
        written = [(records.label(record), records.written(record, self.serialize, fields)) for record in found]
        said = [(source, text) for source, text in written if text]
        if not said:
            return None
        return self.message(self.role, "\n\n".join(text for _, text in said), source=[source for source, _ in said])

    def _found(self, context: "Context") -> list[Any]:
        limit = min(self._limit or context.config.record_limit, context.config.record_limit)
        found, more = records.taken(self.loader(context), limit)
        if more:
            self.notice("more_records", limit=limit)
        return found


def _role(options: Mapping[str, Any]) -> str:
    return str(options.get("role") or Role.SYSTEM)
