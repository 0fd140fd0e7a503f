"""Who is asking, and what that lets them see.

A principal is built from the caller's identity, never from arguments. A scope decides which rows of
`EmailThread` it opens; the SQL for it stands in one place, `EmailThread.objects.visible_to`.
"""

from dataclasses import dataclass
from enum import StrEnum

from protege.exceptions import ScopeError

DEFAULT_TENANT = "default"
"""The one tenant of a project that does not tell tenants apart."""


class Scope(StrEnum):
    """The owner scopes, narrowest first."""

    SELF = "self"
    USER = "user"
    TENANT = "tenant"
    GLOBAL = "global"

    @classmethod
    def parse(cls, value: object) -> "Scope":
        """The scope called `value`; anything else is a `ScopeError` that lists the legal ones."""
        try:
            return cls(str(value))
        except ValueError:
            legal = ", ".join(cls)
            raise ScopeError(f"Unknown scope {value!r}. Use one of: {legal}.", code="unknown_scope") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """An identity. What the transport does not know stays None, and then opens nothing.

    `correspondent` is a lower-case e-mail address, `persona` a primary key.
    """

    tenant: str | None = None
    correspondent: str | None = None
    persona: int | None = None
    is_admin: bool = False

    def require(self, scope: Scope) -> None:
        """Raise `ScopeError` when this principal lacks the identity that `scope` needs."""
        missing = self._missing(scope)
        if missing:
            raise ScopeError(f"The scope {scope.value!r} needs {missing}.")

    def _missing(self, scope: Scope) -> str | None:
        if scope is Scope.GLOBAL:
            return None if self.is_admin else "an administrator"
        if not self.tenant:
            return "a tenant"
        if scope is Scope.SELF and not self.persona:
            return "the identity of a persona"
        if scope is Scope.USER and not self.correspondent:
            return "the identity of a correspondent"
        return None
