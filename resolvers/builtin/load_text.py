"""A text that code makes, or that stands in the step itself."""

import hashlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self

from django import forms
from django.core.exceptions import ValidationError

from protege.exceptions import ResolverError
from protege.messages import ModelMessage, Role
from resolvers import placeholders
from resolvers.base import Resolver
from resolvers.forms import RoleField
from resolvers.registry import register_resolver, register_source, sources
from resolvers.sources import source_named, withheld

if TYPE_CHECKING:
    from protege.context import Context

TextFrom = Callable[["Context"], "str | None"]


class LoadTextForm(forms.Form):
    text = forms.CharField(
        required=False,
        strip=False,
        max_length=placeholders.OUTPUT_LIMIT,
        widget=forms.Textarea,
        help_text=f"May use {', '.join(f'{{{{ {name} }}}}' for name in placeholders.names_for(Role.SYSTEM))}; with "
        f"another role than system also {', '.join(f'{{{{ {name} }}}}' for name in placeholders.FROM_MAIL)}.",
    )
    source = forms.ChoiceField(required=False, help_text="A text that code has registered, instead.")
    role = RoleField()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["source"].choices = [("", "-"), *sources.choices()]  # type: ignore[attr-defined]  # a choice field

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        text = cleaned.get("text") or ""
        if "text" not in self.errors and "source" not in self.errors and bool(text.strip()) == bool(cleaned["source"]):
            raise ValidationError("Give exactly one of text and source.", code="one_of")
        try:
            placeholders.validate(text, cleaned.get("role") or Role.SYSTEM)
        except ValidationError as error:
            self.add_error("text", error)
        return cleaned


@register_resolver
class LoadTextResolver(Resolver):
    """Says what `text_from(context)` gives, stripped; a blank text or None says nothing.

    In the admin it is a registered source, or a literal text with `{{ persona.name }}` placeholders.
    """

    name = "load_text"
    label = "Text"
    description = "A text written here, or one that code has registered."
    options_form = LoadTextForm

    _cross_thread: str | None = None
    _source: str | None = None

    def __init__(self, text_from: TextFrom, *, role: str = Role.SYSTEM) -> None:
        if not callable(text_from):
            raise ValueError("LoadTextResolver takes a callable `text_from(context)`; for a fixed text, a lambda.")
        self.text_from = text_from
        self.role = Role(role)

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Self:
        text, name = options.get("text") or "", options.get("source") or ""
        role = Role(options.get("role") or Role.SYSTEM)
        if bool(text.strip()) == bool(name):
            raise ResolverError("A load_text step has exactly one of text and source.", code="bad_options")
        if name:
            return cls._of_source(name, role)
        return cls(lambda context: placeholders.fill(text, role, context), role=role)

    @classmethod
    def _of_source(cls, name: str, role: Role) -> Self:
        source = source_named(name)
        resolver = cls(source.load, role=role)
        resolver._source = f"source:{name}"
        resolver._cross_thread = name if source.cross_thread else None
        return resolver

    def resolve(self, context: "Context") -> ModelMessage | None:
        if self._cross_thread is not None and withheld(self, context, what=self._cross_thread):
            return None
        text = self.text_from(context)
        if text is not None and not isinstance(text, str):
            raise ResolverError(
                f"`text_from` returned {type(text).__name__}. It returns a text or None.", code="bad_return"
            )
        text = (text or "").strip()
        return self.message(self.role, text, source=self._source or _label(text)) if text else None


def _label(text: str) -> str:
    """A text that has no name is known by its hash, so that two runs can be compared."""
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    return f"text@{digest[:12]}"


@register_source("persona-instructions", label="The persona's instructions")
def persona_instructions(context: "Context") -> str:
    return context.persona.instructions


@register_source("responsibility-instructions", label="The responsibility's instructions")
def responsibility_instructions(context: "Context") -> str | None:
    return context.responsibility.instructions if context.responsibility is not None else None
