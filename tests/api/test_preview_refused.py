"""What a preview says when a step fails, and in which order a question is refused."""

from typing import Any

import pytest

from personas.models import Persona
from protege.api.preview_answer import PreviewSerializer
from protege.services import chains
from resolvers.models import ChainStep
from resolvers.registry import temporary_resolver
from tests.api.callers import PREVIEW, VIEW_PERSONA, VIEW_THREADS, client, staff, user_with
from tests.api.previews import MAIL, SYSTEM, Broken, assert_shape, caller, mail_to, persona_with, post, shown
from tests.factories import (
    EmailThreadFactory,
    OutboundFactory,
    ParticipantFactory,
    PersonaFactory,
    ResponsibilityFactory,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("desk")]


class TestFailure:
    def test_a_step_that_raises_hides_no_other(self) -> None:
        with temporary_resolver(Broken):
            persona = persona_with({"resolver": "broken"}, SYSTEM)
            answer = post(caller(), persona, message=mail_to(persona).pk)
        assert answer.status_code == 422
        preview = answer.json()
        assert_shape(PreviewSerializer(), preview)
        broken, following = preview["steps"]
        assert "RuntimeError" in broken["error"]
        assert "the text of a mail" not in answer.content.decode()
        assert (following["error"], following["messages"]) == (None, 1)
        assert [item["step"] for item in preview["messages"]] == [1, None]
        assert preview["wire"] is None

    def test_a_stored_step_that_no_code_knows_is_named(self) -> None:
        persona = persona_with(SYSTEM)
        ChainStep.objects.create(persona=persona, trigger="message", position=1, resolver="gone")
        answer = post(caller(), persona, mail=MAIL)
        assert answer.status_code == 422
        assert "'gone'" in answer.json()["steps"][1]["error"]

    def test_a_step_that_may_be_skipped_is_no_failure(self) -> None:
        with temporary_resolver(Broken):
            persona = persona_with({"resolver": "broken", "on_error": "skip"}, SYSTEM)
            preview = shown(persona, mail=MAIL)
        assert preview["steps"][0]["error"]
        assert [notice["code"] for notice in preview["notices"]] == ["step_skipped"]

    def test_a_chain_without_a_user_turn_would_be_refused(self) -> None:
        persona = persona_with(SYSTEM, trigger="responsibility")
        answer = post(caller(), persona, responsibility=ResponsibilityFactory(persona=persona).pk)
        assert answer.status_code == 422
        assert answer.json()["notices"][-1]["code"] == "no_user_turn"
        assert_shape(PreviewSerializer(), answer.json())


class TestAllowed:
    def test_it_needs_the_permission_and_the_right_to_view_the_persona(self) -> None:
        persona = persona_with(SYSTEM)
        for who in (client(user_with()), staff(PREVIEW, VIEW_THREADS), staff(VIEW_PERSONA, VIEW_THREADS)):
            assert post(who, persona, mail=MAIL).status_code == 403
        assert post(staff(PREVIEW, VIEW_PERSONA), persona, mail=MAIL).status_code == 200

    def test_another_tenants_persona_is_as_if_it_did_not_exist(self) -> None:
        invisible = post(caller(), PersonaFactory(tenant="other"), mail=MAIL)
        missing = post(caller(), 9999, mail=MAIL)
        assert (invisible.status_code, invisible.json()) == (404, missing.json())

    def test_rows_in_the_body_that_are_not_visible_or_of_another_kind(self) -> None:
        """Case D06: an id of somebody else's row links to nothing and tells nothing."""
        persona = persona_with(SYSTEM)
        rows = [
            {"message": 9999},
            {"message": 2**63},
            {"message": mail_to(PersonaFactory(tenant="other")).pk},
            {"message": mail_to(PersonaFactory()).pk},
            {"message": OutboundFactory(thread=EmailThreadFactory(persona=persona)).pk},
            {"responsibility": ResponsibilityFactory().pk},
            {"responsibility": 9999},
        ]
        answers = [post(caller(), persona, **row) for row in rows]
        assert {answer.status_code for answer in answers} == {404}
        assert len({answer.content for answer in answers}) == 1

    def test_a_message_outside_the_callers_scope(self) -> None:
        persona = persona_with(SYSTEM)
        message = mail_to(persona)
        assert post(staff(PREVIEW, VIEW_PERSONA), persona, message=message.pk).status_code == 404

    def test_a_pasted_mail_opens_no_thread_that_the_caller_cannot_see(self) -> None:
        persona = persona_with(SYSTEM, {"resolver": "thread_history"})
        earlier = mail_to(persona)
        ParticipantFactory(thread=earlier.thread, address="ana@client.example")
        answer = post(staff(PREVIEW, VIEW_PERSONA), persona, mail=f"In-Reply-To: {earlier.message_id}\n{MAIL}")
        assert answer.status_code == 404

    @pytest.mark.parametrize("compare", [2, 99])
    def test_a_revision_that_this_chain_does_not_have(self, compare: int) -> None:
        persona, other = persona_with(SYSTEM), persona_with(SYSTEM)
        chains.save(other, "message", [], expected_revision=1)
        assert post(caller(), persona, mail=MAIL, compare=compare).status_code == 404

    def test_the_order_is_403_404_400_and_404_for_rows_in_the_body(self) -> None:
        other = PersonaFactory(tenant="other")
        persona = persona_with(SYSTEM)
        assert post(staff(VIEW_PERSONA), other, wrong=1).status_code == 403
        assert post(caller(), other, wrong=1).status_code == 404
        for wrong in ({"wrong": 1}, {"model": "nobody:x"}, {"steps": [{"resolver": "nobody"}]}, {"compare": "then"}):
            assert post(caller(), persona, message=9999, **wrong).status_code == 400, wrong


