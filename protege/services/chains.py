"""Saving chains. `save` is the only writer of steps; every save is a numbered revision."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Max

from personas.models import Persona
from protege.exceptions import ProtegeError, StaleRevisionError
from resolvers.models import ChainRevision, ChainStep, Trigger
from resolvers.options import clean_options

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

ON_ERROR = ("fail", "skip")
STEP_KEYS = ("resolver", "options", "enabled", "on_error")

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
    steps: Sequence[Mapping[str, Any]],
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


def clean_steps(steps: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """`steps` in full form and checked; `ValidationError` holds `step N: ...` for everything that is wrong."""
    cleaned, complaints = [], []
    for position, step in enumerate(steps):
        try:
            cleaned.append(_clean_step(step))
        except ValidationError as error:
            complaints += [f"step {position}: {message}" for message in _messages(error)]
        except ProtegeError as error:
            complaints.append(f"step {position}: {error}")
    if complaints:
        raise ValidationError(complaints)
    return cleaned


def _clean_step(step: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(step, Mapping):
        raise ValidationError("a step is an object with resolver, options, enabled and on_error.")
    unknown = sorted(set(step) - set(STEP_KEYS))
    if unknown:
        raise ValidationError(f"unknown key {unknown[0]!r}; a step has {', '.join(STEP_KEYS)}.")
    on_error = step.get("on_error", "fail")
    if on_error not in ON_ERROR:
        raise ValidationError(f"on_error is {on_error!r}; use fail or skip.")
    enabled = step.get("enabled", True)
    if not isinstance(enabled, bool):
        raise ValidationError("enabled must be true or false.")
    key = str(step.get("resolver", ""))
    options = clean_options(key, step.get("options") or {})
    return {"resolver": key, "options": options, "enabled": enabled, "on_error": on_error}


def _messages(error: ValidationError) -> list[str]:
    if hasattr(error, "error_dict"):
        return [f"{field}: {text}" for field, texts in error.message_dict.items() for text in texts]
    return list(error.messages)


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
