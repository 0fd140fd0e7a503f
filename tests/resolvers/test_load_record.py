"""Records: from code, from registered sources, and from registered models within their limits."""

import json
from collections.abc import Iterator
from decimal import Decimal
from itertools import count
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet
from pytest_django import DjangoAssertNumQueries, Settings

from personas.models import Persona, Responsibility
from protege.context import Context
from protege.exceptions import RegistryError, ResolverError
from protege.messages import ModelMessage
from resolvers import ResolverChain, register_model
from resolvers.builtin import LoadRecordResolver
from resolvers.options import clean_options
from resolvers.registry import RegisteredModel, is_secret, temporary_model, temporary_source
from tests.factories import AttachmentFactory, PersonaFactory, ResponsibilityFactory, UserFactory
from tests.resolvers.conftest import MakeContext

pytestmark = pytest.mark.django_db


def load(context: Context, answer: Any, **options: Any) -> list[ModelMessage]:
    return ResolverChain().use(LoadRecordResolver, lambda given: answer, **options).run(context)


def from_admin(context: Context, **options: Any) -> list[ModelMessage]:
    return ResolverChain.from_steps([{"resolver": "load_record", "options": options}]).run(context)


def names(messages: list[ModelMessage]) -> list[str]:
    """The user names in a text of records."""
    return [json.loads(text)["username"] for message in messages for text in message.text.split("\n\n")]


# Wired in code


def test_an_instance_a_queryset_an_iterable_or_none(scheduled: Context) -> None:
    ana, ben = Group.objects.create(name="ana"), Group.objects.create(name="ben")
    one = f'{{\n  "id": {ana.pk},\n  "name": "ana"\n}}'
    both = f'{one}\n\n{{\n  "id": {ben.pk},\n  "name": "ben"\n}}'
    assert load(scheduled, ana) == [ModelMessage("system", one)]
    for several in (Group.objects.order_by("pk"), [ana, ben], (ana, ben), iter([ana, ben])):
        assert load(scheduled, several) == [ModelMessage("system", both)]
    for nothing in (None, [], Group.objects.none()):
        assert load(scheduled, nothing) == []


@pytest.mark.parametrize("answer", ["text", b"bytes", {"a": 1}, "", {}, 3, [{"a": 1}], ["text"], Group])
def test_text_bytes_dicts_and_the_like_are_refused(answer: Any, scheduled: Context) -> None:
    with pytest.raises(ResolverError):
        load(scheduled, answer)


def test_the_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="callable"):
        LoadRecordResolver("shop.Order")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="serialize"):
        LoadRecordResolver(lambda context: None, serialize=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="robot"):
        LoadRecordResolver(lambda context: None, role="robot")


def test_serialize_is_a_method_a_callable_or_json(scheduled: Context) -> None:
    user = UserFactory(first_name="Ana", last_name="Moßner")
    assert load(scheduled, user, serialize="get_full_name", role="user") == [ModelMessage("user", "Ana Moßner")]
    assert load(scheduled, [user], serialize=lambda record: record.username.upper())[0].text == user.username.upper()
    assert load(scheduled, [{"a": 1}, {"a": 2}], serialize=lambda record: str(record["a"]))[0].text == "1\n\n2"
    with pytest.raises(ResolverError, match="no method 'fly'"):
        load(scheduled, user, serialize="fly")
    with pytest.raises(ResolverError, match="dict"):
        load(scheduled, user, serialize=lambda record: {})


def test_records_that_say_nothing_are_left_out(scheduled: Context) -> None:
    assert load(scheduled, [1, 2, 3], serialize=lambda number: " " if number == 2 else str(number))[0].text == "1\n\n3"
    assert load(scheduled, [1], serialize=lambda number: None) == []


def test_dates_decimals_relations_and_files(scheduled: Context) -> None:
    ada = PersonaFactory(monthly_budget=Decimal("12.50"), name="Ada Müller", own_lists=["a"])
    duty = ResponsibilityFactory(persona=ada, last_run_at=scheduled.now)
    said = json.loads(load(scheduled, duty)[0].text)
    assert (said["persona"], said["last_run_at"], said["next_run_at"]) == (ada.pk, "2026-03-06T23:30:00Z", None)
    text = load(scheduled, Persona.objects.filter(pk=ada.pk))[0].text
    assert "Ada Müller" in text
    assert json.loads(text)["monthly_budget"] == "12.50"
    assert json.loads(text)["own_lists"] == ["a"]
    file = AttachmentFactory()
    said = json.loads(load(scheduled, file)[0].text)
    assert (said["file"], said["public_id"]) == (file.file.name, str(file.public_id))


