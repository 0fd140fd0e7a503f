"""What every door does alike: a subclass says how a mail is handed to its door."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from personas.models import Persona
from tests.factories import PersonaFactory
from tests.mails import mail
from threads.models import InboundMail, Message, RawMail, Run

HELPER = "helper@desk.example"
ANA = "ana@client.example"


def crlf_mail(**fields: Any) -> bytes:
    """A mail with the line ends that it has on the way."""
    return mail(**fields).replace(b"\n", b"\r\n")


class DoorContract:
    """`deliver` hands one mail to the door; `tenant` is the one that the door is bound to."""

    source = ""
    media_type = "message/rfc822"
    knows_sender = True
    """False where the door does not learn the envelope's sender."""

    keeps_unroutable = True
    """False where the door refuses the mail before it is handed over."""

    def deliver(
        self, raw: bytes, *, to: Sequence[str] = (HELPER,), sender: str = ANA, tenant: str | None = None
    ) -> None:
        raise NotImplementedError

    def stored(self, raw: bytes) -> bytes:
        """What is kept of it."""
        return raw

    def refusal(self) -> AbstractContextManager[Any]:
        """How the door shows that nobody is at the address."""
        return nullcontext()

    @pytest.fixture
    def helper(self) -> Persona:
        return PersonaFactory(slug="helper", address=HELPER, reply_mode="off")

    def test_the_mail_is_stored_as_it_came(self, helper: Persona) -> None:
        raw = crlf_mail(text="Größe: 5 ½\n.\n..\nFrom here", files=[("a.bin", "application/x-a", bytes(range(256)))])
        self.deliver(raw)
        kept = RawMail.objects.get()
        assert kept.unpack() == self.stored(raw)
        assert kept.media_type == self.media_type
        message = Message.objects.get()
        assert message.text_body.splitlines()[0] == "Größe: 5 ½"
        assert [file.size for file in message.attachments.all()] == [256]

    def test_the_persona_is_the_envelopes(self, helper: Persona) -> None:
        PersonaFactory(slug="other", address="other@desk.example")
        self.deliver(crlf_mail(to="other@desk.example"))
        inbound = InboundMail.objects.get()
        assert (inbound.status, inbound.persona) == ("processed", helper)
        assert inbound.message == Message.objects.get(persona=helper)
        assert inbound.message.from_address == ANA
        assert inbound.message.subject == "Where is my order?"

    def test_the_envelope_is_kept(self, helper: Persona) -> None:
        self.deliver(crlf_mail(), to=["helper+q3@desk.example"], sender="bounces+7@client.example")
        inbound = InboundMail.objects.get()
        assert inbound.recipients == ["helper+q3@desk.example"]
        assert inbound.sender == ("bounces+7@client.example" if self.knows_sender else None)
        assert inbound.source == self.source

    def test_a_null_path_is_automatic_mail(self, helper: Persona) -> None:
        self.deliver(crlf_mail(), sender="")
        inbound = InboundMail.objects.get()
        expected = ("", "ignored") if self.knows_sender else (None, "processed")
        assert (inbound.sender, inbound.status) == expected

    def test_two_personas_get_one_message_each(self, helper: Persona) -> None:
        billing = PersonaFactory(slug="billing", address="billing@desk.example", reply_mode="off")
        self.deliver(crlf_mail(), to=[HELPER, "billing@desk.example"])
        assert sorted(Message.objects.values_list("persona", flat=True)) == sorted([helper.pk, billing.pk])

    def test_a_mail_starts_one_run(self, helper: Persona) -> None:
        Persona.objects.update(reply_mode="draft")
        self.deliver(crlf_mail())
        assert Run.objects.get().message == Message.objects.get(direction="inbound")

    def test_the_same_mail_again_is_a_duplicate(self, helper: Persona) -> None:
        self.deliver(crlf_mail())
        self.deliver(crlf_mail())
        assert list(InboundMail.objects.order_by("id").values_list("status", flat=True)) == ["processed", "duplicate"]
        assert Message.objects.count() == 1

    def test_nobody_at_the_address(self, helper: Persona) -> None:
        with self.refusal():
            self.deliver(crlf_mail(), to=["nobody@desk.example"])
        assert not Message.objects.exists()
        kept = list(InboundMail.objects.values_list("status", "reason"))
        assert kept == ([("unroutable", "no_persona")] if self.keeps_unroutable else [])

    def test_a_bound_door_stays_inside_its_tenant(self, helper: Persona) -> None:
        other = PersonaFactory(tenant="other", slug="helper", address="helper@other.example", reply_mode="off")
        with self.refusal():
            self.deliver(crlf_mail(to="helper@other.example"), to=[HELPER], tenant="other")
        assert not Message.objects.exists()
        self.deliver(crlf_mail(), to=["helper@other.example"], tenant="other")
        assert Message.objects.get().persona == other
        assert set(InboundMail.objects.values_list("tenant", flat=True)) == {"other"}

    def test_what_is_no_mail_blocks_no_other(self, helper: Persona) -> None:
        self.deliver(b"this is no mail at all\r\n")
        self.deliver(crlf_mail())
        first, second = InboundMail.objects.order_by("id")
        assert first.status in ("quarantined", "failed")
        assert second.status == "processed"
