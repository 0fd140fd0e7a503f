"""Who a request comes from."""

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest
from pytest_django import Settings

from protege.exceptions import ConfigurationError
from protege.identity import principal_of, staff_scope
from protege.principals import Principal, Scope

calls: list[HttpRequest] = []


def counting(request: HttpRequest) -> Principal:
    calls.append(request)
    return Principal(tenant="counted")


def not_a_principal(request: HttpRequest) -> str:
    return "desk"


def asked(settings: Settings, user: User | AnonymousUser, hook: str = "") -> HttpRequest:
    settings.PROTEGE = {**settings.PROTEGE, "PRINCIPAL_FROM_REQUEST": hook}
    request = HttpRequest()
    request.user = user
    return request


@pytest.mark.parametrize(
    ("user", "principal"),
    [
        (AnonymousUser(), Principal()),
        (User(email="Ana@client.example"), Principal(tenant="default")),
        (User(email=" Dora@b.example", is_staff=True), Principal(tenant="default", correspondent="dora@b.example")),
        (User(is_staff=True), Principal(tenant="default")),
        (User(is_staff=True, is_superuser=True), Principal(tenant="default", is_admin=True)),
        (User(is_staff=True, is_superuser=True, is_active=False), Principal()),
    ],
)
def test_the_built_in_rule(settings: Settings, user: User, principal: Principal) -> None:
    assert principal_of(asked(settings, user)) == principal


def test_a_request_without_a_user_is_nobody() -> None:
    assert principal_of(HttpRequest()) == Principal()


def test_the_hook_is_asked_once_a_request_and_never_for_strangers(settings: Settings) -> None:
    calls.clear()
    hook = f"{__name__}.counting"
    request = asked(settings, User(), hook)
    assert principal_of(request) == principal_of(request) == Principal(tenant="counted")
    assert principal_of(asked(settings, AnonymousUser(), hook)) == Principal()
    assert len(calls) == 1


@pytest.mark.parametrize("hook", [f"{__name__}.not_a_principal", f"{__name__}.missing"])
def test_a_hook_that_cannot_be_used_is_a_configuration_error(settings: Settings, hook: str) -> None:
    with pytest.raises(ConfigurationError):
        principal_of(asked(settings, User(), hook))


def test_only_administrators_look_beyond_their_tenant() -> None:
    assert staff_scope(Principal(tenant="desk", is_admin=True)) is Scope.GLOBAL
    assert staff_scope(Principal(tenant="desk")) is Scope.TENANT
