"""The secrets by which mail may be posted, each under a label of the project's own."""

import binascii
import os
from base64 import b64decode
from dataclasses import dataclass

from django.http import HttpRequest
from django.utils.crypto import constant_time_compare

from protege import conf
from protege.exceptions import ConfigurationError
from protege.webhooks.door import RefusedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Under which label a post was let in, and the tenant that its mail stays inside; None: any."""

    label: str
    tenant: str | None = None


def admit(request: HttpRequest, *, label: str | None = None) -> Admission:
    """Let a post in by its secret, the password of HTTP Basic or a bearer token, or refuse it with 403.

    `label` asks for the secret of that label. Without a configured secret nobody is let in.
    """
    given = presented(request)
    found = None
    for one, secret in _secrets().items():
        # No early end: how long it takes says nothing about which secrets there are.
        if constant_time_compare(given, secret) and label in (None, one):
            found = one
    if not given or found is None:
        raise RefusedError(403, "secret_required", "Send the secret of this endpoint as HTTP Basic password or token.")
    return Admission(label=found, tenant=conf.load().inbound_secrets[found].get("tenant"))


def presented(request: HttpRequest) -> str:
    """The secret in the header Authorization; "" without one."""
    scheme, _, value = request.META.get("HTTP_AUTHORIZATION", "").strip().partition(" ")
    if scheme.lower() == "bearer":
        return str(value).strip()
    if scheme.lower() == "basic":
        try:
            return b64decode(value, validate=True).decode().partition(":")[2]
        except (binascii.Error, ValueError):
            return ""
    return ""


def _secrets() -> dict[str, str]:
    """Those that are set. Two labels with one secret would leave open whose tenant a mail stays in."""
    named = {label: os.environ.get(entry["secret_env"], "") for label, entry in conf.load().inbound_secrets.items()}
    secrets = {label: secret for label, secret in named.items() if secret}
    if len(set(secrets.values())) < len(secrets):
        raise ConfigurationError('Two entries of PROTEGE["INBOUND_SECRETS"] have the same secret. Give each its own.')
    return secrets
