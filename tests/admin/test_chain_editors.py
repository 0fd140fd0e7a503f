"""Two people at one chain, and saves that go wrong half-way (D07, D10)."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection
from django.test import Client

from personas.models import Persona
from resolvers.models import ChainStep
from tests.admin import pages
from tests.admin.chains_page import give, positions, put, revisions, say, texts
from tests.admin.conftest import staff
from tests.factories import PersonaFactory, UserFactory

pytestmark = pytest.mark.django_db

STALE = "Somebody else has saved this chain."


def test_a_stale_page_gets_an_error_and_overwrites_nothing(root: Client, ada: Persona) -> None:
    give(ada, "a", "b", "c")
    first, second = pages.open_form(root, ada), pages.open_form(root, ada)
    put(first, 0, DELETE="on")
    put(first, 2, position=1)
    pages.save(root, ada, first)
    say(second, 0, "changed")
    page = pages.refused(root, ada, {**second, "name": "Changed"})
    assert [error for error in pages.errors(page) if error.startswith(STALE)]
    assert len(pages.errors(page)) == 1
    assert "changed" in pages.text(page)
    assert texts(ada) == ["c", "b"]
    assert Persona.objects.get(pk=ada.pk).name == "Ada"


def test_pressing_save_again_on_a_stale_page_does_not_help(root: Client, ada: Persona) -> None:
    give(ada, "a")
    stale = pages.open_form(root, ada)
    give(ada, "b", "c", "d")
    say(stale, 0, "changed")
    again = pages.form_data(pages.refused(root, ada, stale), "persona_form")
    pages.refused(root, ada, again)
    assert texts(ada) == ["b", "c", "d"]


def test_a_row_that_sorts_first_is_not_written_into(root: Client, ada: Persona) -> None:
    """D07: values must not go to rows by their position."""
    give(ada, "a", "b")
    stale = pages.open_form(root, ada)
    give(ada, "first", "a", "b")
    put(stale, 1, on_error="skip")
    pages.refused(root, ada, stale)
    assert texts(ada) == ["first", "a", "b"]
    assert set(ChainStep.objects.values_list("on_error", flat=True)) == {"fail"}


def test_one_wrong_row_and_nothing_is_saved(root: Client, ada: Persona) -> None:
    give(ada, "a", "b", "c")
    give(ada, "x", trigger="responsibility")
    data = pages.open_form(root, ada)
    say(data, 0, "A")
    say(data, 1, "B")
    put(data, 2, options='{"text": "{{ unknown.name }}"}')
    data["responsibility_chain-0-options"] = '{"text": "X"}'
    pages.refused(root, ada, {**data, "name": "Changed"})
    assert (texts(ada), texts(ada, "responsibility"), revisions(ada)) == (["a", "b", "c"], ["x"], 1)
    assert Persona.objects.get(pk=ada.pk).name == "Ada"


def test_a_page_that_lost_its_revision_is_refused(root: Client, ada: Persona) -> None:
    give(ada, "a")
    data = pages.open_form(root, ada)
    del data["message_chain-expected_revision"]
    say(data, 0, "changed")
    pages.refused(root, ada, data)
    assert texts(ada) == ["a"]


@pytest.mark.django_db(transaction=True)
def test_two_saves_at_the_same_moment_have_one_winner() -> None:
    persona = PersonaFactory(tenant="desk")
    give(persona, "a", "b", "c")
    clients = []
    for name in ("one", "two"):
        client = Client()
        client.force_login(UserFactory(username=name, is_staff=True, is_superuser=True))
        clients.append((client, pages.open_form(client, persona)))
    start = Barrier(2)

    def to_top(client: Client, data: pages.Data, row: int) -> int:
        put(data, row, position=1)
        start.wait()
        try:
            return client.post(pages.url_of(persona), data).status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(to_top, client, data, row) for (client, data), row in zip(clients, (1, 2), strict=True)]
        statuses = sorted(job.result() for job in jobs)
    assert statuses == [200, 302]
    assert texts(persona) in (["b", "a", "c"], ["c", "a", "b"])
    assert (positions(persona), revisions(persona)) == ([0, 1, 2], 2)


CHANGE_PERSONA = ("protege_personas.view_persona", "protege_personas.change_persona")


def test_who_may_not_change_steps_sees_them(ada: Persona) -> None:
    give(ada, "Grüße", "b")
    client = staff("tom", *CHANGE_PERSONA, "protege_resolvers.view_chainstep")
    page = client.get(pages.url_of(ada))
    assert "Grüße" in pages.text(page)
    data = pages.form_data(page, "persona_form")
    assert not [name for name in data if name.startswith("message_chain")]
    say(data, 0, "sneaked in")
    pages.save(client, ada, {**data, "message_chain-TOTAL_FORMS": 1, "message_chain-INITIAL_FORMS": 0, "name": "New"})
    assert texts(ada) == ["Grüße", "b"]
    assert Persona.objects.get(pk=ada.pk).name == "New"


def test_who_may_not_see_steps_sees_none(ada: Persona) -> None:
    give(ada, "Grüße")
    client = staff("tom", *CHANGE_PERSONA)
    assert "Grüße" not in pages.text(client.get(pages.url_of(ada)))


def test_who_may_only_view_sees_both_chains_and_can_post_nothing(ada: Persona) -> None:
    give(ada, "Grüße")
    client = staff("vera", "protege_personas.view_persona", "protege_resolvers.change_chainstep")
    page = client.get(pages.url_of(ada))
    assert "Grüße" in pages.text(page)
    assert pages.tree(page).xpath("//textarea") == []
    assert client.post(pages.url_of(ada), {"name": "x"}).status_code == 403
