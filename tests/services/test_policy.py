from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from personas.models import Persona
from protege.services import inbox, runs
from tests.factories import PersonaAddressFactory, PersonaFactory
from tests.mails import mail
from tests.services.receiving import HELPER, outcome, receive, received
from threads.models import EmailThread, Message, Run

pytestmark = pytest.mark.django_db

OURS = "mx.desk.example"


@pytest.fixture
def helper(settings: Any) -> Persona:
    settings.PROTEGE = {**settings.PROTEGE, "AUTHSERV_IDS": [OURS]}
    return PersonaFactory(slug="helper", address=HELPER, staff_senders=["*@desk.example"])


def results(text: str) -> dict[str, str]:
    return {"Authentication_Results": f"{OURS}; {text}"}


class TestTrust:
    def test_a_mail_that_nobody_vouches_for_is_unverified(self, helper: Persona) -> None:
        assert received(mail()).trust == "unverified"

    def test_our_own_server_vouches_for_a_sender(self, helper: Persona) -> None:
        assert received(mail(**results("dmarc=pass"))).trust == "verified"

    def test_a_verified_colleague_is_own_staff(self, helper: Persona) -> None:
        assert received(mail(from_="dana@desk.example", **results("dmarc=pass"))).trust == "own_staff"

    def test_to_be_listed_is_not_enough(self, helper: Persona) -> None:
        assert received(mail(from_="dana@desk.example")).trust == "unverified"

    def test_a15_the_address_counts_and_not_the_name(self, helper: Persona) -> None:
        forged = mail(from_='"dana@desk.example" <cora@rival.example>', **results("dkim=pass header.d=rival.example"))
        message = received(forged)
        assert (message.from_address, message.trust) == ("cora@rival.example", "verified")

    def test_without_listed_servers_everybody_is_unverified(self, helper: Persona, settings: Any) -> None:
        settings.PROTEGE = {**settings.PROTEGE, "AUTHSERV_IDS": []}
        assert received(mail(**results("dmarc=pass"))).trust == "unverified"

    def test_preview_of_a_pasted_mail_shows_the_same_trust(self, helper: Persona) -> None:
        assert inbox.parse(mail(**results("dmarc=pass")), helper).trust == "verified"


class TestWhatAPersonSeesFirst:
    def test_a_failed_dmarc(self, helper: Persona) -> None:
        assert outcome(receive(mail(**results("dmarc=fail")))) == ("quarantined", "dmarc_fail")
        assert not Message.objects.exists()

    def test_a_mark_of_spam(self, helper: Persona) -> None:
        assert outcome(receive(mail(X_Spam_Flag="YES"))) == ("quarantined", "spam")

    def test_the_project_may_let_them_pass(self, helper: Persona, settings: Any) -> None:
        settings.PROTEGE = {**settings.PROTEGE, "QUARANTINE": ["spam"]}
        assert received(mail(**results("dmarc=fail"))).trust == "unverified"

    def test_mail_that_a_server_held_for_over_5_days(self, helper: Persona) -> None:
        reached = timezone.now() - timedelta(days=5, minutes=1)
        assert outcome(receive(mail(), reached_at=reached)) == ("quarantined", "too_old")

    @pytest.mark.parametrize("date", ["Mon, 02 Mar 1998 09:00:00 +0100", "Mon, 02 Mar 2099 09:00:00 +0100", "junk"])
    def test_a19_a20_the_senders_clock_never_decides(self, helper: Persona, date: str) -> None:
        raw = mail().replace(b"Mon, 02 Mar 2026 09:00:00 +0100", date.encode())
        reached = timezone.now() - timedelta(days=4)
        assert receive(raw, reached_at=reached).status == "processed"

    def test_denied_senders_win_over_everything(self, helper: Persona) -> None:
        Persona.objects.update(denied_senders=["*@client.example"], is_active=False)
        assert outcome(receive(mail(X_Spam_Flag="YES"))) == ("ignored", "denied_sender")
        assert outcome(receive(mail(from_="ana@client.example, b@x.example"))) == ("ignored", "denied_sender")


