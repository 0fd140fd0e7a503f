"""After the last call that a run may make, the model has one request left: to answer."""

import pytest

from protege.exceptions import RunRefusedError
from protege.inference.limits import Limits
from protege.testing import Call, Calls, Say, scripted
from tests.inference.journals import ListJournal, looped

LOOK = Call("look_up", {"order": 1})


def test_exactly_the_limit_is_allowed() -> None:
    with scripted(LOOK, Say("Sent.")):
        assert looped(ListJournal(), limits=Limits(tool_calls=1)).text == "Sent."


def test_who_calls_on_after_he_was_told_is_stopped() -> None:
    journal = ListJournal()
    with scripted(Calls(LOOK, LOOK), LOOK, Say("Never asked.")) as script, pytest.raises(RunRefusedError) as raised:
        looped(journal, limits=Limits(tool_calls=1))
    assert raised.value.code == "tool_limit"
    assert len(script.requests) == 2
    assert journal.lines[-1] == "responded 1", "what it has cost is known"


def test_the_journal_reads_the_ids_under_which_the_calls_are_made() -> None:
    journal = ListJournal()
    same = Call("look_up", {"order": 1}, id="a")
    with scripted(Calls(same, same), Say("Sent.")):
        looped(journal)
    assert [call.id for call in journal.replies[0].tool_calls] == [call.id for call in journal.calls]
