"""A person pauses and releases a thread, and has a failed mail sent once more."""

import pytest
from django.core import mail as django_mail
from django.test import TestCase
from rest_framework.test import APIClient

from tests.api.callers import VIEW_THREADS, client, staff, user_with
from tests.factories import MessageFactory, OutboundFactory, PersonaFactory
from threads.models import EmailThread, Message, Run

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("desk")]

PAUSE = "protege_threads.pause_emailthread"
RESEND = "protege_threads.resend_message"


def helper() -> APIClient:
    return staff(VIEW_THREADS, PAUSE, RESEND)


def failed(tenant: str = "desk") -> Message:
    inbound = MessageFactory(thread__persona=PersonaFactory(tenant=tenant))
    message: Message = OutboundFactory(thread=inbound.thread, answers=inbound, status="failed", attempts=8)
    return message


def path(message: Message, what: str) -> str:
    return f"/api/messages/{message.pk}/resend/" if what == "resend" else f"/api/threads/{message.thread_id}/{what}/"


class TestAllowed:
    @pytest.mark.parametrize(
        ("what", "permission", "other"),
        [("pause", PAUSE, RESEND), ("release", PAUSE, RESEND), ("resend", RESEND, PAUSE)],
    )
    def test_permission_then_visibility_then_the_body(self, what: str, permission: str, other: str) -> None:
        ours, hidden = failed(), failed("other")
        missing = path(Message(pk=9999, thread_id=9999), what)
        for caller in (client(None), client(user_with()), staff(VIEW_THREADS, other)):
            for address in (path(ours, what), path(hidden, what), missing):
                assert caller.post(address, "{", content_type="application/json").status_code == 403
        allowed = staff(VIEW_THREADS, permission)
        answers = [
            allowed.post(address, "{", content_type="application/json") for address in (path(hidden, what), missing)
        ]
        assert [answer.status_code for answer in answers] == [404, 404]
        assert answers[0].content == answers[1].content
        assert allowed.post(path(ours, what), "{", content_type="application/json").status_code == 400
        assert allowed.post(path(ours, what), {"now": True}, format="json").status_code == 400
        assert allowed.get(path(ours, what)).status_code == 405
        assert set(Message.objects.exclude(origin="").values_list("status", flat=True)) == {"failed"}
        assert not EmailThread.objects.filter(paused_at__isnull=False).exists()

    def test_without_the_right_to_read_only_ones_own_threads(self) -> None:
        message = failed()
        assert staff(PAUSE).post(path(message, "pause")).status_code == 404
        assert client(user_with(PAUSE, email="ana@client.example")).post(path(message, "pause")).status_code == 200


class TestPausing:
    def test_it_is_paused_once_and_stays_so(self) -> None:
        thread, caller = MessageFactory().thread, helper()
        first, second = (caller.post(f"/api/threads/{thread.pk}/pause/") for _ in range(2))
        assert first.status_code == second.status_code == 200
        assert first.json()["id"] == thread.pk
        assert first.json()["paused_at"] == second.json()["paused_at"] is not None

    def test_the_newest_mail_is_answered_after_the_release(self) -> None:
        thread, caller = MessageFactory().thread, helper()
        newest = MessageFactory(thread=thread)
        caller.post(f"/api/threads/{thread.pk}/pause/")
        first, second = (caller.post(f"/api/threads/{thread.pk}/release/") for _ in range(2))
        run = Run.objects.get()
        assert (run.message, run.status) == (newest, "queued")
        assert (first.status_code, first.json()["run"]) == (200, run.pk)
        assert first.json()["thread"]["paused_at"] is None
        assert first.json()["thread"]["runs"] == 1
        assert (second.status_code, second.json()["run"]) == (200, None)

    def test_nothing_to_answer(self) -> None:
        inbound, caller = MessageFactory(), helper()
        answer = OutboundFactory(thread=inbound.thread, answers=inbound)
        Message.objects.filter(pk=inbound.pk).update(answered_by=answer)
        caller.post(f"/api/threads/{inbound.thread_id}/pause/")
        assert caller.post(f"/api/threads/{inbound.thread_id}/release/").json()["run"] is None


class TestResending:
    def test_two_who_ask_send_one_mail(self) -> None:
        message, caller = failed(), helper()
        with TestCase.captureOnCommitCallbacks(execute=True):
            first, second = (caller.post(path(message, "resend")) for _ in range(2))
        assert (first.status_code, first.json()["status"]) == (200, "queued")
        assert (second.status_code, second.json()["code"]) == (409, "not_failed")
        assert [mail.extra_headers["Message-ID"] for mail in django_mail.outbox] == [message.message_id]
        assert Message.objects.get(pk=message.pk).status == "sent"

    def test_not_what_was_received(self) -> None:
        answer = helper().post(path(MessageFactory(), "resend"))
        assert (answer.status_code, answer.json()["code"]) == (409, "not_failed")

    def test_not_beside_another_answer(self) -> None:
        message = failed()
        OutboundFactory(thread=message.thread, answers=message.answers)
        answer = helper().post(path(message, "resend"))
        assert (answer.status_code, answer.json()["code"]) == (409, "answered_already")
        assert Message.objects.get(pk=message.pk).status == "failed"