class TestFields:
    @pytest.mark.parametrize(
        ("body", "said"),
        [
            ({}, "exactly one of message, responsibility, mail"),
            ({"message": 1, "mail": MAIL}, "not message and mail"),
            ({"message": 1, "responsibility": 1}, "exactly one"),
            ({"mail": MAIL, "stepps": [], "then": 1}, "'stepps'"),
            ({"mail": MAIL, "stepps": [], "then": 1}, "'then'"),
            ({"message": "x"}, "message: "),
            ({"message": None}, "message: "),
            ({"message": True}, "message: "),
            ({"message": 0}, "message: "),
            ({"mail": ""}, "mail: "),
            ({"mail": ["x"]}, "mail: "),
            ({"mail": MAIL, "compare": True}, "compare: "),
            ({"mail": MAIL, "compare": 0}, "compare: "),
            ({"mail": MAIL, "compare": "1"}, "compare: "),
            ({"mail": MAIL, "full": "perhaps"}, "full: "),
            ({"mail": MAIL, "steps": {}}, "steps: "),
            ({"mail": MAIL, "steps": [{"resolver": "nobody"}]}, "'nobody'"),
            ({"mail": MAIL, "steps": [{"resolver": "load_text", "options": {"txt": "x"}}]}, "'txt'"),
            ({"mail": MAIL, "steps": [{"resolver": "load_file", "options": {"path": "../x.md"}}]}, "path"),
            ({"mail": MAIL, "steps": [{"resolver": "load_text", "options": {"text": "{{ mail.body }}"}}]}, "mail.body"),
        ],
    )
    def test_what_is_wrong_is_named(self, body: dict[str, Any], said: str) -> None:
        answer = post(caller(), persona_with(SYSTEM), **body)
        assert answer.status_code == 400, answer.json()
        assert answer.json().keys() == {"code", "detail"}
        assert said in answer.json()["detail"]

    @pytest.mark.parametrize("model", ["nobody:x", "gpt-5", "offline:nothing", "openai-chat:", ":x"])
    def test_a_model_that_cannot_be_built(self, model: str) -> None:
        persona = persona_with(SYSTEM)
        answer = post(caller(), persona, mail=MAIL, model=model)
        assert (answer.status_code, answer.json()["code"]) == (400, "unknown_model")
        Persona.objects.update(model=model)
        assert post(caller(), persona, mail=MAIL).status_code == 400

    def test_a_mail_that_no_door_would_take(self, settings: Any) -> None:
        settings.PROTEGE = {**settings.PROTEGE, "MAIL_SIZE_LIMIT": 100}
        answer = post(caller(), persona_with(SYSTEM), mail=MAIL + "x" * 100)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
