"""Lists are paged by keyset: each row once, whatever keys rows share, in a fixed number of queries."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from tests.api.callers import admin, ids
from tests.factories import (
    AttachmentFactory,
    EmailThreadFactory,
    MessageFactory,
    OutboundFactory,
    PersonaFactory,
    ThreadTagFactory,
    ToolUseFactory,
)
from threads.models import EmailThread, MessageStatus, Run

pytestmark = pytest.mark.django_db

SAME_TIME = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


def all_pages(caller: APIClient, path: str, **parameters: Any) -> list[list[int]]:
    """The pages to the last one; a list that goes round in circles fails."""
    pages: list[list[int]] = []
    cursor: dict[str, str] = {}
    while len(pages) < 100:
        answer = caller.get(path, {**parameters, **cursor})
        pages.append(ids(answer))
        if answer.json()["next"] is None:
            return pages
        cursor = {"cursor": answer.json()["next"]}
    raise AssertionError("The list does not end.")


@pytest.mark.usefixtures("desk")
class TestPaging:
    """Case C03."""

    def make_threads(self) -> list[int]:
        persona = PersonaFactory()
        for number in range(45):
            same = SAME_TIME if number < 30 else SAME_TIME.replace(microsecond=123400 + number)
            EmailThreadFactory(persona=persona, last_activity=same, pinned=number % 7 == 0)
        return list(EmailThread.objects.values_list("pk", flat=True))

    @pytest.mark.parametrize("limit", [1, 7, 20, 45])
    def test_the_pages_hold_each_thread_once(self, limit: int) -> None:
        expected = self.make_threads()
        pages = all_pages(admin(), "/api/threads/", limit=limit)
        assert [pk for page in pages for pk in page] == expected
        assert all(len(page) == limit for page in pages[:-1])
        assert pages[-1]

    def test_a_thread_that_moves_up_meanwhile_hides_no_other(self) -> None:
        expected = set(self.make_threads())
        caller = admin()
        first = caller.get("/api/threads/?limit=20").json()
        moved = EmailThread.objects.last()
        assert moved is not None
        EmailThread.objects.filter(pk=moved.pk).update(last_activity=datetime(2026, 4, 1, tzinfo=UTC))
        rest = ids(caller.get("/api/threads/", {"cursor": first["next"], "limit": 100}))
        assert {row["id"] for row in first["results"]} | set(rest) | {moved.pk} == expected

    def test_drafts_come_last_in_a_thread_and_none_is_lost(self) -> None:
        thread = EmailThreadFactory()
        drafts = [OutboundFactory(thread=thread, status=MessageStatus.DRAFT, answers=None).pk for _ in range(3)]
        sent = [MessageFactory(thread=thread).pk for _ in range(4)]
        pages = all_pages(admin(), f"/api/threads/{thread.pk}/messages/", limit=2)
        assert [pk for page in pages for pk in page] == sent + drafts

    def test_the_limit_in_force_is_echoed(self) -> None:
        caller = admin()
        for given, effective in (({}, 50), ({"limit": 7}, 7), ({"limit": 500}, 500), ({"limit": 10**40}, 500)):
            assert caller.get("/api/threads/", given).json() == {"results": [], "limit": effective, "next": None}

    @pytest.mark.parametrize("limit", ["0", "-1", "x", "", "1.5", "²", "٣", "000"])
    def test_a_malformed_limit_says_what_is_legal(self, limit: str) -> None:
        answer = admin().get("/api/threads/", {"limit": limit})
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_limit")
        assert "1 to 500" in answer.json()["detail"]

    @pytest.mark.parametrize("cursor", ["", "x", "WzFd:1:2", "\x00", "é" * 9, "a" * 5000])
    def test_a_malformed_cursor_is_said_to_be_one(self, cursor: str) -> None:
        answer = admin().get("/api/threads/", {"cursor": cursor})
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_cursor")

    def test_a_cursor_of_another_list_is_malformed(self) -> None:
        PersonaFactory(), PersonaFactory()
        caller = admin()
        cursor = caller.get("/api/personas/?limit=1").json()["next"]
        assert caller.get("/api/threads/", {"cursor": cursor}).status_code == 400

    def test_a_thread_that_is_not_visible_comes_before_a_malformed_cursor(self) -> None:
        assert admin().get("/api/threads/9999/messages/?cursor=x").status_code == 404

    @pytest.mark.parametrize("count", [10, 100])
    def test_queries_do_not_grow(self, count: int, django_assert_num_queries: DjangoAssertNumQueries) -> None:
        """Case D08: two of them are the session and its user."""
        caller = admin()
        thread = EmailThreadFactory()
        for _ in range(count):
            ToolUseFactory(run__message=MessageFactory())
            ThreadTagFactory(thread=thread)
            AttachmentFactory(message=MessageFactory(thread=thread))
        run = Run.objects.latest("id")
        for position in range(1, count):
            ToolUseFactory(run=run, position=position)
        for path, expected in (
            ("threads/?limit=500", 4),
            (f"threads/{thread.pk}/", 4),
            (f"threads/{thread.pk}/messages/?limit=500", 5),
            (f"messages/{run.message_id}/", 4),
            (f"runs/{run.pk}/", 4),
            ("personas/?limit=500", 4),
        ):
            with django_assert_num_queries(expected):
                assert caller.get(f"/api/{path}").status_code == 200
