"""Who a request comes from, and which owner scope it reads in.

DRF is not needed for this, so that other doors of the web (the admin) can ask the same question.
"""

import re
from collections.abc import Callable
from typing import cast

from django.http import HttpRequest
from django.utils.module_loading import import_string

from personas.models import DEFAULT_TENANT, Persona, PersonaQuerySet
from protege import conf
from protege.exceptions import ConfigurationError, NotVisibleError, ScopeError
from protege.principals import Principal, Scope

READ_THREADS = "protege_threads.view_emailthread"

NO_PERSONA = "There is no such persona, or you may not see it."

_ID = re.compile(r"[0-9]{1,18}")


def principal_of(request: HttpRequest) -> Principal:
    """The identity of the request's user; nobody has none.

    The hook `PROTEGE["PRINCIPAL_FROM_REQUEST"]` decides where there is one. By default there is one tenant, and only
    a staff user's e-mail address counts: nobody has verified those of others.
    """
    if not _is_known(request):
        return Principal()
    path = conf.load().principal_from_request
    return _hooked(path, request) if path else _default(request)


def granted_scope(request: HttpRequest) -> Scope:
    """The scope that `?scope=` asks for, when the caller may use it; without one the widest that he may use.

    Raises `ScopeError`, with the code `unknown_scope` for a word that is none.
    """
    granted = granted_scopes(request, principal_of(request))
    wanted = request.GET.get("scope")
    if wanted is None:
        return granted[-1]
    scope = Scope.parse(wanted)
    if scope not in granted:
        raise ScopeError(f"The scope {scope.value!r} is not granted to you. Use one of: {', '.join(granted)}.")
    return scope


def granted_scopes(request: HttpRequest, principal: Principal) -> list[Scope]:
    """What the caller may use, narrowest first. `global` needs an authenticated admin, whoever else is asking."""
    if not _is_known(request):
        return [Scope.USER]
    if principal.is_admin:
        return list(Scope)
    if request.user.is_staff and request.user.has_perm(READ_THREADS):
        return [Scope.SELF, Scope.USER, Scope.TENANT]
    return [Scope.USER]


def asking(request: HttpRequest) -> tuple[Principal, Scope]:
    """The principal and the scope that a read on this request's behalf goes by.

    The scope `self` takes the identity of the persona that `?as_persona=` names; `NotVisibleError` when the caller
    cannot see that one.
    """
    principal, scope = principal_of(request), granted_scope(request)
    named = request.GET.get("as_persona")
    if scope is not Scope.SELF:
        if named is not None:
            raise ScopeError("`as_persona` goes with scope=self. Add that, or leave it out.", code="as_persona")
        return principal, scope
    if named is None:
        raise ScopeError("The scope 'self' needs the identity of a persona. Name it by as_persona=<id>.")
    persona = _personas_of(principal).filter(pk=named).first() if _ID.fullmatch(named) else None
    if persona is None:
        raise NotVisibleError(NO_PERSONA)
    return Principal(tenant=persona.tenant, persona=persona.pk), scope


def visible_personas(request: HttpRequest) -> PersonaQuerySet:
    """The personas that a caller with the right to view personas may see.

    They belong to a tenant and to no correspondent, so that such a caller sees those of his tenant, and an admin
    all; `?scope=` narrows that, as it does for everything else.
    """
    if "scope" in request.GET or "as_persona" in request.GET:
        return Persona.objects.visible_to(*asking(request))
    return _personas_of(principal_of(request))


def _personas_of(principal: Principal) -> PersonaQuerySet:
    return Persona.objects.visible_to(principal, Scope.GLOBAL if principal.is_admin else Scope.TENANT)


def _is_known(request: HttpRequest) -> bool:
    return bool(request.user.is_authenticated and request.user.is_active)


def _default(request: HttpRequest) -> Principal:
    user = request.user
    email = str(getattr(user, "email", "") or "") if user.is_staff else ""
    return Principal(tenant=DEFAULT_TENANT, correspondent=email.lower() or None, is_admin=user.is_superuser)


def _hooked(path: str, request: HttpRequest) -> Principal:
    try:
        hook = cast(Callable[[HttpRequest], object], import_string(path))
    except ImportError as error:
        raise ConfigurationError(f"PROTEGE['PRINCIPAL_FROM_REQUEST'] names {path!r}, which is not there.") from error
    principal = hook(request)
    if not isinstance(principal, Principal):
        raise ConfigurationError(f"{path} returned {type(principal).__name__}. It returns a Principal.")
    return principal
