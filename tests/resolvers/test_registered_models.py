"""Records of registered models: what a step of the admin may read, and what it never can."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet
from pytest_django import DjangoAssertNumQueries

from personas.models import Responsibility
from protege.context import Context
from protege.exceptions import RegistryError, ResolverError
from resolvers import ResolverChain, register_model
from resolvers.options import clean_options
from resolvers.registry import RegisteredModel, temporary_model, temporary_source
from tests.factories import PersonaFactory, ResponsibilityFactory, UserFactory
from tests.resolvers.conftest import MakeContext
from tests.resolvers.records import from_admin, names

pytestmark = pytest.mark.django_db


def same_first_name(queryset: QuerySet[User], context: Context) -> QuerySet[User]:
    """A stand-in for a tenant: users whose first name is the persona's tenant."""
    return queryset.filter(first_name=context.persona.tenant)


LIMITS: dict[str, Any] = {
    "fields": ["username", "email", "date_joined"],
    "lookups": ["email__iexact", "last_name", "groups__name"],
    "scope": same_first_name,
    "serializers": ["get_short_name"],
}


@pytest.fixture
def registered() -> Iterator[RegisteredModel]:
    with temporary_model(User, **LIMITS) as entry:
        yield entry


BY_SENDER = {"model": "auth.User", "filters": {"email__iexact": "message.from_address"}}


@pytest.mark.usefixtures("registered")
def test_a_model_shows_its_fields_of_the_filtered_rows_in_scope(reply: MakeContext) -> None:
    UserFactory(username="ana", email="Ana@client.example", first_name="desk")
    UserFactory(username="other-tenant", email="ana@client.example", first_name="other")
    UserFactory(username="somebody", email="ben@client.example", first_name="desk")
    messages = from_admin(reply(), **BY_SENDER)
    assert names(messages) == ["ana"]
    assert set(json.loads(messages[0].text)) == {"username", "email", "date_joined"}


@pytest.mark.usefixtures("registered")
def test_a_blank_value_finds_nothing_and_asks_nothing(reply: MakeContext, scheduled: Context) -> None:
    UserFactory(email="", last_name="", first_name="desk")
    chain = ResolverChain.from_steps([{"resolver": "load_record", "options": BY_SENDER}])
    for context in (scheduled, reply(from_address=""), reply(from_address=" ")):
        (outcome,) = chain.outcomes(context)
        assert (outcome.messages, outcome.queries, outcome.error) == ((), 0, None)
    by_duty = {"model": "auth.User", "filters": {"last_name": "responsibility.slug"}}
    assert from_admin(reply(), **by_duty) == []


@pytest.mark.usefixtures("registered")
def test_rows_of_the_sender_are_withheld_from_the_unverified(reply: MakeContext) -> None:
    UserFactory(email="ana@client.example", first_name="desk", last_name="ada")
    chain = ResolverChain.from_steps([{"resolver": "load_record", "options": BY_SENDER}])
    (outcome,) = chain.outcomes(reply(trust="unverified"))
    assert outcome.messages == ()
    assert [notice.to_dict() for notice in outcome.notices] == [{"code": "unverified_sender", "source": "auth.User"}]
    by_persona = {"model": "auth.User", "filters": {"last_name": "persona.slug"}}
    assert len(from_admin(reply(trust="unverified"), **by_persona)) == 1


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"filters": {}}, "filters"),
        ({}, "filters"),
        ({"filters": {"password__startswith": "persona.slug"}}, "filters"),
        ({"filters": {"is_superuser": "persona.slug"}}, "filters"),
        ({"filters": {"last_name__isnull": "persona.slug"}}, "filters"),
        ({"filters": {"last_name": "ada"}}, "filters"),
        ({"filters": {"last_name": "message.subject"}}, "filters"),
        ({"filters": {"last_name": 3}}, "filters"),
        ({"filters": {"last_name": "persona.slug"}, "order_by": "password"}, "order_by"),
        ({"filters": {"last_name": "persona.slug"}, "order_by": "?"}, "order_by"),
        ({"filters": {"last_name": "persona.slug"}, "serialize": "delete"}, "serialize"),
        ({"filters": {"last_name": "persona.slug"}, "limit": 0}, "limit"),
        ({"filters": {"last_name": "persona.slug"}, "order_by": [3]}, "order_by"),
    ],
)
@pytest.mark.usefixtures("registered")
def test_what_code_has_not_registered_is_refused_in_the_form_and_in_the_run(
    options: dict[str, Any], field: str, scheduled: Context
) -> None:
    UserFactory(first_name="desk", last_name="ada")
    given = {"model": "auth.User", **options}
    with pytest.raises(ValidationError) as caught:
        clean_options("load_record", given)
    assert list(caught.value.message_dict) == [field]
    with pytest.raises(ResolverError):
        from_admin(scheduled, **given)
    assert User.objects.exists()


