import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError

from personas.models import Persona, PersonaAddress
from protege.exceptions import ScopeError
from protege.principals import Principal, Scope
from tests.factories import (
    ChainRevisionFactory,
    ChainStepFactory,
    EmailThreadFactory,
    PersonaAddressFactory,
    PersonaFactory,
    ResponsibilityFactory,
)

pytestmark = pytest.mark.django_db


def test_address_is_unique_ignoring_case() -> None:
    PersonaFactory(address="helper@desk.example")
    with pytest.raises(IntegrityError), transaction.atomic():
        PersonaFactory(address="HELPER@desk.example", tenant="other")


def test_the_database_itself_refuses_the_same_address_in_other_letters() -> None:
    PersonaFactory(address="helper@desk.example")
    other = PersonaFactory(address="other@desk.example")
    with pytest.raises(IntegrityError), transaction.atomic():
        Persona.objects.filter(pk=other.pk).update(address="Helper@Desk.example")


def test_an_alias_belongs_to_one_persona_in_all_tenants() -> None:
    PersonaAddressFactory(address="orders@desk.example")
    newcomer = PersonaFactory.build(address="orders@desk.example", tenant="other", slug="orders")
    with pytest.raises(ValidationError, match="another persona"):
        newcomer.full_clean()
    with pytest.raises(IntegrityError), transaction.atomic():
        newcomer.save()


def test_the_primary_row_mirrors_the_address() -> None:
    persona = PersonaFactory(address="helper@desk.example")
    PersonaAddressFactory(persona=persona, address="help@desk.example")
    persona.address = "Assistant@desk.example"
    persona.save()
    rows = set(persona.addresses.values_list("address", "is_primary"))
    assert rows == {("assistant@desk.example", True), ("help@desk.example", False)}
    assert persona.aliases == ["help@desk.example"]


def test_an_alias_can_become_the_primary_address() -> None:
    persona = PersonaFactory(address="helper@desk.example")
    PersonaAddressFactory(persona=persona, address="help@desk.example")
    persona.address = "help@desk.example"
    persona.full_clean()
    persona.save()
    assert list(persona.addresses.values_list("address", "is_primary")) == [("help@desk.example", True)]


def test_the_tenant_cannot_change() -> None:
    persona = PersonaFactory(tenant="desk")
    persona.tenant = "other"
    with pytest.raises(ValidationError, match="tenant"):
        persona.save()


def test_the_tenant_is_never_empty() -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        PersonaFactory(tenant="", address="x@desk.example")


@pytest.mark.parametrize("name", ["Vienna", "../../etc/passwd", "\x00"])
def test_a_wrong_time_zone_is_a_form_error(name: str) -> None:
    with pytest.raises(ValidationError, match="time zone"):
        PersonaFactory.build(timezone=name).full_clean()


@pytest.mark.parametrize("schedule", ["every morning", "0 8 * *", "0 25 * * *", ""])
def test_a_wrong_schedule_is_a_form_error(schedule: str) -> None:
    duty = ResponsibilityFactory.build(persona=PersonaFactory(), schedule=schedule)
    with pytest.raises(ValidationError, match="schedule"):
        duty.full_clean()


def test_lists_hold_texts_only() -> None:
    with pytest.raises(ValidationError, match="JSON list"):
        PersonaFactory.build(tools=[1]).full_clean()


def test_what_happened_protects_a_persona() -> None:
    persona = EmailThreadFactory().persona
    with pytest.raises(ProtectedError):
        persona.delete()


def test_chains_and_responsibilities_go_with_their_persona() -> None:
    persona = PersonaFactory()
    for factory in (ChainStepFactory, ChainRevisionFactory, ResponsibilityFactory):
        factory(persona=persona)
    persona.delete()
    assert not PersonaAddress.objects.exists()


def test_visibility_follows_the_tenant() -> None:
    own, other = PersonaFactory(tenant="desk"), PersonaFactory(tenant="other")
    asker = Principal(tenant="desk", persona=own.pk)
    assert list(Persona.objects.visible_to(asker, Scope.TENANT)) == [own]
    assert list(Persona.objects.visible_to(asker, Scope.SELF)) == [own]
    assert set(Persona.objects.visible_to(Principal(is_admin=True), Scope.GLOBAL)) == {own, other}
    with pytest.raises(ScopeError):
        Persona.objects.visible_to(asker, Scope.GLOBAL)


def test_str_holds_no_name_and_no_address() -> None:
    persona = PersonaFactory(slug="helper", name="Secret", address="secret@desk.example")
    assert "ecret" not in f"{persona} {persona.addresses.get()} {ResponsibilityFactory(persona=persona)}"
