"""A chain is read with its revision and replaced as a whole; nobody's change is lost unseen."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from personas.models import Persona
from protege.services import chains
from resolvers.models import ChainRevision, ChainStep
from tests.api.callers import CHANGE_CHAIN, VIEW_CHAIN, VIEW_PERSONA, client, row_counts, staff, user_with
from tests.factories import PersonaFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("desk")]

TEXT = {"resolver": "load_text", "options": {"text": "Grüße 中 {{ persona.name }}"}}
FILLED = {**TEXT, "enabled": True, "on_error": "fail"}


def path(persona: Persona, trigger: str = "message") -> str:
    return f"/api/personas/{persona.pk}/chains/{trigger}/"


def editor() -> APIClient:
    return staff(VIEW_PERSONA, VIEW_CHAIN, CHANGE_CHAIN)


def put(caller: APIClient, persona: Persona, body: Any, *, etag: str | None = '"0"', trigger: str = "message") -> Any:
    headers = {} if etag is None else {"If-Match": etag}
    return caller.put(path(persona, trigger), body, format="json", headers=headers)


class TestReading:
    def test_a_chain_that_was_never_saved_is_at_revision_0(self) -> None:
        answer = editor().get(path(PersonaFactory()))
        assert answer.json() == {"revision": 0, "steps": []}
        assert answer["ETag"] == '"0"'

    def test_the_saved_steps_with_their_revision(self) -> None:
        persona = PersonaFactory()
        chains.save(persona, "message", [TEXT, {"resolver": "gone"}][:1], expected_revision=0)
        chains.save(persona, "responsibility", [], expected_revision=0)
        answer = editor().get(path(persona))
        assert answer.json() == {"revision": 1, "steps": [FILLED]}
        assert answer["ETag"] == '"1"'

    def test_a_step_that_no_code_knows_any_more_is_shown(self) -> None:
        persona = PersonaFactory()
        ChainStep.objects.create(persona=persona, trigger="message", position=0, resolver="gone")
        assert editor().get(path(persona)).json()["steps"][0]["resolver"] == "gone"

    def test_there_are_two_chains(self) -> None:
        answer = editor().get(path(PersonaFactory(), "holiday"))
        assert answer.status_code == 404
        assert "message, responsibility" in answer.json()["detail"]


class TestAllowed:
    def test_reading_needs_its_permissions(self) -> None:
        persona = PersonaFactory()
        for caller in (client(user_with()), staff(VIEW_PERSONA), staff(VIEW_CHAIN), staff(CHANGE_CHAIN, VIEW_PERSONA)):
            assert caller.get(path(persona)).status_code == 403
        assert staff(VIEW_PERSONA, VIEW_CHAIN).get(path(persona)).status_code == 200

    def test_writing_needs_its_own(self) -> None:
        persona = PersonaFactory()
        assert put(staff(VIEW_PERSONA, VIEW_CHAIN), persona, {"steps": []}).status_code == 403
        assert put(staff(VIEW_PERSONA, CHANGE_CHAIN), persona, {"steps": []}).status_code == 200

    def test_another_tenants_persona_is_as_if_it_did_not_exist(self) -> None:
        other = PersonaFactory(tenant="other")
        invisible = put(editor(), other, {"wrong": 1}, etag=None)
        missing = editor().put("/api/personas/9999/chains/message/", {"wrong": 1}, format="json")
        assert invisible.status_code == missing.status_code == 404
        assert invisible.json() == missing.json()

    def test_permission_comes_before_visibility_and_visibility_before_the_body(self) -> None:
        other = PersonaFactory(tenant="other")
        assert put(staff(), other, "{", etag=None).status_code == 403
        answer = editor().put(path(other), "{", content_type="application/json")
        assert answer.status_code == 404


class TestSaving:
    def test_a_round_trip(self) -> None:
        """Case D04: readable letters, and what is read can be sent back."""
        persona, caller = PersonaFactory(), editor()
        saved = put(caller, persona, {"steps": [TEXT], "note": "Greets"})
        assert saved.json() == {"revision": 1, "steps": [FILLED]}
        read = caller.get(path(persona))
        assert "Grüße 中" in read.content.decode()
        again = put(caller, persona, {"steps": read.json()["steps"]}, etag=read["ETag"])
        assert (again.status_code, again["ETag"]) == (200, '"2"')
        assert again.json()["steps"] == [FILLED]

    def test_the_revision_knows_its_author_and_note(self) -> None:
        persona, user = PersonaFactory(), user_with(VIEW_PERSONA, CHANGE_CHAIN)
        put(client(user), persona, {"steps": [], "note": "Emptied"}, trigger="responsibility")
        revision = ChainRevision.objects.get()
        assert (revision.author, revision.note, revision.trigger) == (user, "Emptied", "responsibility")

    def test_without_if_match_nothing_is_saved(self) -> None:
        answer = put(editor(), PersonaFactory(), {"steps": []}, etag=None)
        assert (answer.status_code, answer.json()["code"]) == (428, "precondition_required")
        assert ChainRevision.objects.count() == 0

    @pytest.mark.parametrize("etag", ["", "*", "x", '"x"', '"-1"', '"1", "2"', "9" * 50])
    def test_an_if_match_that_is_no_etag_of_ours(self, etag: str) -> None:
        assert put(editor(), PersonaFactory(), {"steps": []}, etag=etag).status_code == 400

    @pytest.mark.parametrize("etag", ['"0"', "0", 'W/"0"'])
    def test_an_etag_that_a_proxy_has_weakened_counts(self, etag: str) -> None:
        assert put(editor(), PersonaFactory(), {"steps": []}, etag=etag).status_code == 200

    def test_the_second_of_two_editors_gets_a_conflict(self) -> None:
        """Case D10: no server error, no resurrection, no lost edit."""
        persona, caller = PersonaFactory(), editor()
        put(caller, persona, {"steps": [TEXT, TEXT]})
        etag = caller.get(path(persona))["ETag"]
        assert put(caller, persona, {"steps": [TEXT]}, etag=etag).status_code == 200
        before = row_counts()
        stale = put(caller, persona, {"steps": [TEXT, TEXT, TEXT]}, etag=etag)
        assert (stale.status_code, stale.json()["code"]) == (409, "stale_revision")
        assert row_counts() == before
        assert caller.get(path(persona)).json() == {"revision": 2, "steps": [FILLED]}

    def test_an_etag_of_the_future_is_a_conflict_too(self) -> None:
        assert put(editor(), PersonaFactory(), {"steps": []}, etag='"7"').status_code == 409


class TestRefused:
    @pytest.mark.parametrize(
        ("body", "said"),
        [
            ({}, "steps"),
            ([], "dictionary"),
            ({"steps": {}}, "list"),
            ({"steps": [], "step": []}, "'step'"),
            ({"steps": [], "note": "n" * 301}, "300"),
            ({"steps": ["load_text"]}, "object"),
            ({"steps": [{"resolver": "nobody"}]}, "'nobody'"),
            ({"steps": [{**TEXT, "position": 3}]}, "'position'"),
            ({"steps": [{**TEXT, "on_error": "ignore"}]}, "on_error"),
            ({"steps": [{"resolver": "load_text", "options": {"text": "{{ settings.SECRET_KEY }}"}}]}, "SECRET_KEY"),
            ({"steps": [{"resolver": "load_file", "options": {"path": "../settings.py"}}]}, "path"),
        ],
    )
    def test_what_is_wrong_is_named_and_nothing_is_saved(self, body: Any, said: str) -> None:
        answer = put(editor(), PersonaFactory(), body)
        assert answer.status_code == 400, answer.content
        assert answer.json().keys() == {"code", "detail"}
        assert said in answer.json()["detail"]
        assert ChainStep.objects.count() == ChainRevision.objects.count() == 0

    def test_every_wrong_step_has_its_line(self) -> None:
        answer = put(editor(), PersonaFactory(), {"steps": [{"resolver": "a"}, TEXT, {"resolver": "b"}]})
        assert [line[:6] for line in answer.json()["detail"].lower().splitlines()] == ["step 1", "step 3"]

    @pytest.mark.parametrize(
        ("body", "said"),
        [
            (b'{"steps": [], "steps": []}', "'steps' stands twice"),
            (b'{"steps": [{"resolver": "x", "options": {"a": 1, "a": 2}}]}', "'a' stands twice"),
            (b'{"steps": [{"resolver": "x", "options": {"a": NaN}}]}', "NaN"),
            (b'{"steps": [{"resolver": "x", "options": {"a": 1e999}}]}', "1e999"),
            (b'{"steps": [{"resolver": "x", "options": {"a": "\\u0000"}}]}', "NUL"),
            (b'{"steps": [{"resolver": "x", "options": {"a": "\\ud800"}}]}', "surrogate"),
            (b'{"steps": [', "no JSON"),
            (b'{"steps": "\xff"}', "UTF-8"),
            (b'{"steps": ' + b"[" * 100_000, "nested"),
        ],
    )
    def test_json_that_would_change_on_the_way_is_refused(self, body: bytes, said: str) -> None:
        """Case D04."""
        persona = PersonaFactory()
        answer = editor().put(path(persona), body, content_type="application/json", headers={"If-Match": '"0"'})
        assert answer.status_code == 400
        assert said in answer.json()["detail"]

    def test_a_form_is_no_json(self) -> None:
        answer = editor().put(path(PersonaFactory()), "steps=1", content_type="application/x-www-form-urlencoded")
        assert answer.status_code == 428
        answer = editor().put(
            path(PersonaFactory()), "a=1", content_type="application/x-www-form-urlencoded", headers={"If-Match": '"0"'}
        )
        assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")
