"""The preview, sentence by sentence of its description: what is asked, and what is answered."""

import hashlib
import json

import pytest

from personas.models import Persona
from protege.api.preview_answer import PreviewSerializer
from protege.principals import Principal
from protege.services import chains
from resolvers.models import ChainStep
from resolvers.registry import temporary_resolver
from tests.api.callers import admin, row_counts
from tests.api.previews import (
    DUTY,
    MAIL,
    OPENAI,
    PNG,
    SYSTEM,
    Asker,
    assert_shape,
    caller,
    mail_to,
    pasted_picture,
    persona_with,
    post,
    shown,
    stored_picture,
)
from tests.factories import ParticipantFactory, ResponsibilityFactory, ToolUseFactory
from threads.models import Message

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("desk")]


class TestWhatIsAsked:
    def test_a_message(self) -> None:
        persona = persona_with(SYSTEM)
        message = mail_to(persona)
        preview = shown(persona, message=message.pk)
        assert (preview["persona"], preview["trigger"], preview["model"]) == (persona.pk, "message", "offline:echo")
        assert [(item["role"], item["step"]) for item in preview["messages"]] == [("system", 0), ("user", None)]
        assert preview["messages"][0]["content"] == "You are Helper."
        assert "Where is order 77?" in preview["messages"][1]["content"]
        assert preview["messages"][1]["sources"] == [f"message:{message.pk}"]
        assert preview["comparison"] is None

    def test_a_responsibility(self) -> None:
        persona = persona_with(SYSTEM, DUTY, trigger="responsibility")
        duty = ResponsibilityFactory(persona=persona)
        preview = shown(persona, responsibility=duty.pk)
        assert preview["trigger"] == "responsibility"
        assert [item["content"] for item in preview["messages"]] == ["You are Helper.", "Write the weekly report."]

    def test_a_mail_that_was_never_received(self) -> None:
        persona = persona_with(SYSTEM)
        turn = shown(persona, mail=MAIL)["messages"][-1]
        assert "And 78?" in turn["content"]
        assert "Subject: Order 78" in turn["content"]

    def test_a_pasted_mail_joins_the_thread_that_it_answers(self) -> None:
        persona = persona_with(SYSTEM, {"resolver": "thread_history"})
        earlier = mail_to(persona)
        ParticipantFactory(thread=earlier.thread, address="ana@client.example")
        preview = shown(persona, mail=f"In-Reply-To: {earlier.message_id}\n{MAIL}")
        assert ["Where is order 77?" in str(item["content"]) for item in preview["messages"]] == [False, True, False]

    def test_unsaved_steps_stand_in_place_of_the_saved_ones(self) -> None:
        persona = persona_with(SYSTEM)
        steps = [{"resolver": "load_text", "options": {"text": "Be short."}}, {**SYSTEM, "enabled": False}]
        preview = shown(persona, message=mail_to(persona).pk, steps=steps)
        assert [item["content"] for item in preview["messages"][:-1]] == ["Be short."]
        assert [(step["position"], step["enabled"]) for step in preview["steps"]] == [(0, True), (1, False)]
        assert ChainStep.objects.get().options == SYSTEM["options"]

    def test_an_empty_chain_is_one_too(self) -> None:
        persona = persona_with(SYSTEM)
        assert len(shown(persona, message=mail_to(persona).pk, steps=[])["messages"]) == 1

    def test_another_model_than_the_personas(self) -> None:
        persona = persona_with(SYSTEM)
        preview = shown(persona, message=mail_to(persona).pk, model="anthropic:claude-sonnet-4-5")
        assert preview["model"] == "anthropic:claude-sonnet-4-5"
        assert preview["wire"]["body"]["model"] == "claude-sonnet-4-5"
        assert Persona.objects.get().model == "offline:echo"


