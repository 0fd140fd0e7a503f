"""Addresses for the webhooks of mail providers. They need the extra `anymail`.

Each has a second one with a label of INBOUND_SECRETS at its end, whose secret and tenant then hold.
"""

from collections.abc import Iterator

from django.urls import URLPattern, path

from protege.mail.providers import PROVIDERS
from protege.webhooks.providers import receive_payload

app_name = "protege-providers"


def _addresses(provider: str, name: str) -> Iterator[URLPattern]:
    given = {"provider": provider}
    yield path(f"{name}/", receive_payload, given, name=name)
    yield path(f"{name}/<str:label>/", receive_payload, given, name=f"{name}-bound")


urlpatterns = [
    *(address for provider in PROVIDERS for address in _addresses(provider, provider)),
    # Mailgun posts the mail as it came to addresses with "mime" in them, and takes it apart for others.
    *_addresses("mailgun", "mailgun_mime"),
]
