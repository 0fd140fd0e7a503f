"""A persona from the shell, with the default chains."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.utils.text import slugify

from personas.models import Persona, ReplyMode
from protege import conf
from protege.exceptions import ConfigurationError
from protege.inference.naming import check_model
from protege.principals import DEFAULT_TENANT
from protege.services import chains
from resolvers.forms import complaints


class Command(BaseCommand):
    help = "Create a persona with an address, a model and the default chains."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("address", help="the e-mail address people write to")
        parser.add_argument("--name", required=True, help="the name people see")
        parser.add_argument("--model", required=True, help="such as anthropic:claude-sonnet-4-5 or offline:echo")
        parser.add_argument("--slug", help="short stable name (default: made from the name)")
        parser.add_argument("--tenant", default=DEFAULT_TENANT, help=f"owner (default: {DEFAULT_TENANT})")
        parser.add_argument("--instructions", default="", help="what it is told about itself, or @FILE to read them")
        parser.add_argument("--tools", nargs="*", default=[], metavar="NAME", help="tools it may call")
        parser.add_argument("--reply-mode", choices=ReplyMode.values, default=ReplyMode.AUTO)

    def handle(self, *args: Any, **options: Any) -> None:
        persona = Persona(
            tenant=options["tenant"],
            slug=options["slug"] or slugify(options["name"]),
            name=options["name"],
            address=options["address"].lower(),
            model=options["model"],
            instructions=self._text(options["instructions"]),
            tools=options["tools"],
            reply_mode=options["reply_mode"],
        )
        try:
            check_model(persona.model, conf.load())
            persona.full_clean()
        except ValidationError as error:
            raise CommandError("\n".join(complaints(error))) from None
        except ConfigurationError as error:
            raise CommandError(str(error)) from None
        with transaction.atomic():
            persona.save()
            chains.save_defaults(persona)
        self.stdout.write(f"Created persona {persona.pk}, {persona}, at {persona.address}.")

    def _text(self, given: str) -> str:
        if not given.startswith("@"):
            return given
        try:
            return Path(given[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{given[1:]} cannot be read as UTF-8 text: {error}.") from None
