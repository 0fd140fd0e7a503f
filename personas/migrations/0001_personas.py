import django.core.validators
import django.db.models.deletion
import django.db.models.functions.text
from django.db import migrations, models

import personas.models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Persona",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "tenant",
                    models.CharField(
                        default="default",
                        editable=False,
                        help_text="Owner of everything this persona has.",
                        max_length=100,
                    ),
                ),
                (
                    "slug",
                    models.SlugField(help_text="Short stable name, for prompts' paths and commands.", max_length=100),
                ),
                ("name", models.CharField(help_text="Name shown to the people it writes to.", max_length=200)),
                (
                    "address",
                    models.EmailField(help_text="Primary e-mail address; it answers from here.", max_length=254),
                ),
                (
                    "instructions",
                    models.TextField(blank=True, help_text="What the model is told about who it is and how it works."),
                ),
                (
                    "model",
                    models.CharField(
                        help_text="Model string, such as openai-chat:gpt-5-mini or anthropic:claude-sonnet-4-5.",
                        max_length=200,
                    ),
                ),
                (
                    "fallback_models",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="Model strings to turn to, in order.",
                        validators=[personas.models.validate_names],
                    ),
                ),
                (
                    "context_window",
                    models.PositiveIntegerField(
                        blank=True, help_text="Tokens of the model's window; empty for the known value.", null=True
                    ),
                ),
                (
                    "max_output_tokens",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Longest answer in tokens; empty: 4,096.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                (
                    "tools",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="Names of the tools it may call.",
                        validators=[personas.models.validate_names],
                    ),
                ),
                (
                    "tool_policies",
                    models.JSONField(blank=True, default=dict, help_text="Tool name to allow, ask or deny."),
                ),
                (
                    "history_scopes",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="Owner scopes its history tool may use.",
                        validators=[personas.models.validate_names],
                    ),
                ),
                (
                    "reply_mode",
                    models.CharField(
                        choices=[
                            ("auto", "auto: answers go out"),
                            ("draft", "draft: a person approves each answer"),
                            ("off", "off: mail is stored and nothing is answered"),
                        ],
                        default="auto",
                        max_length=10,
                    ),
                ),
                (
                    "timezone",
                    models.CharField(
                        default="UTC",
                        help_text="IANA name; used for dates it is told.",
                        max_length=100,
                        validators=[personas.models.validate_timezone],
                    ),
                ),
                ("signature", models.TextField(blank=True, help_text="Put under every mail it sends.")),
                (
                    "allowed_senders",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="Patterns such as *@client.example; empty: all.",
                        validators=[personas.models.validate_names],
                    ),
                ),
                (
                    "denied_senders",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="Patterns; they win over every other rule.",
                        validators=[personas.models.validate_names],
                    ),
                ),
                (
                    "staff_senders",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="Patterns of your own people.",
                        validators=[personas.models.validate_names],
                    ),
                ),
                (
                    "form_senders",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="Patterns of contact forms that write for others.",
                        validators=[personas.models.validate_names],
                    ),
                ),
                (
                    "own_lists",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="Patterns of mailing lists in front of it.",
                        validators=[personas.models.validate_names],
                    ),
                ),
                (
                    "holding_reply",
                    models.TextField(blank=True, help_text="One neutral sentence sent when a run fails; empty: none."),
                ),
                (
                    "quote_history",
                    models.BooleanField(default=False, help_text="Quote the mail that is answered below the answer."),
                ),
                (
                    "monthly_budget",
                    models.DecimalField(
                        blank=True,
                        decimal_places=2,
                        help_text="Highest cost a month; empty: no limit.",
                        max_digits=12,
                        null=True,
                    ),
                ),
                (
                    "is_active",
                    models.BooleanField(default=True, help_text="Off: its mail is kept for later and not answered."),
                ),
            ],
            options={
                "ordering": ["tenant", "slug"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "slug"),
                        name="persona_slug_unique",
                        violation_error_message="This tenant has a persona with that slug already.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("tenant", ""), _negated=True), name="persona_tenant_not_empty"
                    ),
                    models.UniqueConstraint(
                        django.db.models.functions.text.Lower("address"),
                        name="persona_address_unique",
                        violation_error_message="This address belongs to a persona already.",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PersonaAddress",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("address", models.EmailField(help_text="Lower case.", max_length=254)),
                (
                    "is_primary",
                    models.BooleanField(default=False, editable=False, help_text="Mirrors the persona's own address."),
                ),
                (
                    "persona",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="addresses",
                        to="protege_personas.persona",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "persona addresses",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("address",),
                        name="personaaddress_unique",
                        violation_error_message="This address belongs to a persona already.",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("is_primary", True)), fields=("persona",), name="personaaddress_one_primary"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("address", django.db.models.functions.text.Lower("address"))),
                        name="personaaddress_lower_case",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Responsibility",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("slug", models.SlugField(max_length=100)),
                ("name", models.CharField(max_length=200)),
                ("instructions", models.TextField(help_text="What is to be done; the last thing the model reads.")),
                (
                    "schedule",
                    models.CharField(
                        help_text="Cron expression in the persona's time zone: 0 8 * * 1-5",
                        max_length=100,
                        validators=[personas.models.validate_schedule],
                    ),
                ),
                (
                    "recipients",
                    models.JSONField(
                        blank=True, default=list, help_text="Addresses.", validators=[personas.models.validate_names]
                    ),
                ),
                ("subject", models.CharField(blank=True, max_length=300)),
                ("enabled", models.BooleanField(default=True)),
                ("next_run_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("last_run_at", models.DateTimeField(blank=True, editable=False, null=True)),
                (
                    "persona",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="responsibilities",
                        to="protege_personas.persona",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "responsibilities",
                "ordering": ["persona", "slug"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("enabled", True)), fields=["next_run_at"], name="responsibility_due"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("persona", "slug"),
                        name="responsibility_slug_unique",
                        violation_error_message="This persona has a responsibility with that slug already.",
                    )
                ],
            },
        ),
    ]
