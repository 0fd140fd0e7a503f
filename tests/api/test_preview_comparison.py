"""What a chain says beside what another one says for the same mail."""

import pytest

from protege.services import chains
from resolvers.models import ChainStep
from resolvers.registry import temporary_resolver
from tests.api.previews import MAIL, SYSTEM, Clock, mail_to, persona_with, shown

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("desk")]


class TestComparison:
    def test_with_the_saved_chain(self) -> None:
        persona = persona_with(SYSTEM)
        steps = [{"resolver": "load_text", "options": {"text": "You are Helper, and you are as brief as can be."}}]
        preview = shown(persona, message=mail_to(persona).pk, steps=steps, compare="saved")
        found = preview["comparison"]
        assert found["against"] == "saved"
        assert [item["content"] for item in found["removed"]] == ["You are Helper."]
        assert found["added"] == [preview["messages"][0]]
        assert found["tokens"]["after"] == preview["tokens"]["estimated"]
        assert found["tokens"]["difference"] == found["tokens"]["after"] - found["tokens"]["before"] > 0

    def test_with_a_revision(self) -> None:
        persona = persona_with(SYSTEM)
        chains.save(persona, "message", [], expected_revision=1)
        found = shown(persona, message=mail_to(persona).pk, compare=1)["comparison"]
        assert (found["added"], len(found["removed"])) == ([], 1)
        assert found["tokens"]["difference"] < 0

    def test_nothing_differs_from_the_chain_itself(self) -> None:
        persona = persona_with(SYSTEM, {"resolver": "thread_history"})
        for against in ("saved", 1):
            found = shown(persona, mail=MAIL, compare=against)["comparison"]
            assert (found["added"], found["removed"], found["tokens"]["difference"]) == ([], [], 0)

    def test_a_message_that_moves_is_a_difference(self) -> None:
        other = {"resolver": "load_text", "options": {"text": "Be short."}}
        persona = persona_with(SYSTEM, other)
        found = shown(persona, mail=MAIL, steps=[other, SYSTEM], compare="saved")["comparison"]
        assert len(found["added"]) == len(found["removed"]) == 1

    def test_a_saved_step_that_fails_hides_no_difference(self) -> None:
        persona = persona_with(SYSTEM)
        ChainStep.objects.create(persona=persona, trigger="message", position=1, resolver="gone")
        found = shown(persona, mail=MAIL, steps=[SYSTEM], compare="saved")["comparison"]
        assert (found["added"], found["removed"]) == ([], [])


def test_both_are_of_the_same_moment() -> None:
    with temporary_resolver(Clock):
        persona = persona_with({"resolver": "clock"})
        found = shown(persona, mail=MAIL, compare="saved")["comparison"]
    assert (found["added"], found["removed"]) == ([], [])
