"""The people who call the API in the tests, and the counting of what a call leaves behind."""

from typing import Any

from django.apps import apps
from django.contrib.auth.models import Permission, User
from rest_framework.test import APIClient

from protege.principals import Principal
from tests.factories import UserFactory

VIEW_PERSONA = "protege_personas.view_persona"
VIEW_THREADS = "protege_threads.view_emailthread"
VIEW_CHAIN = "protege_resolvers.view_chainstep"
CHANGE_CHAIN = "protege_resolvers.change_chainstep"
PREVIEW = "protege_resolvers.preview_chain"


def user_with(*permissions: str, **fields: Any) -> User:
    user: User = UserFactory(**fields)
    for permission in permissions:
        label, codename = permission.split(".")
        user.user_permissions.add(Permission.objects.get(content_type__app_label=label, codename=codename))
    return user


def staff(*permissions: str, **fields: Any) -> APIClient:
    """A staff user of the tenant `desk`, logged in."""
    return client(user_with(*permissions, is_staff=True, **fields))


def admin(**fields: Any) -> APIClient:
    return client(user_with(is_staff=True, is_superuser=True, **fields))


def client(user: User | None) -> APIClient:
    logged_in = APIClient()
    if user is not None:
        logged_in.force_login(user)
    return logged_in


def of_desk(request: Any) -> Principal:
    """A host's hook: everybody is of the tenant `desk`, and every e-mail address was verified."""
    user = request.user
    return Principal(tenant="desk", correspondent=user.email.lower() or None, is_admin=user.is_superuser)


def of_nowhere(request: Any) -> Principal:
    """A hook that forgets the tenant."""
    return Principal(tenant="", correspondent=request.user.email)


def ids(response: Any) -> list[int]:
    """The ids of the rows on a page."""
    assert response.status_code == 200, response.json()
    return [row["id"] for row in response.json()["results"]]


def row_counts() -> dict[str, int]:
    """How many rows every table of every app has."""
    return {model._meta.label: model._base_manager.count() for model in apps.get_models(include_auto_created=True)}
