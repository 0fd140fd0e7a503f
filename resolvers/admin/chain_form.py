"""One row of the chain editor."""

import json
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms.fields import InvalidJSONInput

from protege.exceptions import UnknownResolverError
from protege.untrusted import storable
from resolvers.forms import JSONObjectField, complaints
from resolvers.models import OnError
from resolvers.options import clean_options
from resolvers.registry import resolvers


class OptionsField(JSONObjectField):
    """The options as text: readable letters, one option a line, and kept as it was typed when something is wrong."""

    widget = forms.Textarea

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, InvalidJSONInput):
            return value
        return json.dumps(value, ensure_ascii=False, indent=2) if value else "{}"

    def bound_data(self, data: Any, initial: Any) -> Any:
        # What was typed is shown again as it was typed, whether it is JSON or not.
        return InvalidJSONInput(data or "")

    def clean(self, value: Any) -> Any:
        cleaned = super().clean(value)
        if storable(cleaned) != cleaned:
            raise ValidationError(
                "The text holds a NUL or half a character, which cannot be stored.", code="unstorable"
            )
        return cleaned


class StepForm(forms.Form):
    """A step as it is typed. Whether a resolver takes the options is checked when the chain has changed."""

    use_required_attribute = False
    is_new = True

    position = forms.IntegerField(required=False, widget=forms.NumberInput(attrs={"min": 1, "class": "pr-position"}))
    resolver = forms.ChoiceField(required=False, widget=forms.Select(attrs={"class": "pr-resolver"}))
    options = OptionsField(
        initial=dict,
        widget=forms.Textarea(attrs={"rows": 3, "class": "pr-options", "spellcheck": "false"}),
    )
    enabled = forms.BooleanField(required=False, initial=True)
    on_error = forms.ChoiceField(choices=OnError.choices, initial=OnError.FAIL, label="On error")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": "", **kwargs})
        self.fields["resolver"].choices = self._resolver_choices()  # type: ignore[attr-defined]  # a choice field

    @property
    def key(self) -> str:
        """The resolver as the row shows it."""
        return str(self["resolver"].value() or "")

    @property
    def is_unknown(self) -> bool:
        """True for a resolver that no installed app registers: the row stays, and shows it."""
        return bool(self.key) and self.key not in resolvers

    def _resolver_choices(self) -> list[tuple[str, str]]:
        choices = [("", "-"), *((key, f"{label} ({key})") for key, label in resolvers.choices())]
        stored = {self.initial.get("resolver"), self.data.get(self.add_prefix("resolver")) if self.is_bound else None}
        unknown = sorted(str(key) for key in stored if key and key not in resolvers)
        return [*choices, *((key, f"{key} (not installed)") for key in unknown)]

    def step(self) -> dict[str, Any] | None:
        """The step as `chains.save` takes it; None for a row that was left blank."""
        if not self.cleaned_data.get("resolver"):
            return None
        return {name: self.cleaned_data[name] for name in ("resolver", "options", "enabled", "on_error")}

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if not cleaned.get("resolver") and not cleaned.get("DELETE") and "resolver" not in self.errors:
            self.add_error("resolver", "Choose what this step does, or delete the step.")
        return cleaned

    def check(self) -> dict[str, Any]:
        """The step with its options as the resolver's form cleans them; what is wrong stands beside the field."""
        step = self.step() or {}
        try:
            return {**step, "options": clean_options(step["resolver"], step["options"])}
        except UnknownResolverError as error:
            self.add_error("resolver", str(error))
        except ValidationError as error:
            self.add_error("options", ValidationError(complaints(error)))
        return step