class TestWhatIsAnswered:
    @pytest.mark.parametrize("model", ["offline:echo", OPENAI])
    def test_the_wire_body_is_parsed_json_with_its_hash(self, model: str) -> None:
        persona = persona_with(SYSTEM, model=model)
        wire = shown(persona, message=mail_to(persona).pk)["wire"]
        assert wire["method"] == "POST"
        assert wire["url"].endswith("/chat/completions")
        assert [item["role"] for item in wire["body"]["messages"]] == ["system", "user"]
        canonical = json.dumps(wire["body"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert wire["sha256"] == hashlib.sha256(canonical.encode()).hexdigest()

    def test_no_key_is_read_or_shown(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-the-real-one")
        persona = persona_with(SYSTEM, model=OPENAI)
        answer = post(caller(), persona, mail=MAIL)
        assert answer.status_code == 200
        assert "sk-the-real-one" not in answer.content.decode()

    def test_steps_tokens_and_notices(self) -> None:
        persona = persona_with(SYSTEM, {"resolver": "thread_history"}, tools=["gone"])
        preview = shown(persona, message=mail_to(persona).pk)
        first, second = preview["steps"]
        assert (first["resolver"], first["messages"], first["queries"], first["error"]) == ("load_text", 1, 0, None)
        assert first["tokens"] == preview["messages"][0]["tokens"] > 0
        assert (second["position"], second["resolver"], second["messages"]) == (1, "thread_history", 0)
        assert preview["tokens"]["estimated"] >= sum(item["tokens"] for item in preview["messages"])
        assert preview["tokens"]["window"] > preview["tokens"]["reserved"] > 0
        assert preview["notices"] == [{"code": "unknown_tool", "tool": "gone"}]

    def test_calls_of_earlier_runs_follow_the_turn_and_belong_to_no_step(self) -> None:
        persona = persona_with(SYSTEM)
        message = mail_to(persona)
        ToolUseFactory(run__message=message, tool_call_id="call_1")
        call, result = shown(persona, message=message.pk)["messages"][-2:]
        assert call["tool_calls"] == [{"id": "call_1", "name": "look_up", "input": {"order": 77}}]
        assert (result["role"], result["tool_call_id"], result["step"]) == ("tool", "call_1", None)

    @pytest.mark.parametrize("source", ["stored", "pasted"])
    @pytest.mark.parametrize("model", ["offline:echo", OPENAI])
    def test_bytes_are_described_unless_all_is_asked_for(self, source: str, model: str) -> None:
        persona = persona_with(SYSTEM, model=model)
        body = stored_picture(persona) if source == "stored" else pasted_picture()
        digest = hashlib.sha256(PNG).hexdigest()
        known = {"type": "image", "media_type": "image/png", "bytes": len(PNG), "sha256": digest}
        brief = post(caller(), persona, **body).json()
        assert known in brief["messages"][-1]["content"]
        assert "iVBOR" not in json.dumps(brief)
        whole = post(caller(), persona, **body, full=True).json()
        assert "iVBOR" in json.dumps(whole["messages"])
        assert "iVBOR" in json.dumps(whole["wire"]["body"])
        assert brief["wire"]["body"] != whole["wire"]["body"]

    def test_the_hash_is_that_of_what_is_posted_also_when_bytes_are_hidden(self) -> None:
        persona = persona_with(SYSTEM)
        body = stored_picture(persona)
        brief, whole = (shown(persona, **body, full=full)["wire"]["sha256"] for full in (False, True))
        assert brief == whole

    def test_a_pasted_mail_with_a_file_can_be_compared(self) -> None:
        persona = persona_with(SYSTEM)
        found = shown(persona, **pasted_picture(), compare="saved")["comparison"]
        assert (found["added"], found["removed"]) == ([], [])

    def test_the_principal_is_the_runs_and_never_the_callers(self) -> None:
        persona = persona_with()
        message = mail_to(persona)
        with temporary_resolver(Asker):
            answer = post(admin(email="boss@desk.example"), persona, message=message.pk, steps=[{"resolver": "asker"}])
        expected = Principal(tenant="desk", correspondent="ana@client.example", persona=persona.pk)
        assert answer.json()["messages"][0]["content"] == repr(expected)

    @pytest.mark.parametrize("subject", ["message", "responsibility", "mail"])
    def test_nothing_is_written(self, subject: str) -> None:
        persona = persona_with(SYSTEM, {"resolver": "thread_history"})
        chains.save(persona, "responsibility", [SYSTEM, DUTY], expected_revision=0)
        duty, message = ResponsibilityFactory(persona=persona), mail_to(persona)
        body = {"message": message.pk, "responsibility": duty.pk, "mail": MAIL}
        who = caller()
        before = row_counts(), list(Persona.objects.values()), list(Message.objects.values())
        assert post(who, persona, **{subject: body[subject]}).status_code == 200
        assert (row_counts(), list(Persona.objects.values()), list(Message.objects.values())) == before

    def test_the_answer_has_the_shape_that_the_schema_tells(self) -> None:
        persona = persona_with(SYSTEM)
        preview = shown(persona, **stored_picture(persona), steps=[SYSTEM, SYSTEM], compare="saved")
        assert_shape(PreviewSerializer(), preview)
