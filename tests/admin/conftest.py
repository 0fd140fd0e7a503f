"""Two tenants, and the people of one of them."""

import pytest
from django.contrib.auth.models import Permission, User
from django.http import HttpRequest
from django.test import Client
from pytest_django import Settings

from personas.models import Persona
from protege.principals import Principal
from tests.factories import PersonaFactory, UserFactory


def principal_of_desk(request: HttpRequest) -> Principal:
    """The rule of these tests: everybody is of the tenant `desk`, unless the account is called `nobody`."""
    user = request.user
    assert isinstance(user, User)
    if user.username == "nobody":
        return Principal()
    return Principal(tenant="desk", correspondent=user.email, is_admin=user.is_superuser)


@pytest.fixture(autouse=True)
def two_tenants(settings: Settings) -> None:
    settings.PROTEGE = {**settings.PROTEGE, "PRINCIPAL_FROM_REQUEST": "tests.admin.conftest.principal_of_desk"}


@pytest.fixture
def ada(db: None) -> Persona:
    return PersonaFactory(slug="ada", name="Ada", tenant="desk")


@pytest.fixture
def theirs(db: None) -> Persona:
    """A persona of the other tenant."""
    return PersonaFactory(slug="zoe-of-other", name="Zoe", tenant="other")


def staff(username: str, *permissions: str) -> Client:
    """Signed in as a staff user with these permissions; with none named, with all there are."""
    user = UserFactory(username=username, is_staff=True)
    wanted = Permission.objects.all()
    if permissions:
        wanted = wanted.filter(codename__in=[name.rpartition(".")[2] for name in permissions])
        assert wanted.count() == len(permissions)
    user.user_permissions.set(wanted)
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def desk(db: None) -> Client:
    """Of the tenant `desk`, with all permissions, no superuser."""
    return staff("dora")


@pytest.fixture
def root(db: None) -> Client:
    client = Client()
    client.force_login(UserFactory(username="root", is_staff=True, is_superuser=True))
    return client
