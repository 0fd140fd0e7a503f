"""How the loop ends before its time, and what a run has taken."""

import json
from decimal import Decimal

import pytest

from protege.exceptions import LeaseLostError, ModelError, RunRefusedError
from protege.inference.limits import Limits
from protege.inference.replies import Reply, Usage, total_cost
from protege.testing import Call, Fail, Say, scripted
from tests.inference.journals import ROUND, Break, ListJournal, looped, results
from tests.inference.server import CHAT, Answer, Provider, chat_answer


def test_calls_beyond_the_limit_are_answered_and_not_made() -> None:
    with scripted(ROUND, Say("done")) as script:
        answer = looped(ListJournal(), limits=Limits(tool_calls=1))
    (_, made), (_, refused) = results(script)
    assert made["order"] == 1
    assert json.loads(refused["error"])["code"] == "tool_limit"
    assert (answer.text, answer.tool_calls) == ("done", 1)


def test_the_limit_of_requests_ends_the_run() -> None:
    journal = ListJournal()
    with scripted(*[Call("look_up", {"order": 1})] * 5) as script, pytest.raises(RunRefusedError) as raised:
        looped(journal, limits=Limits(requests=2))
    assert raised.value.code == "request_limit"
    assert len(script.requests) == 2
    assert journal.lines[-1] == "finished 1 0"


def test_the_limit_of_time_ends_the_run() -> None:
    journal = ListJournal()
    with scripted(Say("never")) as script, pytest.raises(RunRefusedError) as raised:
        looped(journal, limits=Limits(seconds=0))
    assert raised.value.code == "time_limit"
    assert (script.requests, journal.lines) == ([], [])


def test_a_request_gets_what_is_left_of_the_time() -> None:
    journal = ListJournal()
    with scripted(Say("one")):
        looped(journal, limits=Limits(seconds=50, request_seconds=120))
    assert 40 < journal.seconds[0] <= 50


def test_a_request_gets_no_more_than_one_may_take() -> None:
    journal = ListJournal()
    with scripted(Say("one")):
        looped(journal, limits=Limits(seconds=600, request_seconds=7))
    assert journal.seconds == [7]


def test_a_slow_provider_is_not_waited_for(provider: Provider) -> None:
    provider.answer = Answer(slow=True)
    with pytest.raises(ModelError) as raised:
        looped(ListJournal(), model=CHAT, config=provider.config, limits=Limits(request_seconds=0.2))
    assert raised.value.code == "timeout"


def test_an_answer_that_was_cut_off_is_no_answer() -> None:
    journal = ListJournal()
    with scripted(Say("It is", finish="length")), pytest.raises(RunRefusedError, match="max_output_tokens") as raised:
        looped(journal)
    assert raised.value.code == "answer_truncated"
    assert journal.lines[-1] == "responded 0"


def test_an_answer_that_the_providers_filter_stopped_is_no_answer() -> None:
    with scripted(Say("It is", finish="content_filter")), pytest.raises(RunRefusedError) as raised:
        looped(ListJournal())
    assert raised.value.code == "filtered"


def test_calls_of_an_answer_that_was_cut_off_are_not_made(provider: Provider) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "look_up", "arguments": '{"order": 7}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    provider.answer = Answer(body=chat_answer(choices=[{"index": 0, "finish_reason": "length", "message": message}]))
    journal = ListJournal()
    with pytest.raises(RunRefusedError):
        looped(journal, model=CHAT, config=provider.config)
    assert journal.calls == []


def test_a_request_that_fails_ends_the_loop_with_its_error() -> None:
    journal = ListJournal()
    with scripted(ROUND, Fail(429)), pytest.raises(ModelError) as raised:
        looped(journal)
    assert raised.value.code == "rate_limited"
    assert journal.lines[-1] == "posted 1"


@pytest.mark.parametrize(
    ("lost_at", "lines"),
    [
        ("before_request", ["before_request 0"]),
        ("posted", ["before_request 0", "posted 0"]),
        ("responded", ["before_request 0", "posted 0", "responded 0"]),
        ("started", ["before_request 0", "posted 0", "responded 0", "started 0 0"]),
        ("finished", ["before_request 0", "posted 0", "responded 0", "started 0 0", "finished 0 0"]),
    ],
)
def test_a_lost_lease_stops_the_loop_on_the_spot(lost_at: str, lines: list[str]) -> None:
    journal = ListJournal(lost_at=lost_at)
    with scripted(ROUND, Say("never")), pytest.raises(LeaseLostError):
        looped(journal)
    assert journal.lines == lines


def test_a_tool_does_not_run_when_the_lease_is_lost_before_it() -> None:
    tool = Break()
    with scripted(Call("break_down")), pytest.raises(LeaseLostError):
        looped(ListJournal(lost_at="started"), tools=[tool])
    assert tool.contexts == []


def test_a_lost_lease_goes_before_the_failure_of_the_request() -> None:
    with scripted(Fail(500)), pytest.raises(LeaseLostError):
        looped(ListJournal(lost_at="posted"))


def test_usage_is_the_sum_over_all_requests() -> None:
    journal = ListJournal()
    with scripted(ROUND, Call("look_up", {"order": 3}), Say("done")):
        answer = looped(journal)
    assert (answer.requests, answer.tool_calls) == (3, 3)
    assert answer.usage.input_tokens == sum(reply.usage.input_tokens for reply in journal.replies)
    assert answer.usage.output_tokens == sum(reply.usage.output_tokens for reply in journal.replies)


def test_an_offline_run_has_no_price() -> None:
    with scripted(ROUND, Say("done")):
        answer = looped(ListJournal())
    assert (answer.cost, answer.currency) == (None, "")


def test_a_priced_run_costs_what_its_requests_cost(provider: Provider) -> None:
    journal = ListJournal()
    answer = looped(journal, model=CHAT, config=provider.config)
    assert answer.cost == journal.replies[0].cost
    assert (answer.usage.cached_tokens, answer.currency) == (4, "USD")


def test_costs_add_up() -> None:
    assert total_cost([Reply(text="", cost=Decimal("0.1")), Reply(text="", cost=Decimal("0.2"))]) == Decimal("0.3")


def test_one_request_without_a_price_leaves_the_whole_without() -> None:
    assert total_cost([Reply(text="", cost=Decimal("0.1")), Reply(text="")]) is None


def test_usages_add_up() -> None:
    one, other = Usage(input_tokens=1, output_tokens=2, cached_tokens=3), Usage(input_tokens=10, output_tokens=20)
    assert one + other == Usage(input_tokens=11, output_tokens=22, cached_tokens=3)
