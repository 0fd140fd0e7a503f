"""Chains: order, failures, what a step costs, and where the steps come from."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries

from personas.models import Persona
from protege.context import Context
from protege.exceptions import ResolverError, ResolverFileNotFoundError, UnknownResolverError
from protege.messages import ModelMessage
from resolvers import Resolver, ResolverChain
from resolvers.builtin import LoadFileResolver, LoadTextResolver
from resolvers.models import ChainRevision, ChainStep, Trigger
from tests.factories import ChainRevisionFactory, ChainStepFactory, PersonaFactory
from tests.resolvers.conftest import NOW, persona


class Says(Resolver):
    name = "says"
    label = "Says something"

    def __init__(self, *answers: Any) -> None:
        self.answers = answers

    def resolve(self, context: Context) -> Any:
        return list(self.answers)


class Breaks(Resolver):
    name = "breaks"

    def resolve(self, context: Context) -> None:
        self.notice("before", step="half")
        raise KeyError("the text of a mail")


MESSAGES = st.builds(ModelMessage, st.sampled_from(["system", "user", "assistant"]), st.text(max_size=5))
RETURNS = st.one_of(st.none(), MESSAGES, st.lists(MESSAGES, max_size=4))


class Returns(Resolver):
    name = "returns"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def resolve(self, context: Context) -> Any:
        return self.answer


@given(st.lists(RETURNS, max_size=6))
def test_whatever_is_returned_is_concatenated_in_order(answers: list[Any]) -> None:
    chain = ResolverChain()
    expected: list[tuple[int, ModelMessage]] = []
    for index, answer in enumerate(answers):
        chain.use(Returns, answer)
        said = [] if answer is None else [answer] if isinstance(answer, ModelMessage) else answer
        expected += [(index, message) for message in said]
    context = Context(persona=persona(), now=NOW)
    assert chain.run(context) == [message for _, message in expected]
    assert [(traced.step, traced.message) for traced in chain.trace(context)] == expected


def test_use_returns_the_chain_and_keeps_the_order() -> None:
    chain = ResolverChain()
    assert chain.use(Says, ModelMessage("user", "a")) is chain
    chain.use(LoadTextResolver, lambda context: "b", role="user")
    assert [(step.key, step.label) for step in chain.steps] == [("says", "Says something"), ("load_text", "Text")]


def test_use_takes_resolver_classes_only() -> None:
    with pytest.raises(TypeError, match="Resolver"):
        ResolverChain().use(Says())  # type: ignore[arg-type]


def test_a_failing_step_raises_without_the_text_and_with_its_cause(scheduled: Context) -> None:
    chain = ResolverChain().use(Says, ModelMessage("user", "a")).use(Breaks)
    with pytest.raises(
        ResolverError, match=r"Step 1 \(breaks\) of the persona desk/ada failed with KeyError"
    ) as caught:
        chain.run(scheduled)
    assert "the text of a mail" not in str(caught.value)
    assert isinstance(caught.value.__cause__, KeyError)


def test_an_error_of_ours_keeps_its_class_and_is_told_its_place(scheduled: Context) -> None:
    with pytest.raises(ResolverFileNotFoundError) as caught:
        ResolverChain().use(LoadFileResolver, "no/such/file.md").run(scheduled)
    assert caught.value.__notes__ == ["Step 0 (load_file) of the persona desk/ada."]


def test_outcomes_go_on_after_a_failure(scheduled: Context) -> None:
    chain = ResolverChain().use(Breaks).use(Says, ModelMessage("user", "a"))
    broken, fine = chain.outcomes(scheduled)
    assert (broken.error is not None, broken.skipped, broken.messages) == (True, False, ())
    assert [notice.code for notice in broken.notices] == ["before"]
    assert [traced.message.text for traced in fine.messages] == ["a"]
    assert (fine.position, fine.key, fine.label, fine.error) == (1, "says", "Says something", None)


def test_a_resolver_that_cannot_be_made_is_a_failing_step(scheduled: Context) -> None:
    (outcome,) = ResolverChain().use(LoadFileResolver).outcomes(scheduled)
    assert isinstance(outcome.error, ResolverError)
    assert isinstance(outcome.error.__cause__, ValueError)


def test_what_a_step_said_before_it_failed_is_dropped(scheduled: Context) -> None:
    class Half(Resolver):
        def resolve(self, context: Context) -> Any:
            yield self.message("user", "half")
            raise OSError

    (outcome,) = ResolverChain().use(Half).outcomes(scheduled)
    assert outcome.messages == ()
    assert outcome.error is not None


@pytest.mark.django_db
def test_time_and_queries_of_a_step_are_counted(scheduled: Context) -> None:
    class Asks(Resolver):
        def resolve(self, context: Context) -> Any:
            Persona.objects.count()
            yield self.message("user", str(Persona.objects.exists()))

    asks, says = ResolverChain().use(Asks).use(Says).outcomes(scheduled)
    assert (asks.queries, says.queries) == (2, 0)
    assert asks.milliseconds > 0


# Steps that need not be saved


def test_a_step_that_may_be_skipped_leaves_a_notice(scheduled: Context) -> None:
    steps = [
        {"resolver": "load_file", "options": {"path": "none.md"}, "on_error": "skip"},
        {"resolver": "load_text", "options": {"text": "Hi"}},
    ]
    chain = ResolverChain.from_steps(steps)
    skipped, _ = chain.outcomes(scheduled)
    assert skipped.skipped
    assert isinstance(skipped.error, ResolverFileNotFoundError)
    assert [notice.to_dict() for notice in skipped.notices] == [
        {"code": "step_skipped", "step": 0, "resolver": "load_file", "error": "ResolverFileNotFoundError"}
    ]
    assert [(traced.step, traced.message.text) for traced in chain.trace(scheduled)] == [(1, "Hi")]


def test_a_disabled_step_says_nothing_and_keeps_its_index(scheduled: Context) -> None:
    steps = [
        {"resolver": "not_installed", "enabled": False},
        {"resolver": "load_text", "options": {"text": "Hi"}},
    ]
    chain = ResolverChain.from_steps(steps)
    off, on = chain.outcomes(scheduled)
    assert (off.enabled, off.messages, off.error, off.skipped) == (False, (), None, False)
    assert on.messages[0].step == 1
    assert [message.text for message in chain.run(scheduled)] == ["Hi"]


def test_an_unregistered_resolver_refuses_by_name_and_hides_nothing(scheduled: Context) -> None:
    chain = ResolverChain.from_steps([{"resolver": "gone"}, {"resolver": "load_text", "options": {"text": "Hi"}}])
    with pytest.raises(UnknownResolverError, match="'gone'"):
        chain.run(scheduled)
    gone, fine = chain.outcomes(scheduled)
    assert isinstance(gone.error, UnknownResolverError)
    assert fine.messages[0].message.text == "Hi"


@pytest.mark.parametrize(
    "step",
    [
        "load_text",
        {"resolver": ""},
        {"options": {}},
        {"resolver": "load_text", "options": []},
        {"resolver": "load_text", "enabled": 1},
        {"resolver": "load_text", "on_error": "ignore"},
        {"resolver": "load_text", "position": 1},
    ],
)
def test_a_step_of_a_wrong_shape_is_refused_at_once(step: Any) -> None:
    with pytest.raises(ValidationError, match="Step 1"):
        ResolverChain.from_steps([step])


def test_the_admin_rules_hold_for_steps_that_nobody_saved(scheduled: Context) -> None:
    for options in ({"path": "/etc/passwd"}, {"path": "../a.md"}, {"limit": 3}):
        (outcome,) = ResolverChain.from_steps([{"resolver": "load_file", "options": options}]).outcomes(scheduled)
        assert isinstance(outcome.error, ResolverError)
        assert not isinstance(outcome.error, ResolverFileNotFoundError)


# Stored chains


@pytest.mark.django_db
def test_the_chain_of_a_persona_is_one_query_in_order(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    ada = PersonaFactory()
    for position, text in [(9, "last"), (2, "first"), (5, "middle")]:
        ChainStepFactory(persona=ada, position=position, options={"text": text})
    ChainStepFactory(persona=ada, trigger=Trigger.RESPONSIBILITY, position=0, options={"text": "other trigger"})
    ChainStepFactory(position=0, options={"text": "other persona"})
    with django_assert_num_queries(1):
        chain = ResolverChain.for_persona(ada, "message")
    context = Context(persona=ada)
    assert [message.text for message in chain.run(context)] == ["first", "middle", "last"]
    assert [traced.step for traced in chain.trace(context)] == [0, 1, 2]
    assert len(ResolverChain.for_persona(ada, "responsibility").steps) == 1


@pytest.mark.django_db
def test_a_persona_without_steps_has_an_empty_chain_and_no_third_trigger() -> None:
    ada = PersonaFactory()
    assert ResolverChain.for_persona(ada, "message").steps == ()
    with pytest.raises(ValueError, match="timer"):
        ResolverChain.for_persona(ada, "timer")


@pytest.mark.django_db
def test_a_step_is_written_down_as_the_api_shows_it() -> None:
    step = ChainStepFactory(options={"text": "Hi"}, enabled=False, on_error="skip")
    assert step.to_dict() == {
        "resolver": "load_text",
        "options": {"text": "Hi"},
        "enabled": False,
        "on_error": "skip",
    }
    assert ChainStep(resolver="current_time").to_dict() == {
        "resolver": "current_time",
        "options": {},
        "enabled": True,
        "on_error": "fail",
    }


@pytest.mark.django_db
@pytest.mark.parametrize("factory", [ChainStepFactory, ChainRevisionFactory])
def test_no_two_steps_share_a_position_and_no_two_revisions_a_number(factory: Any) -> None:
    row = factory()
    place = {"position": row.position} if factory is ChainStepFactory else {"number": row.number}
    with pytest.raises(IntegrityError), transaction.atomic():
        factory(persona=row.persona, **place)
    factory(persona=row.persona, trigger="responsibility", **place)


@pytest.mark.django_db
def test_a_persona_takes_its_chains_along() -> None:
    ada = PersonaFactory()
    ChainStepFactory(persona=ada)
    ChainRevisionFactory(persona=ada)
    ada.delete()
    assert not ChainStep.objects.exists()
    assert not ChainRevision.objects.exists()
