"""Answers that wait for a person: seen by those who may approve them, changed once, sent once."""

from typing import Any

import pytest
from django.core import mail as django_mail
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from tests.api.callers import VIEW_THREADS, admin, client, ids, staff, user_with
from tests.factories import AttachmentFactory, MessageFactory, OutboundFactory, PersonaFactory
from threads.models import EmailThread, Message

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("desk")]

APPROVE = "protege_threads.approve_draft"
DISCARD = "protege_threads.discard_draft"


def drafted(**fields: Any) -> Message:
    """An answer that waits, in a thread of its own; its author had read all that stands there."""
    inbound = fields.pop("answers", None) or MessageFactory(thread__persona=fields.pop("persona", PersonaFactory()))
    revision = EmailThread.objects.get(pk=inbound.thread_id).revision
    fields = {"status": "draft", "thread_revision": revision, **fields}
    draft: Message = OutboundFactory(thread=inbound.thread, answers=inbound, **fields)
    return draft


def approver() -> APIClient:
    return staff(VIEW_THREADS, APPROVE, DISCARD)


def path(draft: Message | int, what: str = "") -> str:
    return f"/api/drafts/{draft if isinstance(draft, int) else draft.pk}/{what}"


def call(caller: APIClient, method: str, address: str) -> Any:
    """With a body that is no JSON."""
    return caller.generic(method, address, "{", content_type="application/json")


def approve(caller: APIClient, draft: Message, body: Any = None) -> Any:
    return caller.post(path(draft, "approve/"), body, format="json")


def patch(caller: APIClient, draft: Message, body: Any) -> Any:
    return caller.patch(path(draft), body, format="json")


def status_of(draft: Message) -> str:
    return Message.objects.get(pk=draft.pk).status


class TestAllowed:
    @pytest.mark.parametrize(
        ("method", "what", "permission"),
        [
            ("GET", "", APPROVE),
            ("PATCH", "", APPROVE),
            ("POST", "approve/", APPROVE),
            ("POST", "discard/", DISCARD),
        ],
    )
    def test_permission_then_visibility_then_the_body(self, method: str, what: str, permission: str) -> None:
        draft, hidden = drafted(), drafted(persona=PersonaFactory(tenant="other"))
        other = {APPROVE, DISCARD} - {permission}
        for caller in (client(None), client(user_with()), staff(VIEW_THREADS, *other)):
            for pk in (draft.pk, hidden.pk, 9999):
                answer = call(caller, method, path(pk, what))
                assert answer.status_code == 403
        allowed = staff(VIEW_THREADS, permission)
        answers = [call(allowed, method, path(pk, what)) for pk in (hidden.pk, 9999, draft.answers_id)]
        assert {answer.status_code for answer in answers} == {404}
        assert len({answer.content for answer in answers}) == 1
        if method != "GET":
            answer = call(allowed, method, path(draft, what))
            assert answer.status_code == 400
        assert status_of(draft) == status_of(hidden) == "draft"

    def test_the_list_needs_the_permission(self) -> None:
        for caller in (client(None), client(user_with()), staff(VIEW_THREADS, DISCARD)):
            assert caller.get("/api/drafts/").status_code == 403

    def test_who_is_written_to_sees_no_draft(self) -> None:
        draft = drafted()
        ana = client(user_with(APPROVE, email="ana@client.example"))
        assert ids(ana.get("/api/drafts/")) == []
        assert ana.get(path(draft)).status_code == approve(ana, draft).status_code == 404
        assert ids(approver().get("/api/drafts/?scope=user")) == []


class TestReading:
    def test_the_oldest_first_and_only_drafts_of_the_tenant(self) -> None:
        first, second = drafted(), drafted()
        drafted(persona=PersonaFactory(tenant="other"))
        drafted(status="discarded")
        assert ids(approver().get("/api/drafts/")) == [first.pk, second.pk]
        assert len(ids(admin().get("/api/drafts/"))) == 3

    def test_pages_lose_and_repeat_nothing(self) -> None:
        now, persona = timezone.now(), PersonaFactory()
        expected = [drafted(persona=persona, received_at=now).pk for _ in range(5)]
        caller, found, cursor = approver(), [], {}
        while True:
            answer = caller.get("/api/drafts/", {"limit": 2, **cursor})
            found += ids(answer)
            if answer.json()["next"] is None:
                break
            cursor = {"cursor": answer.json()["next"]}
        assert found == expected
        for wrong in ("cursor=x", "limit=0", "status=sent"):
            assert caller.get(f"/api/drafts/?{wrong}").status_code == 400

    def test_a_list_takes_the_same_queries_for_any_number(
        self, django_assert_max_num_queries: DjangoAssertNumQueries
    ) -> None:
        caller = approver()
        for _ in range(6):
            AttachmentFactory(message=drafted())
        with django_assert_max_num_queries(8):
            assert len(ids(caller.get("/api/drafts/"))) == 6

    def test_one_with_what_a_person_needs(self) -> None:
        draft = drafted(readable_body="Grüße, Ana")
        shown = approver().get(path(draft)).json()
        assert (shown["body"], shown["status"], shown["stale"]) == ("Grüße, Ana", "draft", False)
        assert shown["to"] == [{"name": "Ana Moßner", "address": "ana@client.example"}]
        assert (shown["answers"], shown["revision"]) == (draft.answers_id, draft.thread_revision)
        MessageFactory(thread=draft.thread)
        assert approver().get(path(draft)).json()["stale"] is True

    def test_what_is_no_draft_is_not_shown(self) -> None:
        assert approver().get(path(drafted(status="discarded"))).status_code == 404


