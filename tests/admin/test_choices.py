"""Choices of related rows are limited as the rows themselves are (D06)."""

import pytest
from django.test import Client
from django.urls import reverse

from personas.models import Persona, Responsibility
from tests.admin import pages
from tests.factories import EmailThreadFactory, RunFactory, ThreadTagFactory
from threads.models import EmailThread, Run, ThreadTag

pytestmark = pytest.mark.django_db


def responsibility(persona: Persona) -> dict[str, str]:
    return {
        "persona": str(persona.pk),
        "name": "Report",
        "slug": "report",
        "instructions": "Write it.",
        "schedule": "0 8 * * 1",
        "enabled": "on",
    }


def autocomplete(client: Client, model: str, field: str, app: str = "protege_personas") -> list[str]:
    query = {"app_label": app, "model_name": model, "field_name": field, "term": ""}
    return [row["id"] for row in client.get(reverse("admin:autocomplete"), query).json()["results"]]


def test_autocomplete_offers_personas_of_the_tenant(desk: Client, root: Client, ada: Persona, theirs: Persona) -> None:
    assert autocomplete(desk, "responsibility", "persona") == [str(ada.pk)]
    assert autocomplete(root, "responsibility", "persona") == [str(ada.pk), str(theirs.pk)]


def test_autocomplete_offers_threads_of_the_tenant(desk: Client, ada: Persona, theirs: Persona) -> None:
    mine = EmailThreadFactory(persona=ada)
    EmailThreadFactory(persona=theirs)
    assert autocomplete(desk, "threadtag", "thread", app="protege_threads") == [str(mine.pk)]


def test_a_persona_of_another_tenant_does_not_exist(desk: Client, theirs: Persona) -> None:
    page = desk.post(pages.list_url(Responsibility, "add"), responsibility(theirs))
    assert "Select a valid choice. That choice is not one of the available choices." in pages.errors(page)
    assert not Responsibility.objects.exists()


def test_a_persona_of_the_own_tenant_does(desk: Client, ada: Persona) -> None:
    assert desk.post(pages.list_url(Responsibility, "add"), responsibility(ada)).status_code == 302
    assert Responsibility.objects.get().persona == ada


def test_a_tag_cannot_be_moved_to_a_thread_of_another_tenant(desk: Client, ada: Persona, theirs: Persona) -> None:
    tag = ThreadTagFactory(thread__persona=ada)
    hidden = EmailThreadFactory(persona=theirs)
    pages.refused(desk, tag, {"name": "x", "thread": hidden.pk})
    assert ThreadTag.objects.get().thread == tag.thread


@pytest.mark.parametrize("model", [EmailThread, Run, Responsibility])
def test_sidebar_filters_name_personas_of_the_tenant(
    model: type[EmailThread], desk: Client, root: Client, ada: Persona, theirs: Persona
) -> None:
    for persona in (ada, theirs):
        RunFactory(message__thread__persona=persona)
    Persona.objects.create(tenant="desk", slug="bob", name="Bob", address="bob@desk.example", model="offline:echo")

    def offered(client: Client) -> str:
        found: str = pages.tree(client.get(pages.list_url(model))).get_element_by_id("changelist-filter").text_content()
        return found

    assert "zoe-of-other" not in offered(desk)
    assert "ada" in offered(desk)
    assert "zoe-of-other" in offered(root)


def test_filtering_by_a_persona_of_another_tenant_finds_nothing(desk: Client, ada: Persona, theirs: Persona) -> None:
    EmailThreadFactory(persona=theirs)
    page = desk.get(pages.list_url(EmailThread), {"persona__id__exact": theirs.pk})
    assert pages.row_count(page) == 0
