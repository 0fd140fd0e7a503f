"""The tables of who speaks."""

import zoneinfo
from datetime import UTC, datetime
from typing import Any

from cronsim import CronSim, CronSimError
from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models, transaction
from django.db.models.functions import Lower

from protege.principals import DEFAULT_TENANT, Principal, Scope


def validate_timezone(value: str) -> None:
    """Accept the names of the IANA time zone database."""
    try:
        zoneinfo.ZoneInfo(value)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ValidationError(f"{value!r} is no time zone. Use a name such as Europe/Vienna or UTC.") from None


def validate_schedule(value: str) -> None:
    """Accept cron expressions of five fields."""
    try:
        CronSim(value, datetime.now(UTC))
    except CronSimError as error:
        raise ValidationError(f"{value!r} is no cron expression ({error}). Weekdays at eight: 0 8 * * 1-5") from None


def validate_names(value: object) -> None:
    """Accept a JSON list of texts."""
    if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
        raise ValidationError('Enter a JSON list of texts, such as ["a", "b"].')


class ReplyMode(models.TextChoices):
    AUTO = "auto", "auto: answers go out"
    DRAFT = "draft", "draft: a person approves each answer"
    OFF = "off", "off: mail is stored and nothing is answered"


class PersonaQuerySet(models.QuerySet["Persona"]):
    def visible_to(self, principal: Principal, scope: Scope) -> "PersonaQuerySet":
        """The personas that `principal` may see in `scope`; an identity that is missing raises `ScopeError`."""
        principal.require(scope)
        if scope is Scope.GLOBAL:
            return self
        if scope is Scope.SELF:
            return self.filter(tenant=principal.tenant, pk=principal.persona)
        return self.filter(tenant=principal.tenant)

    def at(self, address: str) -> "PersonaQuerySet":
        """The persona that has `address` as its primary one or as an alias, ignoring case."""
        return self.filter(addresses__address=address.lower())


