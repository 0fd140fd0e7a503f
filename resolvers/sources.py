"""Registered sources at work: looked up by name, and withheld from senders whom nobody has verified."""

from typing import TYPE_CHECKING

from protege.exceptions import ResolverError
from resolvers.base import Resolver
from resolvers.registry import Source, sources

if TYPE_CHECKING:
    from protege.context import Context

KNOWN_TRUST = ("own_staff", "verified")


def source_named(name: str) -> Source:
    """The source that code registered under `name`; a `ResolverError` names it and the known ones."""
    source = sources.get(name)
    if source is None:
        known = ", ".join(sources.names()) or "none"
        raise ResolverError(
            f"No installed app registers the source {name!r}. Registered: {known}.", code="unknown_source"
        )
    return source


def withheld(resolver: Resolver, context: "Context", *, what: str) -> bool:
    """True when records of the sender must not be read, as anybody may have written the mail's From line.

    Leaves the notice `unverified_sender` then. `PROTEGE["TRUST_UNVERIFIED"]` opts out; a scheduled run has no sender.
    """
    if context.message is None or context.message.trust in KNOWN_TRUST or context.config.trust_unverified:
        return False
    resolver.notice("unverified_sender", source=what)
    return True
