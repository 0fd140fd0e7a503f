from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError
from django.utils import timezone

from personas.models import Persona
from protege.exceptions import MailError
from protege.services import inbox, recording
from tests.factories import PersonaFactory
from tests.mail.bouncing import bounce
from tests.mails import mail
from tests.services.receiving import HELPER, outcome, receive
from threads.models import EmailThread, InboundMail, Message, Run

pytestmark = pytest.mark.django_db


@pytest.fixture
def helper() -> Persona:
    return PersonaFactory(slug="helper", address=HELPER)


class TestRelease:
    def test_a_quarantined_mail_has_no_message_until_it_is_released(self, helper: Persona) -> None:
        inbound = receive(mail(X_Spam_Flag="YES"))
        assert (inbound.message, Message.objects.count(), EmailThread.objects.count()) == (None, 0, 0)
        released = inbox.release(inbound.pk)
        assert outcome(released) == ("processed", "")
        assert released.message == Message.objects.get()
        assert Run.objects.get().message == released.message

    def test_each_reason_is_released_for_itself(self, helper: Persona) -> None:
        Persona.objects.update(allowed_senders=["*@partner.example"])
        inbound = receive(mail(X_Spam_Flag="YES"), reached_at=timezone.now() - timedelta(days=9))
        seen = [inbound.reason]
        while (inbound := inbox.release(inbound.pk)).status == "quarantined":
            seen.append(inbound.reason)
        assert seen == ["too_old", "sender_not_allowed", "spam"]
        assert (inbound.status, inbound.waived, inbound.attempts) == ("processed", seen, 4)

    def test_a_denied_sender_stays_out(self, helper: Persona) -> None:
        inbound = receive(mail(X_Spam_Flag="YES"))
        Persona.objects.update(denied_senders=["*@client.example"])
        assert outcome(inbox.release(inbound.pk)) == ("ignored", "denied_sender")

    def test_an_automatic_mail_is_still_not_answered(self, helper: Persona) -> None:
        inbound = receive(mail(X_Spam_Flag="YES", Precedence="bulk"))
        assert outcome(inbox.release(inbound.pk)) == ("ignored", "precedence")

    def test_another_text_under_the_same_id_becomes_a_message_of_its_own(self, helper: Persona) -> None:
        receive(mail())
        other = mail(text="Something else entirely.")
        released = inbox.release(receive(other).pk)
        assert released.message is not None
        assert released.message.claimed_message_id == "<first@client.example>"
        assert receive(other).status == "duplicate"
        assert receive(mail()).status == "duplicate"

    def test_several_senders(self, helper: Persona) -> None:
        released = inbox.release(receive(mail(from_="ana@client.example, ben@client.example")).pk)
        assert released.message is not None
        assert (released.message.from_address, released.message.trust) == ("ana@client.example", "unverified")
        assert Run.objects.exists()

    def test_a_mail_without_a_sender_has_nobody_to_answer(self, helper: Persona) -> None:
        released = inbox.release(receive(mail(from_="")).pk)
        assert outcome(released) == ("ignored", "no_sender")
        assert released.message is not None
        assert not Run.objects.exists()

    def test_it_is_released_once(self, helper: Persona) -> None:
        inbound = receive(mail(X_Spam_Flag="YES"))
        inbox.release(inbound.pk)
        with pytest.raises(MailError) as error:
            inbox.release(inbound.pk)
        assert error.value.code == "not_quarantined"
        assert (Message.objects.count(), Run.objects.count()) == (1, 1)

    def test_a_source_that_is_gone_is_a_failure_to_be_seen(self, helper: Persona) -> None:
        inbound = receive(mail(X_Spam_Flag="YES"))
        InboundMail.objects.update(raw=None)
        assert outcome(inbox.release(inbound.pk)) == ("failed", "raw_gone")


class TestInactivePersona:
    def test_its_mail_waits_until_it_is_active_again(self, helper: Persona) -> None:
        Persona.objects.update(is_active=False)
        for number in range(2):
            receive(mail(message_id=f"<{number}@client.example>", text="!" * number))
        helper.refresh_from_db()
        assert inbox.release_waiting(helper) == []
        helper.is_active = True
        helper.save()
        assert [row.status for row in inbox.release_waiting(helper)] == ["processed", "processed"]
        stored = Message.objects.order_by("pk").values_list("message_id", flat=True)
        assert list(stored) == ["<0@client.example>", "<1@client.example>"]
        assert inbox.release_waiting(helper) == []

    def test_the_other_rules_hold_as_ever(self, helper: Persona) -> None:
        Persona.objects.update(is_active=False)
        receive(mail(X_Spam_Flag="YES"))
        receive(bounce(), sender="")
        Persona.objects.update(is_active=True)
        helper.refresh_from_db()
        assert [row.reason for row in inbox.release_waiting(helper)] == ["spam", "bounce_unknown"]

    def test_what_waits_for_another_reason_goes_on_waiting(self, helper: Persona) -> None:
        receive(mail(X_Spam_Flag="YES"))
        assert inbox.release_waiting(helper) == []
        assert InboundMail.objects.get().status == "quarantined"


class TestRerun:
    def test_a_failed_mail_goes_on_where_it_failed(self, helper: Persona, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*args: Any) -> None:
            raise DatabaseError("gone")

        with monkeypatch.context() as patched:
            patched.setattr(recording, "_store", broken)
            inbound = receive(mail())
        assert inbound.status == "failed"
        (again,) = inbox.rerun(inbound.pk)
        assert (outcome(again), again.attempts) == (("processed", ""), 2)
        assert Run.objects.count() == 1

    def test_an_unroutable_mail_finds_the_personas_that_there_are_now(self, helper: Persona) -> None:
        inbound = receive(mail(), recipients=["late@desk.example", "later@desk.example"])
        assert inbound.status == "unroutable"
        personas = [PersonaFactory(slug=slug, address=f"{slug}@desk.example") for slug in ("late", "later")]
        rows = inbox.rerun(inbound.pk)
        assert [(row.persona, row.status) for row in rows] == [(persona, "processed") for persona in personas]

    def test_a_mail_of_which_the_headers_alone_were_kept_cannot(self, helper: Persona, settings: Any) -> None:
        settings.PROTEGE = {**settings.PROTEGE, "MAIL_SIZE_LIMIT": 100}
        with pytest.raises(MailError) as error:
            inbox.rerun(receive(mail()).pk)
        assert error.value.code == "too_large"

    def test_what_went_well_is_not_done_again(self, helper: Persona) -> None:
        with pytest.raises(MailError) as error:
            inbox.rerun(receive(mail()).pk)
        assert error.value.code == "not_failed"
