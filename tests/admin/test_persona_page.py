"""Personas and what they do on a schedule."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from personas.models import Persona, PersonaAddress, Responsibility
from protege.services import chains
from resolvers.models import ChainRevision, ChainStep
from tests.admin import pages
from tests.admin.chains_page import give, say, texts
from tests.admin.conftest import staff
from tests.factories import (
    EmailThreadFactory,
    MessageFactory,
    PersonaAddressFactory,
    PersonaFactory,
    ResponsibilityFactory,
    RunFactory,
)

pytestmark = pytest.mark.django_db

ADD = reverse("admin:protege_personas_persona_add")


def new_persona(client: Client, **fields: Any) -> pages.Data:
    typed = {"name": "Bob", "slug": "bob", "address": "Bob@desk.example", "model": "offline:echo", **fields}
    return {**pages.form_data(client.get(ADD), "persona_form"), **typed}


def test_a_new_persona_belongs_to_whoever_makes_it_and_has_the_default_chains(desk: Client) -> None:
    response = desk.post(ADD, new_persona(desk, allowed_senders="*@client.example\n\n  ana@else.example \n"))
    assert response.status_code == 302, pages.errors(response)
    bob = Persona.objects.get()
    assert (bob.tenant, bob.address) == ("desk", "bob@desk.example")
    assert bob.allowed_senders == ["*@client.example", "ana@else.example"]
    for trigger, steps in chains.DEFAULT_CHAINS.items():
        stored = ChainStep.objects.filter(persona=bob, trigger=trigger).order_by("position")
        assert [step.resolver for step in stored] == [step["resolver"] for step in steps]
    assert set(ChainRevision.objects.values_list("number", "author_label")) == {(1, "dora")}


def test_a_new_persona_keeps_the_steps_that_were_given(desk: Client) -> None:
    data = new_persona(desk)
    say(data, 0, "You are Bob.")
    assert desk.post(ADD, data).status_code == 302
    bob = Persona.objects.get()
    assert texts(bob) == ["You are Bob."]
    assert len(texts(bob, "responsibility")) == len(chains.DEFAULT_CHAINS["responsibility"])


def test_a_wrong_step_makes_no_persona(desk: Client) -> None:
    data = new_persona(desk)
    say(data, 0, "{{ nobody.knows }}")
    assert any("nobody.knows" in error for error in pages.errors(desk.post(ADD, data)))
    assert not Persona.objects.exists()


def test_a_slug_that_the_tenant_has_is_a_form_error(desk: Client, ada: Persona, theirs: Persona) -> None:
    page = desk.post(ADD, new_persona(desk, slug="ada"))
    assert "This tenant has a persona with that slug already." in pages.errors(page)
    assert desk.post(ADD, new_persona(desk, slug=theirs.slug)).status_code == 302


def test_an_address_that_is_taken_is_a_form_error(desk: Client, ada: Persona) -> None:
    page = desk.post(ADD, new_persona(desk, address=ada.address.upper()))
    assert "This address belongs to another persona, as primary or as alias." in pages.errors(page)


def test_nobody_in_particular_cannot_make_a_persona(db: None) -> None:
    assert staff("nobody").get(ADD).status_code == 403


@pytest.mark.parametrize("alias", ["ADA@desk.example", "Second@desk.example"])
def test_an_alias_that_is_taken_is_a_form_error(desk: Client, ada: Persona, alias: str) -> None:
    PersonaAddressFactory(persona=ada, address="second@desk.example")
    data = pages.open_form(desk, ada)
    pages.refused(desk, ada, {**data, "addresses-1-address": alias})
    assert ada.aliases == ["second@desk.example"]


def test_a_new_persona_cannot_have_its_own_address_as_an_alias(desk: Client) -> None:
    page = desk.post(ADD, new_persona(desk, **{"addresses-0-address": "bob@DESK.example"}))
    assert pages.errors(page) == ["This is its primary address already."]


def test_aliases_are_written_in_lower_case_beside_the_primary_one(desk: Client, ada: Persona) -> None:
    data = pages.open_form(desk, ada)
    assert data["addresses-TOTAL_FORMS"] == "1"
    pages.save(desk, ada, {**data, "addresses-0-address": "Orders@Desk.Example"})
    assert ada.aliases == ["orders@desk.example"]
    assert PersonaAddress.objects.get(is_primary=True).address == ada.address


def test_saving_without_a_change_changes_nothing(desk: Client, ada: Persona) -> None:
    Persona.objects.filter(pk=ada.pk).update(
        tools=["tool_that_is_gone", "send_email"],
        tool_policies={"send_email": "ask"},
        history_scopes=["user"],
        fallback_models=["a:b", "c:d"],
        own_lists=["list@desk.example"],
        monthly_budget="12.50",
    )
    give(ada, "a")
    before = Persona.objects.filter(pk=ada.pk).values().get()
    pages.save(desk, ada, pages.open_form(desk, ada))
    assert Persona.objects.filter(pk=ada.pk).values().get() == before
    assert ChainRevision.objects.count() == 1


def test_a_tool_that_is_gone_stays_and_is_marked(desk: Client, ada: Persona) -> None:
    Persona.objects.filter(pk=ada.pk).update(tools=["tool_that_is_gone"])
    assert "tool_that_is_gone (not installed)" in pages.text(desk.get(pages.url_of(ada)))


@pytest.mark.parametrize("typed", ['{"send_email": "maybe"}', '{"a": "ask", "a": "deny"}', "[]", "{"])
def test_wrong_policies_are_a_form_error(desk: Client, ada: Persona, typed: str) -> None:
    pages.refused(desk, ada, {**pages.open_form(desk, ada), "tool_policies": typed})


def test_the_page_leads_to_threads_messages_and_runs(desk: Client, ada: Persona) -> None:
    RunFactory(message__thread__persona=ada)
    links = pages.tree(desk.get(pages.url_of(ada))).xpath("//ul[@class='object-tools']//a/@href")
    lists = [link for link in links if "persona__id__exact" in link]
    assert len(lists) == 4
    assert [pages.row_count(desk.get(link)) for link in lists] == [1, 1, 1, 0]


def test_the_page_takes_as_many_queries_for_a_long_chain(desk: Client, ada: Persona) -> None:
    counts = []
    for length in (3, 40):
        give(ada, *(f"Text {number}" for number in range(length)))
        with CaptureQueriesContext(connection) as queries:
            desk.get(pages.url_of(ada))
        counts.append(len(queries))
    assert counts[0] == counts[1]


# Deleting


def test_a_persona_with_threads_is_deactivated_instead(desk: Client, ada: Persona) -> None:
    MessageFactory(thread__persona=ada)
    page = desk.get(pages.url_of(ada, "delete"))
    assert "persona desk/ada has 1 thread and 1 message" in pages.text(page)
    form = next(form for form in pages.tree(page).forms if (form.get("action") or "").endswith("/deactivate/"))
    assert desk.post(form.get("action"), dict(form.form_values())).status_code == 302
    ada.refresh_from_db()
    assert not ada.is_active
    assert "This persona is deactivated" in pages.text(desk.get(pages.url_of(ada)))
    assert desk.post(pages.url_of(ada, "delete"), {"post": "yes"}).status_code == 200
    assert Persona.objects.filter(pk=ada.pk).exists()


def test_the_delete_page_of_a_busy_persona_takes_no_more_queries(desk: Client, ada: Persona) -> None:
    counts = []
    for wanted in (2, 30):
        for _ in range(wanted):
            EmailThreadFactory(persona=ada)
        with CaptureQueriesContext(connection) as queries:
            desk.get(pages.url_of(ada, "delete"))
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_a_persona_without_threads_goes_with_its_chains(desk: Client, ada: Persona) -> None:
    give(ada, "a")
    ResponsibilityFactory(persona=ada)
    assert desk.post(pages.url_of(ada, "delete"), {"post": "yes"}).status_code == 302
    assert not Persona.objects.exists()
    assert not ChainStep.objects.exists()


def test_personas_are_deactivated_from_the_list(desk: Client, ada: Persona, theirs: Persona) -> None:
    chosen = {"action": "deactivate", "_selected_action": [ada.pk, theirs.pk]}
    assert desk.post(pages.list_url(Persona), chosen).status_code == 302
    assert dict(Persona.objects.values_list("slug", "is_active")) == {ada.slug: False, theirs.slug: True}


def test_deactivating_needs_the_permission_the_tenant_and_a_post(desk: Client, ada: Persona, theirs: Persona) -> None:
    def url(persona: Persona) -> str:
        return reverse("admin:protege_personas_persona_deactivate", args=[persona.pk])

    assert staff("vera", "protege_personas.view_persona").post(url(ada)).status_code == 403
    assert desk.post(url(theirs)).status_code == 403
    assert desk.get(url(ada)).status_code == 403
    assert Persona.objects.filter(is_active=True).count() == 2


# Responsibilities


@pytest.mark.parametrize("schedule", ["every day", "99 8 * * 1", "0 8 * *", "0 0 31 2 *"])
def test_a_wrong_schedule_is_a_form_error(desk: Client, ada: Persona, schedule: str) -> None:
    duty = ResponsibilityFactory(persona=ada)
    page = pages.refused(desk, duty, {**pages.open_form(desk, duty), "schedule": schedule})
    assert [error for error in pages.errors(page) if "is no cron expression" in error]


def test_a_save_does_not_overwrite_what_the_schedule_wrote_meanwhile(desk: Client) -> None:
    duty = ResponsibilityFactory(persona=PersonaFactory(tenant="desk"))
    data = pages.open_form(desk, duty)
    Responsibility.objects.filter(pk=duty.pk).update(last_run_at="2026-03-06T08:00Z")
    pages.save(desk, duty, {**data, "name": "Daily", "recipients": "ana@client.example\nbob@client.example"})
    duty.refresh_from_db()
    assert (duty.name, duty.recipients) == ("Daily", ["ana@client.example", "bob@client.example"])
    assert duty.last_run_at is not None


def test_a_wrong_recipient_is_a_form_error(desk: Client, ada: Persona) -> None:
    duty = ResponsibilityFactory(persona=ada)
    pages.refused(desk, duty, {**pages.open_form(desk, duty), "recipients": "ana@client.example\nnobody"})
