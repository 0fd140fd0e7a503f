"""What a resolver may return, and what is remembered of what it says."""

from collections.abc import Iterator
from dataclasses import FrozenInstanceError, dataclass
from typing import Any

import pytest
from django import forms

from protege.context import Context
from protege.exceptions import RegistryError, ResolverError
from protege.messages import ImagePart, ModelMessage, TextPart, ToolCall, TracedMessage
from resolvers import Resolver, ResolverChain, register_resolver, register_source
from resolvers.registry import resolvers, sources, temporary_resolver, temporary_source


class Says(Resolver):
    """Returns whatever it was given."""

    name = "says"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def resolve(self, context: Context) -> Any:
        return self.answer


A, B = ModelMessage("user", "a"), ModelMessage("system", "b")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [(None, []), (A, [A]), ([A, B], [A, B]), ((B, A), [B, A]), (iter([A]), [A]), ([], [])],
)
def test_one_message_several_or_none(answer: Any, expected: list[ModelMessage], scheduled: Context) -> None:
    assert ResolverChain().use(Says, answer).run(scheduled) == expected


def test_a_generator_is_an_iterable(scheduled: Context) -> None:
    class Generates(Resolver):
        def resolve(self, context: Context) -> Iterator[ModelMessage]:
            yield A
            yield B

    assert ResolverChain().use(Generates).run(scheduled) == [A, B]


@pytest.mark.parametrize(
    ("answer", "type_name"),
    [
        ("text", "str"), ("", "str"), (b"", "bytes"), ({}, "dict"), (False, "bool"), (0, "int"),
        (["text"], "str"), ([A, None], "NoneType"), (object(), "object"),
    ],
)  # fmt: skip
def test_anything_else_names_persona_step_and_type(answer: Any, type_name: str, scheduled: Context) -> None:
    chain = ResolverChain().use(Says, None).use(Says, answer)
    with pytest.raises(ResolverError, match=rf"Step 1 \(says\) of the persona desk/ada .*\b{type_name}\b"):
        chain.run(scheduled)


def test_a_subclass_without_resolve_is_named(scheduled: Context) -> None:
    class Forgetful(Resolver):
        pass

    with pytest.raises(NotImplementedError, match="Forgetful"):
        Forgetful().resolve(scheduled)
    with pytest.raises(NotImplementedError, match="Forgetful"):
        ResolverChain().use(Forgetful).run(scheduled)


def test_message_builds_every_role() -> None:
    call = ToolCall("c1", "look_up", {"order": 77})
    resolver = Says(None)
    assert resolver.message("system", "s") == ModelMessage("system", "s")
    assert resolver.message("user", [TextPart("a"), ImagePart("image/png", "AAAA")]).text == "a"
    assert resolver.message("assistant", "", tool_calls=[call]).tool_calls == (call,)
    assert resolver.message("tool", "{}", tool_call_id="c1").tool_call_id == "c1"
    with pytest.raises(ValueError, match="robot"):
        resolver.message("robot", "hello")


def trace(resolver: type[Resolver], context: Context, *args: Any) -> list[TracedMessage]:
    return list(ResolverChain().use(resolver, *args).trace(context))


def test_provenance_follows_the_object_and_not_its_value(scheduled: Context) -> None:
    class Twins(Resolver):
        def resolve(self, context: Context) -> list[ModelMessage]:
            known = self.message("user", "same", source="crm:1")
            return [ModelMessage("user", "same"), known, self.message("user", "same", source=["crm:2", "crm:3"])]

    assert [traced.sources for traced in trace(Twins, scheduled)] == [(), ("crm:1",), ("crm:2", "crm:3")]


def test_an_init_that_does_not_call_ours_works(scheduled: Context) -> None:
    class Independent(Resolver):
        def __init__(self) -> None:
            pass

        def resolve(self, context: Context) -> ModelMessage:
            self.notice("seen", count=2)
            return self.message("user", "hello", source="here")

    (outcome,) = ResolverChain().use(Independent).outcomes(scheduled)
    assert outcome.messages[0].sources == ("here",)
    assert outcome.notices[0].to_dict() == {"code": "seen", "count": 2}


