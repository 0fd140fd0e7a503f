"""Forms of resolver options: the fields that built-ins share, and the check of stored options through a form."""

import json
from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Model, QuerySet

from protege.messages import Role

ROLES = [(role.value, role.value) for role in (Role.SYSTEM, Role.USER, Role.ASSISTANT)]


class NoOptionsForm(forms.Form):
    """For resolvers that have nothing to choose."""


class RoleField(forms.ChoiceField):
    """The role of the text; a blank one is the initial one."""

    def __init__(self, **kwargs: Any) -> None:
        defaults: dict[str, Any] = {"choices": ROLES, "required": False, "initial": Role.SYSTEM.value}
        super().__init__(**{**defaults, **kwargs})

    def clean(self, value: Any) -> Any:
        return super().clean(value) or self.initial


class _StrictDecoder(json.JSONDecoder):
    """Refuses what JSON has no meaning for, a key given twice, NaN or Infinity, and what nobody can read back."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(object_pairs_hook=_unique_keys, parse_constant=_no_constant, **kwargs)

    def decode(self, s: str, *args: Any) -> Any:
        try:
            return super().decode(s, *args)
        except RecursionError:
            raise json.JSONDecodeError("it is nested too deeply", "", 0) from None


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen = dict(pairs)
    if len(seen) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise json.JSONDecodeError(f"the key {twice!r} stands there twice", "", 0)
    return seen


def _no_constant(name: str) -> Any:
    raise json.JSONDecodeError(f"{name} is no JSON value", "", 0)


class JSONObjectField(forms.JSONField):
    """A JSON object, typed as text with readable letters; an empty field is `{}`.

    A key that stands twice and NaN are refused with a message instead of being lost or stored.
    """

    default_error_messages = {"invalid": "Enter valid JSON: %(why)s.", "object": "Enter a JSON object, such as {}."}
    empty_values = [None, "", {}]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"decoder": _StrictDecoder, "required": False, **kwargs})

    def to_python(self, value: Any) -> Any:
        if value in self.empty_values:
            return {}
        if isinstance(value, str):
            value = self._decoded(value)
        if not isinstance(value, dict):
            raise ValidationError(self.error_messages["object"], code="object")
        return json_value(value)

    def _decoded(self, text: str) -> Any:
        try:
            return json.loads(text, cls=_StrictDecoder)
        except json.JSONDecodeError as error:
            raise ValidationError(self.error_messages["invalid"], code="invalid", params={"why": error.msg}) from None

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Compare the values, so that another order of keys or other blanks are no change."""
        try:
            return bool(self.to_python(initial) != self.to_python(data))
        except ValidationError:
            return True


def json_value(value: Any) -> Any:
    """`value` as plain JSON: dates as ISO text, rows as primary keys.

    NaN and halves of emoji, which no database or provider takes, are a `ValidationError`.
    """
    try:
        text = json.dumps(value, cls=_OptionEncoder, allow_nan=False, ensure_ascii=False)
        return json.loads(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise ValidationError(f"This cannot be stored as JSON ({type(error).__name__}).", code="json") from None


class _OptionEncoder(DjangoJSONEncoder):
    def default(self, value: Any) -> Any:
        if isinstance(value, Model):
            return value.pk
        if isinstance(value, QuerySet):
            return [row.pk for row in value]
        return super().default(value)


def clean_by(form_class: type[forms.Form], options: object, *, owner: str) -> dict[str, Any]:
    """The given options, cleaned by the form, as JSON; absent ones take the field's initial while it checks.

    A wrong value is a `ValidationError` by field; an option that the form does not know is one that names the legal
    ones. `owner` names the resolver in it.
    """
    if not isinstance(options, Mapping):
        raise ValidationError(f"The options of {owner} must be a JSON object.", code="options")
    form = form_class()
    _refuse_unknown(options, form.fields, owner)
    _refuse_wrong_types(options, form.fields)
    absent = {name: form.get_initial_for_field(field, name) for name, field in form.fields.items()}
    bound = form_class(data={**absent, **options})
    if not bound.is_valid():
        raise ValidationError(bound.errors.as_data())
    return {name: _stored(name, bound.cleaned_data[name]) for name in options}


def _stored(name: str, value: Any) -> Any:
    try:
        return json_value(value)
    except ValidationError as error:
        raise ValidationError({name: error}) from None


def complaints(error: ValidationError) -> list[str]:
    """Each message of `error`, with the field it is about."""
    if not hasattr(error, "error_dict"):
        return error.messages
    fields = error.message_dict.items()
    return [text if name == NON_FIELD_ERRORS else f"{name}: {text}" for name, texts in fields for text in texts]


def _refuse_unknown(options: Mapping[str, Any], legal: Mapping[str, forms.Field], owner: str) -> None:
    unknown = sorted(str(name) for name in options if name not in legal)
    if unknown:
        known = f"Use: {', '.join(legal)}." if legal else "It has none."
        raise ValidationError(f"{owner} has no option {', '.join(map(repr, unknown))}. {known}", code="unknown_option")


def _refuse_wrong_types(options: Mapping[str, Any], fields: Mapping[str, forms.Field]) -> None:
    """Django's fields turn anything into text and truth; stored options are JSON and have types."""
    errors = {name: complaint for name, value in options.items() if (complaint := _type_complaint(fields[name], value))}
    if errors:
        raise ValidationError(errors)


def _type_complaint(field: forms.Field, value: Any) -> str | None:
    if isinstance(field, forms.JSONField | forms.MultipleChoiceField):
        return None
    if isinstance(field, forms.BooleanField) and not isinstance(value, bool):
        return "Enter true or false."
    if isinstance(field, forms.IntegerField) and isinstance(value, bool):
        return "Enter a number."
    if type(field) is forms.IntegerField and isinstance(value, float):
        return "Enter a whole number."
    if isinstance(field, forms.CharField | forms.ChoiceField) and not isinstance(value, str | None):
        return "Enter a text."
    return None
