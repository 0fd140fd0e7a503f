"""Saving chains. `save` is the only writer of steps; every save is a numbered revision."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Max

from personas.models import Persona
from protege.exceptions import ProtegeError, StaleRevisionError
from resolvers.forms import complaints
from resolvers.models import ChainRevision, ChainStep, Trigger
from resolvers.options import clean_options, step_shape

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

DEFAULT_CHAINS: dict[str, list[dict[str, Any]]] = {
    Trigger.MESSAGE: [
        {"resolver": "load_text", "options": {"text": "{{ persona.instructions }}"}},
        {"resolver": "thread_history", "options": {}},
    ],
    Trigger.RESPONSIBILITY: [
        {"resolver": "load_text", "options": {"text": "{{ persona.instructions }}"}},
        {"resolver": "load_text", "options": {"text": "{{ responsibility.instructions }}", "role": "user"}},
    ],
}
"""What a new persona starts with."""


def current_revision(persona: Persona, trigger: str) -> int:
    """The number of the last revision, 0 before the first."""
    last = ChainRevision.objects.filter(persona=persona, trigger=trigger).aggregate(last=Max("number"))["last"]
    return last or 0


def save(
    persona: Persona,
    trigger: str,
    steps: Sequence[Any],
    *,
    expected_revision: int,
    author: "AbstractBaseUser | None" = None,
    note: str = "",
) -> ChainRevision:
    """Replace a persona's chain by `steps`, in one transaction, and keep them as the next revision.

    Raises `ValidationError` with one message a wrong step, and `StaleRevisionError` when `expected_revision` is not
    the last number: the unique number decides, also between two editors at the same moment.
    """
    cleaned = clean_steps(steps)
    try:
        with transaction.atomic():
            revision = _next_revision(persona, trigger, cleaned, expected_revision, author, note)
            ChainStep.objects.filter(persona=persona, trigger=trigger).delete()
            ChainStep.objects.bulk_create(
                ChainStep(persona=persona, trigger=trigger, position=position, **step)
                for position, step in enumerate(cleaned)
            )
    except IntegrityError:
        raise StaleRevisionError(expected=expected_revision, current=current_revision(persona, trigger)) from None
    return revision


def save_defaults(persona: Persona, *, author: "AbstractBaseUser | None" = None) -> None:
    """Give a persona the default chain for every trigger that has none yet."""
    for trigger, steps in DEFAULT_CHAINS.items():
        if current_revision(persona, trigger) == 0:
            save(persona, trigger, steps, expected_revision=0, author=author, note="Default chain")


def clean_steps(steps: Sequence[Any]) -> list[dict[str, Any]]:
    """`steps` in full form and checked; `ValidationError` holds `Step N: ...`, from 1, for all that is wrong."""
    cleaned, wrong = [], []
    for index, step in enumerate(steps):
        try:
            shaped = step_shape(step, index)
            cleaned.append({**shaped, "options": _clean_options(shaped, index)})
        except ValidationError as error:
            wrong += error.messages
    if wrong:
        raise ValidationError(wrong)
    return cleaned


def _clean_options(step: Mapping[str, Any], index: int) -> dict[str, Any]:
    try:
        return clean_options(step["resolver"], step["options"])
    except ValidationError as error:
        raise ValidationError([f"Step {index + 1}: {message}" for message in complaints(error)]) from None
    except ProtegeError as error:
        raise ValidationError(f"Step {index + 1}: {error}") from None


def _next_revision(
    persona: Persona,
    trigger: str,
    steps: list[dict[str, Any]],
    expected: int,
    author: "AbstractBaseUser | None",
    note: str,
) -> ChainRevision:
    current = current_revision(persona, trigger)
    if current != expected:
        raise StaleRevisionError(expected=expected, current=current)
    return ChainRevision.objects.create(
        persona=persona,
        trigger=trigger,
        number=expected + 1,
        steps=steps,
        author=author,  # type: ignore[misc]  # the host's own user model
        author_label=author.get_username() if author is not None else "",
        note=note,
    )
