"""Who makes a request: the one place where admin and HTTP doors turn a request into a `Principal`."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.http import HttpRequest
from django.utils.module_loading import import_string

from protege import conf
from protege.exceptions import ConfigurationError
from protege.principals import DEFAULT_TENANT, Principal, Scope


def principal_of(request: HttpRequest) -> Principal:
    """The identity of the request's user; nobody, and an account that was closed, has none.

    The hook `PROTEGE["PRINCIPAL_FROM_REQUEST"]` decides where there is one. It is asked once a request, as one page
    looks at the answer for every list of choices.
    """
    known: Principal | None = getattr(request, "_protege_principal", None)
    if known is None:
        known = _rule()(request) if is_known(request) else Principal()
        request._protege_principal = known  # type: ignore[attr-defined]  # an attribute of our own
    return known


def staff_scope(principal: Principal) -> Scope:
    """What staff see in the admin: an administrator everything, everybody else their tenant."""
    return Scope.GLOBAL if principal.is_admin else Scope.TENANT


def is_known(request: HttpRequest) -> bool:
    """Whether somebody with an open account asks."""
    user = getattr(request, "user", None)
    return bool(user is not None and user.is_authenticated and user.is_active)


def author_of(request: HttpRequest) -> AbstractBaseUser:
    """Who does what is written down; call it where nobody passes who is not logged in."""
    assert isinstance(request.user, AbstractBaseUser)
    return request.user


def _built_in(request: HttpRequest) -> Principal:
    """One tenant; of staff users the e-mail address, as nobody has verified those of others."""
    user: Any = request.user
    address = (getattr(user, "email", "") or "").strip().lower() if user.is_staff else ""
    return Principal(tenant=DEFAULT_TENANT, correspondent=address or None, is_admin=bool(user.is_superuser))


def _rule() -> Callable[[HttpRequest], Principal]:
    path = conf.load().principal_from_request
    return partial(_hooked, path) if path else _built_in


def _hooked(path: str, request: HttpRequest) -> Principal:
    try:
        hook: Callable[[HttpRequest], object] = import_string(path)
    except ImportError as error:
        raise ConfigurationError(
            f'PROTEGE["PRINCIPAL_FROM_REQUEST"] names {path!r}, which is not there. Name a callable that takes the '
            "request and returns a protege.principals.Principal."
        ) from error
    answer = hook(request)
    if not isinstance(answer, Principal):
        raise ConfigurationError(f"{path} returned {type(answer).__name__}. It returns a protege.principals.Principal.")
    return answer
