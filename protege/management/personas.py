"""How the shell names a persona."""

from django.core.management.base import CommandError

from personas.models import Persona


def persona_named(name: str) -> Persona:
    """The persona with this id, `tenant/slug`, address, or slug; a `CommandError` says what there is."""
    found = _matches(name)
    if len(found) == 1:
        return found[0]
    if found:
        choices = ", ".join(f"{persona.tenant}/{persona.slug}" for persona in found)
        raise CommandError(f"{name!r} names several personas. Use one of: {choices}.")
    known = ", ".join(str(persona) for persona in Persona.objects.all()[:20]) or "none yet: see create_persona"
    raise CommandError(f"There is no persona {name!r}. There are: {known}.")


def _matches(name: str) -> list[Persona]:
    if name.isdigit():
        return list(Persona.objects.filter(pk=int(name)))
    if "@" in name:
        return list(Persona.objects.at(name))
    tenant, _, slug = name.rpartition("/")
    found = Persona.objects.filter(slug=slug)
    return list(found.filter(tenant=tenant) if tenant else found)