def test_a_frozen_dataclass_is_a_resolver_too(scheduled: Context) -> None:
    @dataclass(frozen=True)
    class Frozen(Resolver):
        text: str

        def resolve(self, context: Context) -> ModelMessage:
            return self.message("user", self.text, source="frozen")

    assert trace(Frozen, scheduled, "hi")[0].sources == ("frozen",)


def test_kind_is_by_role_unless_the_class_says_it(scheduled: Context) -> None:
    class Summary(Says):
        kind = "summary"

    assert [traced.kind for traced in trace(Says, scheduled, [A, B])] == ["history", "system"]
    assert [traced.kind for traced in trace(Summary, scheduled, [A, B])] == ["summary", "summary"]


def test_each_run_makes_fresh_instances(scheduled: Context) -> None:
    seen: list[int] = []

    class Counts(Resolver):
        def __init__(self) -> None:
            self.calls = 0

        def resolve(self, context: Context) -> None:
            self.calls += 1
            seen.append(self.calls)

    chain = ResolverChain().use(Counts)
    chain.run(scheduled)
    chain.run(scheduled)
    assert seen == [1, 1]


def test_the_context_cannot_be_changed(scheduled: Context) -> None:
    class Meddles(Resolver):
        def resolve(self, context: Context) -> None:
            context.persona = None  # type: ignore[assignment, misc]

    (outcome,) = ResolverChain().use(Meddles).outcomes(scheduled)
    assert outcome.error is not None
    assert isinstance(outcome.error.__cause__, FrozenInstanceError)


def test_no_resolver_is_added_by_itself(scheduled: Context) -> None:
    assert ResolverChain().run(scheduled) == []


# Registries


def test_a_registered_resolver_is_offered_by_its_name() -> None:
    with temporary_resolver(Says):
        assert ("says", "says") in resolvers.choices()
    assert "says" not in resolvers


def test_a_clash_a_missing_name_and_a_wrong_type_are_refused() -> None:
    class Other(Resolver):
        name = "load_file"

    class Nameless(Resolver):
        pass

    class WrongKind(Resolver):
        name = "wrong_kind"
        kind = "everything"

    class WrongForm(Resolver):
        name = "wrong_form"
        options_form = dict  # type: ignore[assignment]

    import resolvers.builtin  # noqa: F401

    for wrong in (Other, Nameless, WrongKind, WrongForm, dict):
        with pytest.raises(RegistryError):
            register_resolver(wrong)  # type: ignore[type-var]


def test_a_source_is_registered_by_name_and_stays_the_function() -> None:
    def load(context: Context) -> str:
        return "hello"

    assert register_source("test-hello", cross_thread=True)(load) is load
    try:
        source = sources.get("test-hello")
        assert source is not None
        assert source.cross_thread
        assert source.load is load
        with pytest.raises(RegistryError, match="test-hello"):
            register_source("test-hello")(lambda context: "other")
    finally:
        del sources._entries["test-hello"]
    with pytest.raises(RegistryError):
        register_source("no-callable")("text")  # type: ignore[type-var]


def test_a_source_is_not_cross_thread_unless_it_says_so() -> None:
    with temporary_source("plain", lambda context: None) as source:
        assert not source.cross_thread


def test_the_form_of_a_guest_is_applied_when_a_step_is_built(scheduled: Context) -> None:
    class GuestForm(forms.Form):
        shout = forms.BooleanField(required=False)

    class Guest(Resolver):
        name = "guest"
        options_form = GuestForm

        def __init__(self, *, shout: bool = True) -> None:
            self.shout = shout

        def resolve(self, context: Context) -> ModelMessage:
            return self.message("user", "HI" if self.shout else "hi")

    with temporary_resolver(Guest):
        steps = [{"resolver": "guest", "options": {"shout": False}}, {"resolver": "guest"}]
        assert [message.text for message in ResolverChain.from_steps(steps).run(scheduled)] == ["hi", "HI"]
        (outcome,) = ResolverChain.from_steps([{"resolver": "guest", "options": {"secret": 1}}]).outcomes(scheduled)
        assert isinstance(outcome.error, ResolverError)
