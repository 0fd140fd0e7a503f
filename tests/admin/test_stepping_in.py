"""Threads are paused and released, and failed mails are sent again, with buttons."""

from typing import Any

import pytest
from django.core import mail as django_mail
from django.test import Client
from django.urls import reverse

from personas.models import Persona
from tests.admin import pages
from tests.admin.conftest import staff
from tests.factories import EmailThreadFactory, MessageFactory, OutboundFactory
from threads.models import EmailThread, Message, Run

pytestmark = pytest.mark.django_db

PAUSE = "protege_threads.pause_emailthread"
RESEND = "protege_threads.resend_message"
VIEWS = ("protege_threads.view_emailthread", "protege_threads.view_message")


def url(row: EmailThread | Message, what: str) -> str:
    return reverse(f"admin:protege_threads_{row._meta.model_name}_{what}", args=[row.pk])


def failed(persona: Persona) -> Message:
    inbound = MessageFactory(thread__persona=persona)
    message: Message = OutboundFactory(
        thread=inbound.thread, answers=inbound, status="failed", attempts=8, last_code="refused"
    )
    return message


def is_paused(thread: EmailThread) -> bool:
    return EmailThread.objects.get(pk=thread.pk).paused_at is not None


class TestAllowed:
    @pytest.mark.parametrize("what", ["pause", "release", "resend"])
    def test_post_then_the_permission_then_what_one_sees(
        self, what: str, desk: Client, ada: Persona, theirs: Persona
    ) -> None:
        ours, hidden = (failed(persona) if what == "resend" else failed(persona).thread for persona in (ada, theirs))
        missing = type(ours)(pk=999_999)
        permission, other = (RESEND, PAUSE) if what == "resend" else (PAUSE, RESEND)
        assert desk.get(url(ours, what)).status_code == 405
        assert "login" in Client().post(url(ours, what))["Location"]
        for client in (staff("vera", *VIEWS, other), staff("ben", permission)):
            assert [client.post(url(row, what)).status_code for row in (ours, hidden, missing)] == [403, 403, 403]
        assert [desk.post(url(row, what)).status_code for row in (hidden, missing)] == [404, 404]
        assert staff("nobody").post(url(ours, what)).status_code == 404
        assert set(Message.objects.exclude(origin="").values_list("status", flat=True)) == {"failed"}
        assert not EmailThread.objects.filter(paused_at__isnull=False).exists()
        assert desk.post(url(ours, what)).status_code == 302

    def test_buttons_are_shown_to_those_who_may_press_them(self, desk: Client, ada: Persona) -> None:
        message, reader = failed(ada), staff("vera", *VIEWS)
        for row, what in ((message.thread, "pause"), (message, "resend")):
            assert url(row, what) in desk.get(pages.url_of(row)).content.decode()
            assert url(row, what) not in reader.get(pages.url_of(row)).content.decode()
        sent = OutboundFactory(thread=message.thread)
        assert url(sent, "resend") not in desk.get(pages.url_of(sent)).content.decode()


class TestPausing:
    def test_the_state_is_shown_and_changed_once(self, desk: Client, ada: Persona) -> None:
        thread = EmailThreadFactory(persona=ada)
        assert "Paused since" not in pages.text(desk.get(pages.url_of(thread)))
        first = desk.post(url(thread, "pause"), follow=True)
        assert is_paused(thread)
        assert "Paused since" in pages.text(first)
        assert url(thread, "release") in first.content.decode()
        assert "paused already" in pages.text(desk.post(url(thread, "pause"), follow=True))
        assert pages.row_count(desk.get(pages.list_url(EmailThread), {"paused": "yes"})) == 1
        assert pages.row_count(desk.get(pages.list_url(EmailThread), {"paused": "no"})) == 0
        assert "Paused." in pages.text(desk.get(pages.url_of(thread, "history")))

    def test_the_newest_mail_is_answered_after_the_release(
        self, desk: Client, ada: Persona, django_capture_on_commit_callbacks: Any
    ) -> None:
        thread = MessageFactory(thread__persona=ada).thread
        newest = MessageFactory(thread=thread)
        desk.post(url(thread, "pause"))
        with django_capture_on_commit_callbacks(execute=True):
            first, second = (desk.post(url(thread, "release"), follow=True) for _ in range(2))
        run = Run.objects.get()
        assert (run.message, is_paused(thread)) == (newest, False)
        assert f"run {run.pk} answers its newest mail" in pages.text(first)
        assert "was not paused" in pages.text(second)
        assert len(django_mail.outbox) == 1

    def test_a_release_with_nothing_to_answer(self, desk: Client, ada: Persona) -> None:
        thread = EmailThreadFactory(persona=ada)
        desk.post(url(thread, "pause"))
        assert "No mail in it waits" in pages.text(desk.post(url(thread, "release"), follow=True))
        assert not Run.objects.exists()


class TestSendingAgain:
    def test_the_button_sends_one_mail(
        self, desk: Client, ada: Persona, django_capture_on_commit_callbacks: Any
    ) -> None:
        message = failed(ada)
        with django_capture_on_commit_callbacks(execute=True):
            first, second = (desk.post(url(message, "resend"), follow=True) for _ in range(2))
        assert "is sent again" in pages.text(first)
        assert "has not failed" in pages.text(second)
        assert [sent.extra_headers["Message-ID"] for sent in django_mail.outbox] == [message.message_id]
        assert Message.objects.get(pk=message.pk).status == "sent"

    def test_the_action_says_which_were_sent(
        self, desk: Client, ada: Persona, theirs: Persona, django_capture_on_commit_callbacks: Any
    ) -> None:
        message, answered, hidden = failed(ada), failed(ada), failed(theirs)
        OutboundFactory(thread=answered.thread, answers=answered.answers)
        listed = desk.get(pages.list_url(Message), {"waits": "failed"})
        assert pages.row_count(listed) == 2
        data = {"action": "resend", "_selected_action": [message.pk, answered.pk, hidden.pk]}
        with django_capture_on_commit_callbacks(execute=True):
            page = desk.post(pages.list_url(Message), data, follow=True)
        assert f"Sent again: messages {message.pk}." in pages.text(page)
        assert f"Message {answered.pk}: The mail has another answer by now." in pages.text(page)
        assert [sent.extra_headers["Message-ID"] for sent in django_mail.outbox] == [message.message_id]
        states = {row.pk: row.status for row in Message.objects.filter(pk__in=data["_selected_action"])}
        assert states == {message.pk: "sent", answered.pk: "failed", hidden.pk: "failed"}

    def test_the_action_needs_the_permission(self, ada: Persona) -> None:
        message, reader = failed(ada), staff("vera", *VIEWS)
        assert 'value="resend"' not in reader.get(pages.list_url(Message)).content.decode()
        reader.post(pages.list_url(Message), {"action": "resend", "_selected_action": message.pk})
        assert Message.objects.get(pk=message.pk).status == "failed"
