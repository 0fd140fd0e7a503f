"""Which owner scope a request reads in."""

import re

from django.http import HttpRequest

from personas.models import Persona, PersonaQuerySet
from protege.exceptions import NotVisibleError, ScopeError
from protege.identity import is_known, principal_of, staff_scope
from protege.principals import Principal, Scope

READ_THREADS = "protege_threads.view_emailthread"

NO_PERSONA = "There is no such persona, or you may not see it."

_ID = re.compile(r"[0-9]{1,18}")


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
    if not is_known(request):
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
    return Persona.objects.visible_to(principal, staff_scope(principal))
