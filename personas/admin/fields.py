"""Form fields for the lists and mappings of a persona, so that nobody has to type brackets."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from resolvers.forms import JSONObjectField

POLICIES = ("allow", "ask", "deny")


class LinesField(forms.CharField):
    """A list of texts, one a line."""

    widget = forms.Textarea

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("widget", forms.Textarea(attrs={"rows": 3, "cols": 60, "spellcheck": "false"}))
        super().__init__(**{"required": False, **kwargs})

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(map(str, value)) if isinstance(value, list) else value

    def clean(self, value: Any) -> Any:
        return lines(super().clean(value))

    def has_changed(self, initial: Any, data: Any) -> bool:
        return lines(self.prepare_value(initial) or "") != lines(data or "")


def lines(text: str) -> list[str]:
    """The lines that say something, each once."""
    return list(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))


class NamesField(forms.MultipleChoiceField):
    """Some of the names that code offers, as boxes to tick; a stored name that is gone stays and is marked."""

    widget = forms.CheckboxSelectMultiple

    def __init__(self, *, offered: Callable[[], Iterable[tuple[str, str]]], **kwargs: Any) -> None:
        super().__init__(**{"required": False, "choices": offered, **kwargs})
        self.offered = offered

    def keep(self, stored: Iterable[str]) -> None:
        """Offer the names that are stored as well."""
        choices = list(self.offered())
        known = {name for name, _ in choices}
        self.choices = [*choices, *((name, f"{name} (not installed)") for name in stored if name not in known)]

    def has_changed(self, initial: Any, data: Any) -> bool:
        return set(initial or []) != set(data or [])


class PoliciesField(JSONObjectField):
    """Tool names with what happens when the model calls one."""

    def clean(self, value: Any) -> Any:
        policies: Mapping[str, Any] = super().clean(value)
        wrong = [name for name, policy in policies.items() if policy not in POLICIES]
        if wrong:
            raise ValidationError(f"{wrong[0]!r} is {policies[wrong[0]]!r}. Use one of: {', '.join(POLICIES)}.")
        return policies