class TestContactForms:
    FORM = "noreply@shop.example"

    @pytest.fixture
    def helper(self, helper: Persona) -> Persona:
        helper.form_senders = [self.FORM]
        helper.save()
        return helper

    def test_a_no_reply_sender_is_not_answered(self, helper: Persona) -> None:
        assert outcome(receive(mail(from_="no-reply@bank.example"))) == ("ignored", "no_reply")

    def test_a_form_is_answered_to_its_one_reply_to(self, helper: Persona) -> None:
        message = received(mail(from_=self.FORM, Reply_To="Ana <ana@client.example>", **results("dmarc=pass")))
        assert message.trust == "unverified"
        assert message.thread.correspondent == "ana@client.example"
        assert list(message.thread.participants.values_list("address", flat=True)) == ["ana@client.example"]
        answer = runs.execute(Run.objects.get().pk).outbound.get()
        assert answer.to == [{"name": "Ana", "address": "ana@client.example"}]

    def test_the_person_goes_on_in_the_thread(self, helper: Persona) -> None:
        first = received(mail(from_=self.FORM, Reply_To="ana@client.example"))
        answer = runs.execute(Run.objects.get().pk).outbound.get()
        reply = received(mail(message_id="<2@client.example>", text="Thanks!", In_Reply_To=answer.message_id))
        assert reply.thread == first.thread

    @pytest.mark.parametrize("reply_to", ["", "ana@client.example, ben@client.example"])
    def test_a_form_without_one_is_a_no_reply_sender(self, helper: Persona, reply_to: str) -> None:
        headers = {"Reply_To": reply_to} if reply_to else {}
        assert outcome(receive(mail(from_=self.FORM, **headers))) == ("ignored", "no_reply")

    @pytest.mark.parametrize(("reply_to", "reason"), [(HELPER, "own_address"), ("no-reply@x.example", "no_reply")])
    def test_nobody_is_answered_who_must_not_be(self, helper: Persona, reply_to: str, reason: str) -> None:
        assert outcome(receive(mail(from_=self.FORM, Reply_To=reply_to))) == ("ignored", reason)

    def test_a_form_of_our_own_domain_is_no_colleague(self, helper: Persona) -> None:
        helper.form_senders = ["form@desk.example"]
        helper.save()
        message = received(mail(from_="form@desk.example", Reply_To="ana@client.example", **results("dmarc=pass")))
        assert message.trust == "unverified"
        assert Run.objects.exists()


class TestMailingLists:
    LIST = {"List_Id": "Support <support.desk.example>"}

    def test_list_mail_is_not_answered(self, helper: Persona) -> None:
        inbound = receive(mail(to="support@desk.example", **self.LIST))
        assert outcome(inbound) == ("ignored", "mailing_list")
        assert inbound.message is not None

    @pytest.mark.parametrize("pattern", ["support.desk.example", "support@desk.example", "*.desk.example"])
    def test_a_group_in_front_of_the_persona_is_its_own(self, helper: Persona, pattern: str) -> None:
        Persona.objects.update(own_lists=[pattern])
        message = received(mail(to="support@desk.example", Cc="all@client.example", **self.LIST))
        assert "mailing_list" in message.warnings
        answer = runs.execute(Run.objects.get().pk).outbound.get()
        assert [entry["address"] for entry in (*answer.to, *answer.cc)] == ["ana@client.example"]

    @pytest.mark.parametrize("to", ["HELPER+x@desk.example", "alias@desk.example"])
    def test_so_is_a_mail_with_the_persona_in_to(self, helper: Persona, to: str) -> None:
        PersonaAddressFactory(persona=helper, address="alias@desk.example")
        assert receive(mail(to=to, **self.LIST)).status == "processed"

    def test_another_persona_in_to_is_no_reason(self, helper: Persona) -> None:
        PersonaFactory(slug="billing", address="billing@desk.example")
        assert outcome(receive(mail(to="billing@desk.example", Precedence="list"))) == ("ignored", "mailing_list")


class TestAutomaticMail:
    @pytest.mark.parametrize(
        ("headers", "reason"),
        [
            ({"Auto_Submitted": "auto-generated"}, "auto_submitted"),
            ({"Precedence": "bulk"}, "precedence"),
            ({"X_Autoreply": "yes"}, "x_autoreply"),
            ({"X_Autorespond": "1"}, "x_autoreply"),
            ({"Return_Path": "<>"}, "null_return_path"),
        ],
    )
    def test_a10_it_is_stored_and_not_answered(self, helper: Persona, headers: dict[str, str], reason: str) -> None:
        inbound = receive(mail(**headers))
        assert outcome(inbound) == ("ignored", reason)
        assert inbound.message is not None
        assert inbound.message.status == "ignored"
        assert not Run.objects.exists()

    def test_the_null_path_of_the_envelope_counts(self, helper: Persona) -> None:
        assert outcome(receive(mail(), sender="")) == ("ignored", "null_return_path")

    @pytest.mark.parametrize("header", ["X_Auto_Response_Suppress", "List_Unsubscribe"])
    def test_what_is_asked_of_others_says_nothing(self, helper: Persona, header: str) -> None:
        assert receive(mail(**{header: "All"})).status == "processed"

    def test_a13_every_own_address_is_one(self, helper: Persona) -> None:
        PersonaAddressFactory(persona=helper, address="helper@desk-alias.example")
        for number, from_ in enumerate(["HELPER+q3@desk.example", "helper@desk-alias.example"]):
            assert outcome(receive(mail(from_=from_, message_id=f"<{number}@x.example>"))) == ("ignored", "own_address")
        assert EmailThread.objects.filter(runs__isnull=False).count() == 0
