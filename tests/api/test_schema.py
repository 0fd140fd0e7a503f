"""The API describes itself without a warning, to those who are logged in."""

from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from rest_framework.permissions import IsAuthenticated

from protege.api import urls
from protege.api.base import ProtegeView
from tests.api.callers import client, user_with


def test_the_schema_is_valid_and_without_a_warning(tmp_path: Path) -> None:
    call_command("spectacular", "--validate", "--fail-on-warn", file=str(tmp_path / "schema.yml"))


def test_every_view_says_itself_who_may_use_it() -> None:
    for route in urls.urlpatterns:
        view: Any = route.callback.view_class  # type: ignore[union-attr]
        assert "permission_classes" in vars(view), view
        assert IsAuthenticated in view.permission_classes


def test_no_view_depends_on_the_hosts_rest_framework_settings() -> None:
    for route in urls.urlpatterns:
        view: Any = route.callback.view_class  # type: ignore[union-attr]
        assert issubclass(view, ProtegeView) or view.__module__ == "protege.api.schema"


@pytest.mark.django_db
class TestPages:
    def test_the_schema_describes_the_preview_with_examples(self) -> None:
        schema = client(user_with()).get("/api/schema/", headers={"Accept": "application/vnd.oai.openapi+json"}).json()
        operation = schema["paths"]["/api/personas/{id}/preview/"]["post"]
        assert set(operation["responses"]) == {"200", "400", "403", "404", "422"}
        for code in ("200", "422"):
            assert operation["responses"][code]["content"]["application/json"]["examples"]
        assert len(operation["requestBody"]["content"]["application/json"]["examples"]) == 3

    def test_the_page_for_people(self) -> None:
        caller = client(user_with())
        page = caller.get("/api/docs/")
        assert page.status_code == 200
        assert "swagger-ui" in page.content.decode()
        assert "/api/schema/" in caller.get("/api/docs/?script").content.decode()

    def test_both_are_closed(self) -> None:
        for path in ("/api/schema/", "/api/docs/", "/api/docs/?script"):
            assert client(None).get(path).status_code == 403
