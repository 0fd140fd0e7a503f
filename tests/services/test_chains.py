from typing import Any

import pytest
from django.core.exceptions import ValidationError

from personas.models import Persona
from protege.exceptions import StaleRevisionError
from protege.services import chains
from resolvers.models import ChainRevision
from tests.factories import PersonaFactory, UserFactory

pytestmark = pytest.mark.django_db

TEXT = {"resolver": "load_text", "options": {"text": "You are {{ persona.name }}."}}
HISTORY = {"resolver": "thread_history", "options": {"limit": 5}, "enabled": False, "on_error": "skip"}


@pytest.fixture
def persona() -> Persona:
    return PersonaFactory()


def stored(persona: Persona) -> list[dict[str, Any]]:
    return [step.to_dict() for step in persona.chain_steps.filter(trigger="message").order_by("position")]


def test_a_save_is_the_next_revision_and_the_steps(persona: Persona) -> None:
    author = UserFactory(username="eva")
    revision = chains.save(persona, "message", [TEXT, HISTORY], expected_revision=0, author=author, note="First")
    full = [{**TEXT, "enabled": True, "on_error": "fail"}, HISTORY]
    assert stored(persona) == revision.steps == full
    assert (revision.number, revision.author, revision.author_label, revision.note) == (1, author, "eva", "First")
    assert list(persona.chain_steps.order_by("position").values_list("position", flat=True)) == [0, 1]


def test_the_two_chains_of_a_persona_are_apart(persona: Persona) -> None:
    chains.save(persona, "message", [TEXT], expected_revision=0)
    chains.save(persona, "responsibility", [TEXT], expected_revision=0)
    chains.save(persona, "message", [], expected_revision=1)
    assert persona.chain_steps.get().trigger == "responsibility"
    assert chains.current_revision(persona, "message") == 2


@pytest.mark.parametrize("expected", [0, 2, -1])
def test_d10_a_stale_page_overwrites_nothing(persona: Persona, expected: int) -> None:
    chains.save(persona, "message", [TEXT], expected_revision=0)
    with pytest.raises(StaleRevisionError) as caught:
        chains.save(persona, "message", [], expected_revision=expected)
    assert (caught.value.expected, caught.value.current) == (expected, 1)
    assert len(stored(persona)) == 1


def test_two_editors_at_the_same_moment_are_told_apart_by_the_number(
    persona: Persona, monkeypatch: pytest.MonkeyPatch
) -> None:
    chains.save(persona, "message", [TEXT], expected_revision=0)
    before = chains.current_revision
    monkeypatch.setattr(chains, "current_revision", lambda *args: 0 if not met else before(*args))
    met: list[bool] = []
    with pytest.raises(StaleRevisionError):
        chains.save(persona, "message", [HISTORY], expected_revision=0)
    assert stored(persona)[0]["resolver"] == "load_text"
    assert ChainRevision.objects.count() == 1


@pytest.mark.parametrize(
    ("step", "complaint"),
    [
        ({"resolver": "nothing"}, "Step 2: .*nothing"),
        (
            {"resolver": "load_text", "options": {"text": "{{ settings.SECRET_KEY }}"}},
            r"Step 2: .*settings\.SECRET_KEY",
        ),
        ({"resolver": "thread_history", "options": {"limit": -1}}, "Step 2: limit"),
        ({"resolver": "thread_history", "options": {"colour": 1}}, "Step 2: .*colour"),
        ({"resolver": "load_file", "options": {"path": "../../etc/passwd.md"}}, "Step 2: path"),
        ({**TEXT, "position": 3}, "Step 2 has no key 'position'"),
        ({**TEXT, "on_error": "retry"}, "Step 2: `on_error`"),
        ({**TEXT, "enabled": "yes"}, "Step 2: `enabled`"),
        ({**TEXT, "options": []}, "Step 2: `options`"),
        ({"resolver": 7}, "Step 2: `resolver`"),
        ("load_text", "Step 2 must be a JSON object"),
    ],
)
def test_a_wrong_step_is_named_and_nothing_is_saved(persona: Persona, step: Any, complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        chains.save(persona, "message", [TEXT, step], expected_revision=0)
    assert stored(persona) == []
    assert not ChainRevision.objects.exists()


def test_the_defaults_fill_only_what_has_no_chain(persona: Persona) -> None:
    chains.save(persona, "message", [TEXT], expected_revision=0)
    chains.save_defaults(persona)
    chains.save_defaults(persona)
    assert [step["resolver"] for step in stored(persona)] == ["load_text"]
    assert list(persona.chain_steps.filter(trigger="responsibility").values_list("resolver", flat=True)) == [
        "load_text",
        "load_text",
    ]
    assert ChainRevision.objects.count() == 2