@pytest.mark.parametrize("options", [{}, {"source": "", "model": ""}, {"source": "staff", "model": "auth.User"}])
@pytest.mark.usefixtures("registered")
def test_exactly_one_of_source_and_model(options: dict[str, Any], scheduled: Context) -> None:
    with temporary_source("staff", lambda context: None):
        with pytest.raises(ValidationError, match="exactly one"):
            clean_options("load_record", options)
        with pytest.raises(ResolverError, match="exactly one"):
            from_admin(scheduled, **options)


def test_a_model_that_is_not_registered_cannot_be_read(scheduled: Context) -> None:
    with pytest.raises(ResolverError, match=r"'auth\.User'"):
        from_admin(scheduled, **BY_SENDER)
    with pytest.raises(ValidationError):
        clean_options("load_record", BY_SENDER)


@pytest.mark.usefixtures("registered")
def test_order_limit_and_serializer(scheduled: Context, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    for name in ("b", "c", "a"):
        UserFactory(username=name, first_name="desk", last_name="ada")
    options = {"model": "auth.User", "filters": {"last_name": "persona.slug"}}
    assert names(from_admin(scheduled, **options)) == ["b", "c", "a"]
    assert names(from_admin(scheduled, **options, order_by="-username")) == ["c", "b", "a"]
    assert names(from_admin(scheduled, **options, order_by=["username"], limit=2)) == ["a", "b"]
    steps = [{"resolver": "load_record", "options": {**options, "limit": 2, "serialize": "get_short_name"}}]
    with django_assert_num_queries(1):
        (outcome,) = ResolverChain.from_steps(steps).outcomes(scheduled)
    assert outcome.messages[0].message.text == "desk\n\ndesk"
    assert [notice.to_dict() for notice in outcome.notices] == [{"code": "more_records", "limit": 2}]
    assert clean_options("load_record", {**options, "order_by": ["-username"], "limit": 2}) == {
        **options,
        "order_by": "-username",
        "limit": 2,
    }


def test_a_model_may_allow_to_be_read_without_filters(scheduled: Context) -> None:
    UserFactory(username="ana", first_name="desk")
    UserFactory(username="ben", first_name="other")
    with temporary_model(User, **LIMITS, allow_unfiltered=True):
        assert names(from_admin(scheduled, model="auth.User")) == ["ana"]


def test_a_scope_that_gives_no_queryset_is_an_error(scheduled: Context) -> None:
    UserFactory(last_name="ada")
    with (
        temporary_model(User, **{**LIMITS, "scope": lambda queryset, context: None}),
        pytest.raises(ResolverError, match="scope"),
    ):
        from_admin(scheduled, model="auth.User", filters={"last_name": "persona.slug"})


def test_a_scope_may_join_what_is_not_shown(scheduled: Context) -> None:
    ada = PersonaFactory(slug="ada")
    ResponsibilityFactory(persona=ada, slug="weekly")
    limits: dict[str, Any] = {"fields": ["slug"], "lookups": ["persona__slug"]}
    with temporary_model(Responsibility, **limits, scope=lambda rows, context: rows.select_related("persona")):
        options = {"model": "protege_personas.Responsibility", "filters": {"persona__slug": "persona.slug"}}
        assert json.loads(from_admin(scheduled, **options)[0].text) == {"slug": "weekly"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"fields": []},
        {"fields": ["password"]},
        {"fields": ["nothing"]},
        {"fields": ["groups"]},
        {"fields": "username"},
        {"lookups": ["nothing__iexact"]},
        {"lookups": ["password__startswith"]},
        {"scope": None},
        {"serializers": ["fly"]},
    ],
)
def test_a_registration_that_reads_too_much_or_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(RegistryError):
        register_model(User, **{**LIMITS, **wrong})


def test_a_scope_is_required_and_models_only() -> None:
    with pytest.raises(TypeError, match="scope"):
        register_model(User, fields=["username"], lookups=[])  # type: ignore[call-arg]
    for no_model in (object, Model, "auth.User"):
        with pytest.raises((RegistryError, AttributeError)):
            register_model(no_model, **LIMITS)  # type: ignore[arg-type]