class Persona(models.Model):
    """An AI colleague: an address, a voice, a model and what it may do."""

    tenant = models.CharField(
        max_length=100, default=DEFAULT_TENANT, editable=False, help_text="Owner of everything this persona has."
    )
    slug = models.SlugField(max_length=100, help_text="Short stable name, for prompts' paths and commands.")
    name = models.CharField(max_length=200, help_text="Name shown to the people it writes to.")
    address = models.EmailField(help_text="Primary e-mail address; it answers from here.")
    instructions = models.TextField(blank=True, help_text="What the model is told about who it is and how it works.")
    model = models.CharField(
        max_length=200, help_text="Model string, such as openai-chat:gpt-5-mini or anthropic:claude-sonnet-4-5."
    )
    fallback_models = models.JSONField(
        default=list, blank=True, validators=[validate_names], help_text="Model strings to turn to, in order."
    )
    context_window = models.PositiveIntegerField(
        null=True, blank=True, help_text="Tokens of the model's window; empty for the known value."
    )
    max_output_tokens = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)], help_text="Longest answer in tokens; empty: 4,096."
    )
    tools = models.JSONField(
        default=list, blank=True, validators=[validate_names], help_text="Names of the tools it may call."
    )
    tool_policies = models.JSONField(default=dict, blank=True, help_text="Tool name to allow, ask or deny.")
    history_scopes = models.JSONField(
        default=list, blank=True, validators=[validate_names], help_text="Owner scopes its history tool may use."
    )
    reply_mode = models.CharField(max_length=10, choices=ReplyMode.choices, default=ReplyMode.AUTO)
    timezone = models.CharField(
        max_length=100, default="UTC", validators=[validate_timezone], help_text="IANA name; used for dates it is told."
    )
    signature = models.TextField(blank=True, help_text="Put under every mail it sends.")
    allowed_senders = models.JSONField(
        default=list,
        blank=True,
        validators=[validate_names],
        help_text="Patterns such as *@client.example; empty: all.",
    )
    denied_senders = models.JSONField(
        default=list, blank=True, validators=[validate_names], help_text="Patterns; they win over every other rule."
    )
    staff_senders = models.JSONField(
        default=list, blank=True, validators=[validate_names], help_text="Patterns of your own people."
    )
    form_senders = models.JSONField(
        default=list,
        blank=True,
        validators=[validate_names],
        help_text="Patterns of contact forms that write for others.",
    )
    own_lists = models.JSONField(
        default=list, blank=True, validators=[validate_names], help_text="Patterns of mailing lists in front of it."
    )
    holding_reply = models.TextField(blank=True, help_text="One neutral sentence sent when a run fails; empty: none.")
    quote_history = models.BooleanField(default=False, help_text="Quote the mail that is answered below the answer.")
    monthly_budget = models.DecimalField(
        max_digits=12, decimal_places=2, null=True, blank=True, help_text="Highest cost a month; empty: no limit."
    )
    is_active = models.BooleanField(default=True, help_text="Off: its mail is kept for later and not answered.")

    objects = PersonaQuerySet.as_manager()

    class Meta:
        ordering = ["tenant", "slug"]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "slug"],
                name="persona_slug_unique",
                violation_error_message="This tenant has a persona with that slug already.",
            ),
            models.CheckConstraint(condition=~models.Q(tenant=""), name="persona_tenant_not_empty"),
            models.UniqueConstraint(
                Lower("address"),
                name="persona_address_unique",
                violation_error_message="This address belongs to a persona already.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tenant}/{self.slug}" if self.tenant != DEFAULT_TENANT else self.slug

    def clean(self) -> None:
        super().clean()
        self.address = self.address.lower()
        if PersonaAddress.objects.filter(address=self.address).exclude(persona_id=self.pk).exists():
            raise ValidationError({"address": "This address belongs to another persona, as primary or as alias."})
        self._refuse_another_tenant()

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Store the persona and mirror its address into the primary `PersonaAddress` row."""
        self.address = self.address.lower()
        self._refuse_another_tenant()
        with transaction.atomic():
            super().save(*args, **kwargs)
            fields = kwargs.get("update_fields")
            if fields is None or "address" in fields:
                self._mirror_address()

    def _refuse_another_tenant(self) -> None:
        """A persona's threads carry its tenant: moving it would show them to others."""
        if self.pk and Persona.objects.filter(pk=self.pk).exclude(tenant=self.tenant).exists():
            raise ValidationError({"tenant": "The tenant of a persona cannot be changed. Make a new persona there."})

    def _mirror_address(self) -> None:
        if self.addresses.filter(address=self.address, is_primary=True).exists():
            return
        self.addresses.filter(models.Q(is_primary=True) | models.Q(address=self.address)).delete()
        self.addresses.create(address=self.address, is_primary=True)

    @property
    def aliases(self) -> list[str]:
        """The addresses it is reached at besides the primary one."""
        return list(self.addresses.filter(is_primary=False).order_by("address").values_list("address", flat=True))


class PersonaAddress(models.Model):
    """One address of a persona; no address belongs to two personas, in whatever tenant."""

    persona = models.ForeignKey(Persona, on_delete=models.CASCADE, related_name="addresses")
    address = models.EmailField(help_text="Lower case.")
    is_primary = models.BooleanField(default=False, editable=False, help_text="Mirrors the persona's own address.")

    class Meta:
        verbose_name_plural = "persona addresses"
        constraints = [
            models.UniqueConstraint(
                fields=["address"],
                name="personaaddress_unique",
                violation_error_message="This address belongs to a persona already.",
            ),
            models.UniqueConstraint(
                fields=["persona"], condition=models.Q(is_primary=True), name="personaaddress_one_primary"
            ),
            models.CheckConstraint(condition=models.Q(address=Lower("address")), name="personaaddress_lower_case"),
        ]

    def __str__(self) -> str:
        return f"address {self.pk}"

    def clean(self) -> None:
        super().clean()
        self.address = self.address.lower()

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.address = self.address.lower()
        super().save(*args, **kwargs)


class Responsibility(models.Model):
    """Something that a persona does on a schedule, without a mail."""

    persona = models.ForeignKey(Persona, on_delete=models.CASCADE, related_name="responsibilities")
    slug = models.SlugField(max_length=100)
    name = models.CharField(max_length=200)
    instructions = models.TextField(help_text="What is to be done; the last thing the model reads.")
    schedule = models.CharField(
        max_length=100,
        validators=[validate_schedule],
        help_text="Cron expression in the persona's time zone: 0 8 * * 1-5",
    )
    recipients = models.JSONField(default=list, blank=True, validators=[validate_names], help_text="Addresses.")
    subject = models.CharField(max_length=300, blank=True)
    enabled = models.BooleanField(default=True)
    next_run_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_run_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ["persona", "slug"]
        verbose_name_plural = "responsibilities"
        constraints = [
            models.UniqueConstraint(
                fields=["persona", "slug"],
                name="responsibility_slug_unique",
                violation_error_message="This persona has a responsibility with that slug already.",
            ),
        ]
        indexes = [models.Index(fields=["next_run_at"], name="responsibility_due", condition=models.Q(enabled=True))]

    def __str__(self) -> str:
        return f"responsibility {self.slug}"
