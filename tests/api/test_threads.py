"""Threads, messages and runs: who sees which, and how they are paged."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.api.callers import VIEW_THREADS, admin, client, ids, staff, user_with
from tests.factories import (
    AttachmentFactory,
    EmailThreadFactory,
    MessageFactory,
    PersonaFactory,
    RunFactory,
    ThreadTagFactory,
    ToolUseFactory,
)
from threads.models import EmailThread, Message

pytestmark = pytest.mark.django_db

PATHS = ["threads/{thread}/", "threads/{thread}/messages/", "messages/{message}/", "runs/{run}/"]
SAME_TIME = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


def message_of(thread: EmailThread, **fields: Any) -> Message:
    message: Message = MessageFactory(thread=thread, **fields)
    return message


@pytest.mark.usefixtures("desk")
class TestVisibility:
    def test_the_scope_user_opens_ones_own_threads_only(self) -> None:
        own = EmailThreadFactory(correspondent="ana@client.example")
        EmailThreadFactory(correspondent="bo@client.example")
        EmailThreadFactory(correspondent="ana@client.example", persona=PersonaFactory(tenant="other"))
        assert ids(client(user_with(email="Ana@Client.example")).get("/api/threads/")) == [own.pk]

    def test_staff_who_may_view_threads_see_the_tenants(self) -> None:
        here = [EmailThreadFactory(correspondent=f"p{number}@x.example").pk for number in range(2)]
        EmailThreadFactory(persona=PersonaFactory(tenant="other"))
        assert set(ids(staff(VIEW_THREADS).get("/api/threads/"))) == set(here)

    def test_the_permission_without_being_staff_opens_no_tenant(self) -> None:
        EmailThreadFactory(correspondent="somebody@x.example")
        assert ids(client(user_with(VIEW_THREADS)).get("/api/threads/")) == []

    def test_an_admin_sees_all(self) -> None:
        threads = {EmailThreadFactory().pk, EmailThreadFactory(persona=PersonaFactory(tenant="other")).pk}
        assert set(ids(admin().get("/api/threads/"))) == threads

    @pytest.mark.parametrize("path", PATHS)
    def test_another_tenants_rows_are_as_if_they_did_not_exist(self, path: str) -> None:
        message = message_of(EmailThreadFactory(persona=PersonaFactory(tenant="other")))
        run = RunFactory(message=message)
        there = {"thread": message.thread_id, "message": message.pk, "run": run.pk}
        caller = staff(VIEW_THREADS)
        invisible = caller.get(f"/api/{path.format(**there)}")
        missing = caller.get(f"/api/{path.format(thread=9999, message=9999, run=9999)}")
        assert invisible.status_code == missing.status_code == 404
        assert invisible.json() == missing.json()
        assert invisible.json()["code"] == "not_found"

    @pytest.mark.parametrize("path", PATHS)
    def test_own_rows_are_shown(self, path: str) -> None:
        message = message_of(EmailThreadFactory())
        run = RunFactory(message=message)
        own = {"thread": message.thread_id, "message": message.pk, "run": run.pk}
        assert staff(VIEW_THREADS).get(f"/api/{path.format(**own)}").status_code == 200

    def test_a_run_without_a_thread_belongs_to_the_tenant(self) -> None:
        run = RunFactory(message=None, persona=PersonaFactory())
        assert staff(VIEW_THREADS).get(f"/api/runs/{run.pk}/").status_code == 200
        assert client(user_with()).get(f"/api/runs/{run.pk}/").status_code == 404

    def test_ids_of_any_size_are_answered(self) -> None:
        caller = admin()
        for path in ("threads", "messages", "runs", "personas"):
            assert caller.get(f"/api/{path}/{10**30}/").status_code == 404
        assert ids(caller.get("/api/threads/", {"persona": 2**63 - 1})) == []


class TestIdentity:
    def test_nobody_is_let_in(self) -> None:
        for path in ("threads", "threads/1", "threads/1/messages", "messages/1", "runs/1", "personas"):
            assert client(None).get(f"/api/{path}/").status_code in (401, 403), path

    def test_the_unverified_address_of_a_plain_user_is_no_identity(self) -> None:
        thread = EmailThreadFactory(persona=PersonaFactory(tenant="default"), correspondent="ana@client.example")
        caller = client(user_with(email="ana@client.example"))
        for path in ("threads/", f"threads/{thread.pk}/", f"threads/{thread.pk}/messages/"):
            answer = caller.get(f"/api/{path}")
            assert (answer.status_code, answer.json()["code"]) == (403, "scope_refused")

    def test_the_address_of_a_staff_user_is_one(self) -> None:
        thread = EmailThreadFactory(persona=PersonaFactory(tenant="default"), correspondent="ana@client.example")
        assert ids(staff(email="Ana@client.example").get("/api/threads/")) == [thread.pk]

    def test_a_hook_that_gives_no_tenant_opens_nothing(self, settings: Any) -> None:
        settings.PROTEGE = {**settings.PROTEGE, "PRINCIPAL_FROM_REQUEST": "tests.api.callers.of_nowhere"}
        EmailThreadFactory()
        assert staff(VIEW_THREADS).get("/api/threads/").status_code == 403


@pytest.mark.usefixtures("desk")
class TestScopes:
    def test_an_unknown_scope_lists_the_legal_ones(self) -> None:
        answer = admin().get("/api/threads/?scope=any")
        assert (answer.status_code, answer.json()["code"]) == (400, "unknown_scope")
        assert "self, user, tenant, global" in answer.json()["detail"]

    @pytest.mark.parametrize("scope", ["self", "tenant", "global"])
    def test_a_plain_user_has_only_his_own(self, scope: str) -> None:
        answer = client(user_with()).get(f"/api/threads/?scope={scope}")
        assert (answer.status_code, answer.json()["code"]) == (403, "scope_refused")

    def test_staff_have_no_global_scope(self) -> None:
        assert staff(VIEW_THREADS).get("/api/threads/?scope=global").status_code == 403

    def test_a_scope_narrows_what_an_admin_sees(self) -> None:
        here, _ = EmailThreadFactory(), EmailThreadFactory(persona=PersonaFactory(tenant="other"))
        assert ids(admin().get("/api/threads/?scope=tenant")) == [here.pk]

    def test_self_looks_as_one_persona(self) -> None:
        own, _ = EmailThreadFactory(), EmailThreadFactory()
        answer = staff(VIEW_THREADS).get("/api/threads/", {"scope": "self", "as_persona": own.persona_id})
        assert ids(answer) == [own.pk]

    def test_self_looks_as_a_persona_of_another_tenant_for_an_admin(self) -> None:
        there, _ = EmailThreadFactory(persona=PersonaFactory(tenant="other")), EmailThreadFactory()
        answer = admin().get("/api/threads/", {"scope": "self", "as_persona": there.persona_id})
        assert ids(answer) == [there.pk]

    def test_a_persona_goes_with_self_alone(self) -> None:
        persona = PersonaFactory()
        for path in (f"threads/?as_persona={persona.pk}", f"threads/?scope=tenant&as_persona={persona.pk}"):
            answer = staff(VIEW_THREADS).get(f"/api/{path}")
            assert (answer.status_code, answer.json()["code"]) == (400, "as_persona")

    def test_self_needs_the_persona_named(self) -> None:
        answer = staff(VIEW_THREADS).get("/api/threads/?scope=self")
        assert answer.status_code == 403
        assert "as_persona" in answer.json()["detail"]

    @pytest.mark.parametrize("named", ["other", "9999", "x", "", "-1", "1.5", "²", "9" * 40])
    def test_self_as_a_persona_that_is_not_visible(self, named: str) -> None:
        other = PersonaFactory(tenant="other")
        named = str(other.pk) if named == "other" else named
        answer = staff(VIEW_THREADS).get("/api/threads/", {"scope": "self", "as_persona": named})
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


@pytest.mark.usefixtures("desk")
class TestFilters:
    def test_archived_threads_are_left_out_unless_asked_for(self) -> None:
        old, new = EmailThreadFactory(archived_at=SAME_TIME), EmailThreadFactory()
        caller = admin()
        for given, expected in (
            ({}, {new.pk}),
            ({"archived": "exclude"}, {new.pk}),
            ({"archived": ""}, {new.pk}),
            ({"archived": "include"}, {old.pk, new.pk}),
            ({"archived": "only"}, {old.pk}),
        ):
            assert set(ids(caller.get("/api/threads/", given))) == expected

    def test_by_status_and_persona(self) -> None:
        failed, waiting = EmailThreadFactory(status="failed"), EmailThreadFactory(status="waiting")
        caller = admin()
        assert ids(caller.get("/api/threads/?status=failed")) == [failed.pk]
        assert ids(caller.get("/api/threads/", {"persona": waiting.persona_id})) == [waiting.pk]

    @pytest.mark.parametrize(
        ("given", "legal"),
        [
            ({"status": "lost"}, "waiting, running"),
            ({"archived": "yes"}, "exclude, include, only"),
            ({"stauts": "failed"}, "Use: status"),
        ],
    )
    def test_what_is_unknown_is_refused_with_what_is_legal(self, given: dict[str, str], legal: str) -> None:
        answer = admin().get("/api/threads/", given)
        assert answer.status_code == 400
        assert legal in answer.json()["detail"]

    @pytest.mark.parametrize("persona", ["x", "1.5", "9" * 30])
    def test_a_persona_that_is_no_id(self, persona: str) -> None:
        assert admin().get("/api/threads/", {"persona": persona}).status_code == 400


@pytest.mark.usefixtures("desk")
class TestShapes:
    def test_a_thread_says_what_people_and_messages_made_of_it(self) -> None:
        thread = EmailThreadFactory(title="Order 77", archived_at=SAME_TIME)
        ThreadTagFactory(thread=thread, name="b"), ThreadTagFactory(thread=thread, name="a")
        RunFactory(message=message_of(thread)), message_of(thread)
        row = admin().get(f"/api/threads/{thread.pk}/").json()
        assert (row["title"], row["tags"], row["archived"]) == ("Order 77", ["a", "b"], True)
        assert (row["messages"], row["runs"]) == (2, 1)

    def test_a_message_is_text_and_facts_about_its_files(self) -> None:
        message = message_of(EmailThreadFactory(), readable_body="Hello", text_body="Hello\n> quoted")
        file = AttachmentFactory(message=message, text="what the file says")
        shown = admin().get(f"/api/messages/{message.pk}/").json()
        assert (shown["readable_body"], shown["text_body"]) == ("Hello", "Hello\n> quoted")
        assert shown["attachments"] == [
            {
                "public_id": str(file.public_id), "filename": "notes.txt", "content_type": "text/plain", "size": 9,
                "sha256": file.sha256, "inline": False, "damaged": False, "text_status": "none",
            }
        ]  # fmt: skip

    def test_a_list_leaves_the_whole_text_out(self) -> None:
        message = message_of(EmailThreadFactory(), readable_body="Hello", text_body="Hello\n> quoted")
        [shown] = admin().get(f"/api/threads/{message.thread_id}/messages/").json()["results"]
        assert shown["readable_body"] == "Hello"
        assert "text_body" not in shown

    def test_a_run_shows_its_calls_in_order(self) -> None:
        run = RunFactory(notices=[{"code": "step_skipped", "step": 1}], cost="0.000123", currency="USD")
        for turn, position in ((1, 0), (0, 1), (0, 0)):
            ToolUseFactory(run=run, turn_index=turn, position=position, input={"at": [turn, position]})
        shown = admin().get(f"/api/runs/{run.pk}/").json()
        assert [use["input"]["at"] for use in shown["tool_uses"]] == [[0, 0], [0, 1], [1, 0]]
        assert shown["tool_uses"][0]["name"] == "look_up"
        assert shown["tool_uses"][0]["result"] == '{"state": "sent"}'
        assert shown["tool_uses"][0]["status"] == "ok"
        assert shown["notices"] == [{"code": "step_skipped", "step": 1}]
        assert (shown["cost"], shown["currency"]) == ("0.000123", "USD")

    def test_options_shows_no_choices(self) -> None:
        """Case D06."""
        PersonaFactory(tenant="other", name="Secret")
        answer = staff(VIEW_THREADS).options("/api/threads/")
        assert answer.status_code == 405
        assert answer.json().keys() == {"code", "detail"}
