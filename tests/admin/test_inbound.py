"""Mail that was stopped is let in from the list, and with its persona."""

from typing import Any

import pytest
from django.core import mail as django_mail
from django.test import Client

from personas.models import Persona
from protege.services import chains, inbox
from tests.admin import pages
from tests.admin.conftest import staff
from tests.factories import InboundMailFactory, PersonaFactory
from tests.mails import mail
from threads.models import InboundMail, Message, Run

pytestmark = pytest.mark.django_db

RELEASE = "protege_threads.release_inboundmail"
VIEW = "protege_threads.view_inboundmail"

TEXTS = [
    "Where is order 77? It should have come on Monday.",
    "Please send the invoice for March to our accountant in Graz.",
    "The blue lamp arrived broken, may I return it?",
]
"""Mails that do not resemble each other."""


@pytest.fixture
def helper(db: None) -> Persona:
    persona = PersonaFactory(slug="helper", address="helper@desk.example")
    chains.save_defaults(persona)
    return persona


def received(number: int = 1, **headers: Any) -> InboundMail:
    raw = mail(message_id=f"<{number}@client.example>", text=TEXTS[number - 1], **headers)
    (inbound,) = inbox.receive(raw, recipients=["helper@desk.example"])
    return inbound


def act(client: Client, action: str, *rows: InboundMail) -> str:
    """Choose the action for the rows in the list; what the page says then."""
    data = {"action": action, "_selected_action": [row.pk for row in rows]}
    return pages.text(client.post(pages.list_url(InboundMail), data, follow=True))


def state(inbound: InboundMail) -> tuple[str, str]:
    return InboundMail.objects.values_list("status", "reason").get(pk=inbound.pk)


class TestActions:
    def test_a_released_mail_is_answered(self, desk: Client, helper: Persona, transactional_db: None) -> None:
        inbound = received(X_Spam_Flag="YES")
        assert state(inbound) == ("quarantined", "spam")
        said = act(desk, "release", inbound)
        message = Message.objects.get(direction="inbound")
        assert f"Processed: inbound mail {inbound.pk} as message {message.pk}." in said
        assert state(inbound) == ("processed", "")
        assert Run.objects.get().message == message
        assert len(django_mail.outbox) == 1
        assert "is not quarantined" in act(desk, "release", inbound)
        assert len(django_mail.outbox) == 1

    def test_each_is_told_what_became_of_it(self, desk: Client, helper: Persona) -> None:
        spam, known = received(1, X_Spam_Flag="YES"), received(2)
        Persona.objects.update(allowed_senders=["*@partner.example"])
        said = act(desk, "release", known, spam)
        assert f"Quarantined (sender_not_allowed): inbound mail {spam.pk}." in said
        assert f"Inbound mail {known.pk} is not quarantined." in said
        assert state(spam) == ("quarantined", "sender_not_allowed")

    def test_a_failed_mail_is_processed_again(self, desk: Client, helper: Persona) -> None:
        inbound, fine, large = received(1, X_Spam_Flag="NO"), received(2), received(3)
        Message.objects.all().delete()
        InboundMail.objects.filter(pk=inbound.pk).update(status="failed", reason="error")
        InboundMail.objects.filter(pk=large.pk).update(status="failed", reason="too_large")
        said = act(desk, "rerun", inbound, fine, large)
        assert f"Processed: inbound mail {inbound.pk} as message" in said
        assert f"Inbound mail {fine.pk} has not failed." in said
        assert "Only the headers of this mail were kept." in said
        assert (state(inbound), state(large)) == (("processed", ""), ("failed", "too_large"))

    @pytest.mark.parametrize(("action", "status"), [("release", "quarantined"), ("rerun", "failed")])
    def test_only_with_the_permission_and_only_what_one_sees(
        self, action: str, status: str, desk: Client, ada: Persona, theirs: Persona
    ) -> None:
        ours = InboundMailFactory(persona=ada, tenant="desk", status=status, reason="error")
        hidden = InboundMailFactory(persona=theirs, tenant="other", status=status, reason="error")
        nobodys = InboundMailFactory(status=status, reason="error")
        reader = staff("vera", VIEW)
        assert f'value="{action}"' not in reader.get(pages.list_url(InboundMail)).content.decode()
        act(reader, action, ours)
        act(desk, action, hidden, nobodys)
        act(staff("nobody"), action, ours)
        assert {state(row) for row in (ours, hidden, nobodys)} == {(status, "error")}
        act(staff("dan", VIEW, RELEASE), action, ours)
        assert state(ours) != (status, "error")


class TestActivating:
    def test_what_waited_is_taken_in_and_answered(self, desk: Client, helper: Persona, transactional_db: None) -> None:
        Persona.objects.update(is_active=False)
        helper.refresh_from_db()
        waiting = [received(number) for number in (1, 2)]
        assert {state(row) for row in waiting} == {("quarantined", "persona_inactive")}
        data = pages.open_form(desk, helper)
        page = desk.post(pages.url_of(helper), {**data, "is_active": "on"}, follow=True)
        assert pages.errors(page) == []
        assert "was inactive: 2. They are taken in now." in pages.text(page)
        assert {state(row) for row in waiting} == {("processed", "")}
        assert Message.objects.filter(direction="inbound").count() == 2
        assert django_mail.outbox

    def test_other_changes_take_nothing_in(
        self, desk: Client, helper: Persona, django_capture_on_commit_callbacks: Any
    ) -> None:
        Persona.objects.update(is_active=False)
        helper.refresh_from_db()
        inbound = received()
        with django_capture_on_commit_callbacks(execute=True):
            pages.save(desk, helper, {**pages.open_form(desk, helper), "name": "Hilda"})
        assert state(inbound) == ("quarantined", "persona_inactive")

    def test_a_refused_form_takes_nothing_in(self, desk: Client, helper: Persona) -> None:
        Persona.objects.update(is_active=False)
        helper.refresh_from_db()
        inbound = received()
        pages.refused(desk, helper, {**pages.open_form(desk, helper), "is_active": "on", "name": ""})
        assert state(inbound) == ("quarantined", "persona_inactive")
