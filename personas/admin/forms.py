"""The forms of personas, aliases and responsibilities."""

from typing import Any

from django import forms
from django.contrib.admin.widgets import AdminTextareaWidget
from django.core.exceptions import ValidationError
from django.forms.models import BaseInlineFormSet

from personas.admin.fields import LinesField, NamesField, PoliciesField
from personas.models import Persona, PersonaAddress, Responsibility
from protege.principals import Scope
from protege.toolkit import tools

PERSONA_FIELDS = (
    "name", "slug", "address", "is_active", "instructions", "signature", "timezone", "model", "fallback_models",
    "context_window", "max_output_tokens", "monthly_budget", "reply_mode", "holding_reply", "quote_history", "tools",
    "tool_policies", "history_scopes", "allowed_senders", "denied_senders", "staff_senders", "form_senders",
    "own_lists",
)  # fmt: skip

PATTERNS = "One pattern a line, such as *@client.example. "


def _tool_choices() -> list[tuple[str, str]]:
    return [(name, f"{name}: {entry.description}") for name, entry in tools.items()]


def _scope_choices() -> list[tuple[str, str]]:
    return [(scope.value, scope.value) for scope in Scope]


def _text(rows: int) -> AdminTextareaWidget:
    return AdminTextareaWidget(attrs={"rows": rows})


class PersonaForm(forms.ModelForm):
    """`tenant` is set by the page: a new persona belongs to whoever makes it."""

    tenant: str = ""

    fallback_models = LinesField(help_text="Model strings to turn to, in order, one a line.")
    tools = NamesField(offered=_tool_choices, help_text="What it may call.")
    tool_policies = PoliciesField(
        initial=dict,
        widget=forms.Textarea(attrs={"rows": 3, "cols": 60, "spellcheck": "false"}),
        help_text='Tool name to allow, ask or deny, such as {"send_email": "ask"}.',
    )
    history_scopes = NamesField(offered=_scope_choices, help_text="Owner scopes its history tool may use.")
    allowed_senders = LinesField(help_text=f"{PATTERNS}Empty: everybody.")
    denied_senders = LinesField(help_text=f"{PATTERNS}They win over every other rule.")
    staff_senders = LinesField(help_text=f"{PATTERNS}Your own people.")
    form_senders = LinesField(help_text=f"{PATTERNS}Contact forms that write for others.")
    own_lists = LinesField(help_text=f"{PATTERNS}Mailing lists in front of it.")

    class Meta:
        model = Persona
        fields = PERSONA_FIELDS
        widgets = {"instructions": _text(14), "signature": _text(4), "holding_reply": _text(2)}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance.pk and self.tenant:
            self.instance.tenant = self.tenant
        for name in ("tools", "history_scopes"):
            field = self.fields.get(name)
            if isinstance(field, NamesField):
                field.keep(getattr(self.instance, name) or [])

    def clean_slug(self) -> str:
        # The tenant is no field of the form, so that Django leaves the constraint over both to the database.
        slug: str = self.cleaned_data["slug"]
        if Persona.objects.filter(tenant=self.instance.tenant, slug=slug).exclude(pk=self.instance.pk).exists():
            raise ValidationError("This tenant has a persona with that slug already.", code="unique")
        return slug


class AliasForm(forms.ModelForm):
    class Meta:
        model = PersonaAddress
        fields = ("address",)

    def clean_address(self) -> str:
        address: str = self.cleaned_data["address"]
        return address.lower()


class AliasFormSet(BaseInlineFormSet):
    def clean(self) -> None:
        super().clean()
        primary = (self.instance.address or "").lower()
        for form in self.forms:
            cleaned = getattr(form, "cleaned_data", {})
            if cleaned.get("address") == primary and not cleaned.get("DELETE"):
                form.add_error("address", "This is its primary address already.")


class ResponsibilityForm(forms.ModelForm):
    recipients = LinesField(help_text="One address a line.")

    class Meta:
        model = Responsibility
        fields = ("persona", "name", "slug", "instructions", "schedule", "recipients", "subject", "enabled")
        widgets = {"instructions": _text(10)}

    def clean_recipients(self) -> list[str]:
        addresses: list[str] = self.cleaned_data["recipients"]
        for address in addresses:
            forms.EmailField().clean(address)
        return addresses