def test_password_like_fields_are_never_read(scheduled: Context) -> None:
    said = json.loads(load(scheduled, UserFactory())[0].text)
    assert "password" not in said
    assert "username" in said
    for name in ("password", "api_key", "apikey", "access_token", "client_secret", "pin", "user_pwd", "passphrase"):
        assert is_secret(name)
    for name in ("passport", "secretary", "spinning", "key", "compass", "monkey"):
        assert not is_secret(name)


def test_a_queryset_is_evaluated_once_with_a_limit(
    scheduled: Context, settings: Settings, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(5):
        ResponsibilityFactory(name=f"duty {number}")
    for limit, shown, codes in [(5, 5, []), (4, 4, ["more_records"])]:
        settings.PROTEGE = {**settings.PROTEGE, "RECORD_LIMIT": limit}
        context = Context(persona=scheduled.persona)
        chain = ResolverChain().use(LoadRecordResolver, lambda given: Responsibility.objects.order_by("pk"))
        with django_assert_num_queries(1):
            (outcome,) = chain.outcomes(context)
        assert len(outcome.messages[0].sources) == shown
        assert [notice.code for notice in outcome.notices] == codes


def test_an_endless_iterable_ends_at_the_limit(scheduled: Context) -> None:
    text = load(scheduled, count(), serialize=str)[0].text
    assert text.split("\n\n") == [str(number) for number in range(scheduled.config.record_limit)]


def test_deferred_columns_cost_no_query(
    scheduled: Context, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    UserFactory.create_batch(3)
    with django_assert_num_queries(1):
        text = load(scheduled, User.objects.only("username"))[0].text
    assert set(json.loads(text.split("\n\n")[0])) == {"id", "username"}


def test_each_record_is_a_source(scheduled: Context) -> None:
    group = Group.objects.create(name="ana")
    (traced,) = ResolverChain().use(LoadRecordResolver, lambda context: group).trace(scheduled)
    assert traced.sources == (f"record:auth.Group:{group.pk}",)


# Registered sources


def test_a_source_is_chosen_by_name_and_its_method_too(scheduled: Context) -> None:
    user = UserFactory(first_name="Ana", last_name="M")
    with temporary_source("staff", lambda context: User.objects.all(), serializers=["get_full_name"]):
        assert names(from_admin(scheduled, source="staff")) == [user.username]
        assert from_admin(scheduled, source="staff", serialize="get_full_name")[0].text == "Ana M"
        assert clean_options("load_record", {"source": "staff", "serialize": "get_full_name"})
        for options in ({"serialize": "delete"}, {"limit": 3}, {"filters": {"a": "persona.slug"}}):
            with pytest.raises(ResolverError):
                from_admin(scheduled, source="staff", **options)
            with pytest.raises(ValidationError) as caught:
                clean_options("load_record", {"source": "staff", **options})
            assert list(caught.value.message_dict) == list(options)
    assert User.objects.exists()
    with pytest.raises(ResolverError, match="'staff'"):
        from_admin(scheduled, source="staff")


def test_a_source_of_the_sender_is_withheld_from_the_unverified(
    reply: MakeContext, scheduled: Context, settings: Settings
) -> None:
    steps = [{"resolver": "load_record", "options": {"source": "account"}}]
    with temporary_source("account", lambda context: Group.objects.create(name="gold"), cross_thread=True):
        chain = ResolverChain.from_steps(steps)
        (outcome,) = chain.outcomes(reply(trust="unverified"))
        assert (outcome.messages, outcome.queries) == ((), 0)
        assert [notice.to_dict() for notice in outcome.notices] == [{"code": "unverified_sender", "source": "account"}]
        assert chain.run(reply(trust="")) == []
        assert chain.run(reply(trust="verified")) != []
        Group.objects.all().delete()
        assert chain.run(reply(trust="own_staff")) != []
        Group.objects.all().delete()
        assert chain.run(scheduled) != []
        Group.objects.all().delete()
        settings.PROTEGE = {**settings.PROTEGE, "TRUST_UNVERIFIED": True}
        assert chain.run(reply(trust="unverified")) != []


# Registered models


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
def test_order_limit_and_serializer(
    scheduled: Context, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
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
