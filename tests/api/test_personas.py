"""Personas are shown to those who may view them, within their tenant."""

import pytest
from pytest_django import Settings

from tests.api.callers import VIEW_PERSONA, VIEW_THREADS, admin, client, staff, user_with
from tests.factories import PersonaAddressFactory, PersonaFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("desk")]


def test_who_may_not_view_personas_is_refused_before_anything_else() -> None:
    persona = PersonaFactory()
    for caller in (client(user_with()), staff(VIEW_THREADS)):
        for path in ("/api/personas/", f"/api/personas/{persona.pk}/", "/api/personas/9999/", "/api/personas/?limit=x"):
            assert caller.get(path).status_code == 403


def test_the_permission_opens_the_tenants_personas() -> None:
    here, there = PersonaFactory(), PersonaFactory(tenant="other")
    caller = staff(VIEW_PERSONA)
    assert [row["id"] for row in caller.get("/api/personas/").json()["results"]] == [here.pk]
    assert caller.get(f"/api/personas/{here.pk}/").status_code == 200
    invisible, missing = caller.get(f"/api/personas/{there.pk}/"), caller.get("/api/personas/9999/")
    assert (invisible.status_code, invisible.json()) == (404, missing.json())


def test_an_e_mail_address_is_not_needed_to_see_them(settings: Settings) -> None:
    settings.PROTEGE = {**settings.PROTEGE, "PRINCIPAL_FROM_REQUEST": ""}
    persona = PersonaFactory(tenant="default")
    assert staff(VIEW_PERSONA, email="").get(f"/api/personas/{persona.pk}/").status_code == 200


def test_an_admin_sees_all_and_may_narrow_that() -> None:
    here, there = PersonaFactory(), PersonaFactory(tenant="other")
    rows = admin().get("/api/personas/").json()["results"]
    assert [row["id"] for row in rows] == [here.pk, there.pk]
    assert [row["id"] for row in admin().get("/api/personas/?scope=tenant").json()["results"]] == [here.pk]


def test_a_persona_with_its_aliases() -> None:
    persona = PersonaFactory(tools=["send_email"], tool_policies={"send_email": "ask"})
    PersonaAddressFactory(persona=persona, address="b@desk.example")
    PersonaAddressFactory(persona=persona, address="a@desk.example")
    shown = staff(VIEW_PERSONA).get(f"/api/personas/{persona.pk}/").json()
    assert (shown["slug"], shown["address"]) == (persona.slug, persona.address)
    assert shown["aliases"] == ["a@desk.example", "b@desk.example"]
    assert (shown["tools"], shown["tool_policies"]) == (["send_email"], {"send_email": "ask"})


def test_a_hook_that_is_wrong_is_a_fault_of_the_server(settings: Settings) -> None:
    settings.PROTEGE = {**settings.PROTEGE, "PRINCIPAL_FROM_REQUEST": "tests.api.nothing.here"}
    caller = staff(VIEW_PERSONA)
    caller.raise_request_exception = False
    assert caller.get("/api/personas/").status_code == 500
