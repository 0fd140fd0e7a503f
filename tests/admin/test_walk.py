"""What holds for every admin page of ours: a walk over all that is registered."""

from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from personas.models import Persona
from personas.tenant_admin import TenantAdmin
from tests.admin import pages
from tests.admin.conftest import staff
from tests.admin.rows import NOBODYS, OURS, row_of
from tests.factories import PersonaFactory

pytestmark = pytest.mark.django_db

every_model = pytest.mark.parametrize("model", OURS, ids=lambda model: model._meta.model_name)


def test_every_table_of_ours_has_an_admin() -> None:
    labels = ("protege_personas", "protege_threads", "protege_resolvers")
    tables = {model for label in labels for model in apps.get_app_config(label).get_models()}
    assert set(OURS) == tables


@every_model
def test_it_is_a_tenant_admin(model: Any) -> None:
    assert isinstance(admin.site._registry[model], TenantAdmin)


@every_model
def test_an_administrator_sees_rows_of_all_tenants(model: Any, root: Client, ada: Persona, theirs: Persona) -> None:
    rows = [row_of(model, ada), row_of(model, theirs)]
    page = root.get(pages.list_url(model))
    assert pages.row_count(page) == model._default_manager.count()
    for row in rows:
        assert root.get(pages.url_of(row)).status_code == 200
        assert root.get(pages.url_of(row, "history")).status_code == 200


@every_model
def test_staff_see_the_rows_of_their_tenant_alone(model: Any, desk: Client, ada: Persona, theirs: Persona) -> None:
    mine, hidden = row_of(model, ada), row_of(model, theirs)
    shown = desk.get(pages.list_url(model)).content.decode()
    assert (pages.url_of(mine) in shown) is (model not in NOBODYS)
    assert pages.url_of(hidden) not in shown
    assert "zoe-of-other" not in shown
    for page in ("change", "history", "delete"):
        assert desk.get(pages.url_of(hidden, page)).status_code in (302, 403)
    assert desk.get(pages.url_of(mine)).status_code == (302 if model in NOBODYS else 200)


@every_model
def test_staff_cannot_write_a_row_of_another_tenant(model: Any, desk: Client, theirs: Persona) -> None:
    hidden = row_of(model, theirs)
    before = model._default_manager.filter(pk=hidden.pk).values().get()
    assert desk.post(pages.url_of(hidden), {"title": "Taken", "name": "Taken"}).status_code in (302, 403)
    desk.post(pages.url_of(hidden, "delete"), {"post": "yes"})
    desk.post(pages.list_url(model), {"action": "delete_selected", "_selected_action": hidden.pk, "post": "yes"})
    assert model._default_manager.filter(pk=hidden.pk).values().get() == before


@every_model
def test_somebody_without_an_identity_sees_nothing(model: Any, ada: Persona) -> None:
    row = row_of(model, ada)
    nobody = staff("nobody")
    assert pages.row_count(nobody.get(pages.list_url(model))) == 0
    assert nobody.get(pages.url_of(row)).status_code == 302


@every_model
def test_the_list_takes_as_many_queries_for_100_rows_as_for_10(model: Any, desk: Client, root: Client) -> None:
    client = root if model in NOBODYS else desk
    counts = []
    for wanted in (10, 100):
        while model._default_manager.count() < wanted:
            row_of(model, PersonaFactory(tenant="desk"))
        with CaptureQueriesContext(connection) as queries:
            page = client.get(pages.list_url(model))
        assert pages.row_count(page) >= min(wanted, 100)
        counts.append(len(queries))
    assert counts[0] == counts[1]


@every_model
def test_search_takes_any_text(model: Any, root: Client, ada: Persona) -> None:
    row_of(model, ada)
    for query in ("x", "100%", 'a "b', "'; --", "Grüße 中"):
        assert root.get(pages.list_url(model), {"q": query}).status_code == 200


@every_model
def test_a_page_without_any_permission_is_closed(model: Any, ada: Persona) -> None:
    row = row_of(model, ada)
    client = staff("none", "auth.view_group")
    assert client.get(pages.list_url(model)).status_code == 403
    assert client.get(pages.url_of(row)).status_code == 403


WRITTEN_BY_PEOPLE = {"persona", "responsibility", "threadtag"}


@every_model
def test_what_only_the_product_writes_cannot_be_added(model: Any, root: Client) -> None:
    status = root.get(pages.list_url(model, "add")).status_code
    assert status == (200 if model._meta.model_name in WRITTEN_BY_PEOPLE else 403)


def test_pages_hold_no_script_and_no_style_of_their_own(root: Client, ada: Persona) -> None:
    """A strict Content-Security-Policy refuses both."""
    for model in OURS:
        for url in (pages.list_url(model), pages.url_of(row_of(model, ada))):
            page = pages.tree(root.get(url))
            assert [script for script in page.xpath("//script[not(@src)]") if script.get("type") is None] == [], url
            assert page.xpath("//style | //*[@onclick or @onchange or @onsubmit]") == [], url
            assert page.xpath("//div[contains(@class, 'pr-') or contains(@class, 'pt-')]//*[@style]") == [], url
