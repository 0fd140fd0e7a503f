"""Two personas among systems that answer everything: it goes quiet, and people are answered all the while."""

import pytest

from personas.models import Persona
from protege.services import chains
from tests.factories import PersonaFactory
from tests.services.world import AWAY, GONE, RELAY, ROBOTS, World
from threads.models import Participant

pytestmark = pytest.mark.django_db

ANA = "ana@client.example"
MOST_MAILS = 60
"""Four systems that write to two personas, none of which may get more than the governor's 10 from each."""


@pytest.fixture
def personas() -> list[Persona]:
    found = [PersonaFactory(slug=slug, address=f"{slug}@desk.example") for slug in ("helper", "billing")]
    for persona in found:
        chains.save_defaults(persona)
    return found


@pytest.mark.parametrize("minutes", [0, 5, 90])
def test_a_thousand_rounds_go_quiet_and_a_person_is_answered(personas: list[Persona], minutes: int) -> None:
    world = World(*personas)
    for persona in personas:
        for address in (AWAY, f"r0@{ROBOTS}", GONE, RELAY, personas[0].address):
            world.post("What does delivery cost?", from_=address, to=persona.address)
    for number in range(1_000):
        if number == 500:
            before = world.sent
            world.post("Where is order 77?", from_=ANA, to=personas[0].address)
        if number == 510:
            world.post("And the invoice?", from_=ANA, to=personas[0].address, answers=world.mailboxes[ANA][-1])
        world.round(minutes=minutes)
    assert len(world.mailboxes[ANA]) == 2
    assert world.sent == before + 2
    assert 10 < before < MOST_MAILS
    assert world.waiting == []
    assert not Participant.objects.filter(address=GONE, failing_since__isnull=True).exists()
