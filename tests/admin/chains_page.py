"""The chain editor as the tests fill it in."""

import json
from typing import Any

from personas.models import Persona
from protege.services import chains
from resolvers.models import ChainRevision, ChainStep
from tests.admin.pages import Data

PREFIX = "message_chain"


def give(persona: Persona, *texts: str, trigger: str = "message") -> None:
    """A chain that says these texts, as its next revision."""
    steps = [{"resolver": "load_text", "options": {"text": text}} for text in texts]
    chains.save(persona, trigger, steps, expected_revision=chains.current_revision(persona, trigger))


def texts(persona: Persona, trigger: str = "message") -> list[Any]:
    """What the steps say, in the order of the chain."""
    steps = ChainStep.objects.filter(persona=persona, trigger=trigger).order_by("position")
    return [step.options.get("text", step.resolver) for step in steps]


def positions(persona: Persona) -> list[int]:
    steps = ChainStep.objects.filter(persona=persona, trigger="message").order_by("position")
    return list(steps.values_list("position", flat=True))


def revisions(persona: Persona) -> int:
    return ChainRevision.objects.filter(persona=persona, trigger="message").count()


def put(data: Data, row: int, **fields: Any) -> None:
    """Type into one row; `None` takes a box's tick away."""
    for name, value in fields.items():
        key = f"{PREFIX}-{row}-{name}"
        if value is None:
            data.pop(key, None)
        else:
            data[key] = value


def say(data: Data, row: int, text: str, **fields: Any) -> None:
    """Make a row say `text`."""
    put(data, row, resolver="load_text", options=json.dumps({"text": text}), **fields)


def order_on_page(data: Data) -> list[str]:
    """The texts of the rows, by the numbers that stand beside them."""
    count = int(data[f"{PREFIX}-INITIAL_FORMS"])
    rows = [(int(data[f"{PREFIX}-{row}-position"]), data[f"{PREFIX}-{row}-options"]) for row in range(count)]
    return [json.loads(options)["text"] for _, options in sorted(rows)]
