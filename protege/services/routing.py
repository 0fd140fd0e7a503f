"""Which persona a mail is for: the envelope decides, a header only where there is no envelope."""

from collections.abc import Iterable, Sequence

from django.db import transaction

from personas.models import Persona, PersonaAddress
from protege.mail.parsing import ParsedMail
from threads.models import InboundMail, InboundStatus


def split(inbound: InboundMail, mail: ParsedMail) -> list[InboundMail]:
    """One row for each persona that the mail reaches; the first is `inbound` itself.

    Without a persona the row ends as `unroutable`. Two workers that meet here split the mail once: the first
    statement claims the row.
    """
    if inbound.persona_id is not None:
        return [inbound]
    personas = personas_for(inbound, mail)
    if not personas:
        _claim(inbound, status=InboundStatus.UNROUTABLE, reason="no_persona")
        return [inbound]
    with transaction.atomic():
        if not _claim(inbound, persona=personas[0], tenant=personas[0].tenant):
            return [inbound]
        others = [_copy(inbound, persona) for persona in personas[1:]]
    return [inbound, *others]


def personas_for(inbound: InboundMail, mail: ParsedMail) -> list[Persona]:
    """The personas at the envelope's recipients, else at those that our mail server noted, else in To and Cc."""
    for addresses in (inbound.recipients, mail.delivered_to):
        if addresses:
            return _at(addresses, tenant=inbound.tenant)
    if not inbound.tenant and _several_tenants():
        return []
    return _at([mailbox.address for mailbox in (*mail.to, *mail.cc)], tenant=inbound.tenant)


def without_tag(address: str) -> str:
    """`helper+q3@desk.example` as `helper@desk.example`."""
    local, _, domain = address.rpartition("@")
    return f"{local.split('+', 1)[0]}@{domain}"


def own_addresses(addresses: Iterable[str], *, persona: Persona | None = None) -> set[str]:
    """Those of `addresses` that belong to any persona, or to `persona`, under whatever alias, tag or case."""
    spellings = {address: _spellings(address) for address in addresses}
    wanted = {spelling for options in spellings.values() for spelling in options}
    rows = PersonaAddress.objects.filter(address__in=wanted)
    known = set((rows.filter(persona=persona) if persona else rows).values_list("address", flat=True))
    return {address for address, options in spellings.items() if known.intersection(options)}


def _at(addresses: Sequence[str], *, tenant: str) -> list[Persona]:
    """Exact address first, then without its tag; each persona once, in the order of the addresses."""
    wanted = {spelling for address in addresses for spelling in _spellings(address)}
    rows = PersonaAddress.objects.filter(address__in=wanted).select_related("persona")
    if tenant:
        rows = rows.filter(persona__tenant=tenant)
    by_address = {row.address: row.persona for row in rows}
    found = [
        next((by_address[spelling] for spelling in _spellings(address) if spelling in by_address), None)
        for address in addresses
    ]
    return list({persona.pk: persona for persona in found if persona is not None}.values())


def _spellings(address: str) -> list[str]:
    lowered = address.strip().strip("<>").lower()
    return [lowered, without_tag(lowered)]


def _several_tenants() -> bool:
    return Persona.objects.order_by().values("tenant").distinct().count() > 1


def _claim(inbound: InboundMail, **fields: object) -> bool:
    """Write `fields` if nobody has routed the row yet; the row in hand shows what holds afterwards."""
    free = InboundMail.objects.filter(pk=inbound.pk, persona__isnull=True, status=InboundStatus.RECEIVED)
    claimed = free.update(**fields) == 1
    inbound.refresh_from_db()
    return claimed


def _copy(inbound: InboundMail, persona: Persona) -> InboundMail:
    return InboundMail.objects.create(
        raw=inbound.raw,
        persona=persona,
        tenant=persona.tenant,
        recipients=inbound.recipients,
        sender=inbound.sender,
        source=inbound.source,
        reached_at=inbound.reached_at,
        received_at=inbound.received_at,
    )