class TestEditing:
    def test_body_and_subject(self) -> None:
        draft = drafted()
        answer = patch(approver(), draft, {"body": "It arrives tomorrow.", "subject": "Order 77"})
        assert answer.status_code == 200, answer.json()
        assert (answer.json()["body"], answer.json()["subject"]) == ("It arrives tomorrow.", "Order 77")
        assert answer.json()["edited_at"] is not None
        assert answer.json()["stale"] is False

    @pytest.mark.parametrize("change", [{"body": "New."}, {"subject": "New"}])
    def test_what_is_left_out_stays(self, change: dict[str, str]) -> None:
        draft = drafted()
        shown = patch(approver(), draft, change).json()
        expected = {"body": draft.text_body, "subject": draft.subject, **change}
        assert {name: shown[name] for name in expected} == expected

    @pytest.mark.parametrize(
        "body",
        [{}, [], {"text": "x"}, {"body": None}, {"body": 1, "to": []}, {"seen_revision": 1}, {"subject": "x" * 999},
         {"body": "x", "seen_revision": "x"}, {"body": "x", "seen_revision": -1}],
    )  # fmt: skip
    def test_a_wrong_body(self, body: Any) -> None:
        draft = drafted()
        assert patch(approver(), draft, body).status_code == 400
        assert Message.objects.get(pk=draft.pk).edited_at is None

    def test_a_mail_without_text(self) -> None:
        answer = patch(approver(), drafted(), {"body": " \n"})
        assert (answer.status_code, answer.json()["code"]) == (400, "empty_draft")

    def test_of_two_who_edit_the_same_page_the_second_is_told(self) -> None:
        draft, caller = drafted(), approver()
        seen = caller.get(path(draft)).json()["revision"]
        assert patch(caller, draft, {"body": "First.", "seen_revision": seen}).status_code == 200
        answer = patch(caller, draft, {"body": "Second.", "seen_revision": seen})
        assert (answer.status_code, answer.json()["code"]) == (409, "stale_draft")
        assert (answer.json()["arrived"], answer.json()["revision"]) == ([], seen + 1)
        assert Message.objects.get(pk=draft.pk).text_body == "First."

    def test_not_what_was_sent(self) -> None:
        answer = patch(approver(), OutboundFactory(), {"body": "Other words."})
        assert (answer.status_code, answer.json()["code"]) == (409, "not_a_draft")


class TestApproving:
    def test_two_approvals_send_one_mail(self, django_capture_on_commit_callbacks: Any) -> None:
        draft, caller = drafted(), approver()
        with django_capture_on_commit_callbacks(execute=True):
            first, second = approve(caller, draft), approve(approver(), draft)
        assert first.status_code == 200, first.json()
        assert (first.json()["status"], first.json()["sequence"]) == ("queued", 2)
        assert (second.status_code, second.json()["code"]) == (409, "not_a_draft")
        with django_capture_on_commit_callbacks(execute=True):
            revision = EmailThread.objects.get().revision
            assert approve(caller, draft, {"seen_revision": revision}).status_code == 409
        assert [mail.extra_headers["Message-ID"] for mail in django_mail.outbox] == [draft.message_id]
        assert status_of(draft) == "sent"

    def test_what_has_arrived_is_said_first(self) -> None:
        draft, caller = drafted(), approver()
        arrived = MessageFactory(thread=draft.thread)
        answer = approve(caller, draft)
        assert (answer.status_code, status_of(draft)) == (409, "draft")
        told = answer.json()
        assert set(told) == {"code", "detail", "arrived", "revision"}
        assert (told["code"], told["arrived"]) == ("stale_draft", [arrived.pk])
        assert told["revision"] == EmailThread.objects.get().revision
        again = approve(caller, draft, {"seen_revision": told["revision"] - 1})
        assert (again.status_code, again.json()["arrived"]) == (409, [arrived.pk])
        assert approve(caller, draft, {"seen_revision": told["revision"]}).status_code == 200
        assert status_of(draft) == "queued"

    @pytest.mark.parametrize("body", [{"seen_revision": None}, {"seen": 1}, {"seen_revision": 1.5}, ["x"]])
    def test_a_wrong_body(self, body: Any) -> None:
        draft = drafted()
        assert approve(approver(), draft, body).status_code == 400
        assert status_of(draft) == "draft"


class TestDiscarding:
    def test_it_is_thrown_away_once(self) -> None:
        draft, caller = drafted(), approver()
        first, second = (caller.post(path(draft, "discard/")) for _ in range(2))
        assert (first.status_code, first.json()["status"]) == (200, "discarded")
        assert (second.status_code, second.json()["code"]) == (409, "not_a_draft")
        assert approve(caller, draft).status_code == 409
        assert django_mail.outbox == []

    def test_it_takes_no_body(self) -> None:
        draft = drafted()
        assert approver().post(path(draft, "discard/"), {"seen_revision": 1}, format="json").status_code == 400
        assert status_of(draft) == "draft"


def test_other_methods_tell_nothing() -> None:
    draft = drafted()
    caller = approver()
    assert caller.put(path(draft), {}, format="json").status_code == 405
    assert caller.delete(path(draft)).status_code == 405
    assert caller.get(path(draft, "approve/")).status_code == 405
    assert client(user_with()).options(path(draft)).status_code == 403
