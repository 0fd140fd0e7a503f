"""Records that code loads, and those of registered sources."""

import json
from decimal import Decimal
from itertools import count
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from pytest_django import DjangoAssertNumQueries, Settings

from personas.models import Persona, Responsibility
from protege.context import Context
from protege.exceptions import ResolverError
from protege.messages import ModelMessage
from resolvers import ResolverChain
from resolvers.builtin import LoadRecordResolver
from resolvers.options import clean_options
from resolvers.registry import is_secret, temporary_source
from tests.factories import AttachmentFactory, PersonaFactory, RawMailFactory, ResponsibilityFactory, UserFactory
from tests.resolvers.conftest import MakeContext
from tests.resolvers.records import from_admin, names
from threads.models import TokenRate

pytestmark = pytest.mark.django_db


def load(context: Context, answer: Any, **options: Any) -> list[ModelMessage]:
    return ResolverChain().use(LoadRecordResolver, lambda given: answer, **options).run(context)


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


def test_values_that_json_does_not_know_are_said_in_words(scheduled: Context) -> None:
    rate = TokenRate(model="m", rate=float("inf"))
    assert json.loads(load(scheduled, rate)[0].text)["rate"] == "inf"
    raw = RawMailFactory()
    assert json.loads(load(scheduled, raw)[0].text)["content"] == f"{len(raw.content)} bytes"
    odd = Persona(slug="ada", own_lists={"z": 1 + 2j})
    assert json.loads(load(scheduled, odd)[0].text)["own_lists"] == {"z": "(1+2j)"}
    assert load(scheduled, [1j], serialize=str)[0].text == "1j"


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


def test_deferred_columns_cost_no_query(scheduled: Context, django_assert_num_queries: DjangoAssertNumQueries) -> None:
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
