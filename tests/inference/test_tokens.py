"""Estimates are held against each other and not against numbers: what they are good for is comparing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protege.inference.tokens import DEFAULT_RATE, DEFAULT_RESERVE, estimate_message, estimate_text, output_reserve
from protege.messages import DocumentPart, ImagePart, TextPart
from tests.inference.conversations import PDF, PNG, assistant, look_up, user

LATIN, GREEK, CHINESE = "order " * 100, "ωρδερ " * 100, "订单号码在" * 120


@given(st.text())
def test_a_text_has_at_least_one_token(text: str) -> None:
    assert estimate_text(text) >= 1


@given(st.text(), st.text())
def test_a_longer_text_has_no_fewer(text: str, more: str) -> None:
    assert estimate_text(text + more) >= estimate_text(text)


@given(st.text(min_size=1))
def test_no_letter_is_more_than_two_tokens(text: str) -> None:
    assert estimate_text(text) <= 2 * len(text)


def test_other_scripts_have_more_tokens_a_letter() -> None:
    latin, greek, chinese = (estimate_text(text) / len(text) for text in (LATIN, GREEK, CHINESE))
    assert latin < greek < chinese


def test_a_measured_rate_changes_the_estimate_of_latin_text() -> None:
    assert estimate_text(LATIN, DEFAULT_RATE * 2) < estimate_text(LATIN) < estimate_text(LATIN, DEFAULT_RATE / 2)


def test_a_measured_rate_says_nothing_of_other_scripts() -> None:
    assert estimate_text(CHINESE, 2.0) == estimate_text(CHINESE, 5.0)


def test_a_message_has_more_than_its_text() -> None:
    assert estimate_message(user(LATIN)) > estimate_text(LATIN)


def test_a_call_counts() -> None:
    assert estimate_message(assistant("", look_up("c1"))) > estimate_message(assistant(""))


def test_long_arguments_count_for_more() -> None:
    assert estimate_message(assistant("", look_up("c1", 10**50))) > estimate_message(assistant("", look_up("c1", 1)))


@pytest.mark.parametrize("data", [PNG, PNG * 1000])
def test_a_picture_counts_as_one_however_large_it_is(data: str) -> None:
    picture = estimate_message(user([ImagePart("image/png", data)]))
    assert picture == estimate_message(user([ImagePart("image/png", "")]))
    assert picture > estimate_message(user("a short text"))


def test_a_document_counts_as_one_however_large_it_is() -> None:
    small, large = (user([DocumentPart("a.pdf", "application/pdf", PDF * factor)]) for factor in (1, 1000))
    assert estimate_message(small) == estimate_message(large) > estimate_message(user("a short text"))


def test_the_parts_of_a_message_add_up() -> None:
    picture = ImagePart("image/png", PNG)
    both = estimate_message(user([TextPart(LATIN), picture]))
    assert both > max(estimate_message(user(LATIN)), estimate_message(user([picture])))


def test_the_answer_gets_what_is_wanted() -> None:
    assert output_reserve(8_192, 100) == 100


@given(st.integers(min_value=4, max_value=2_000_000))
def test_the_answer_never_gets_more_than_a_quarter_of_the_window_unasked(window: int) -> None:
    assert 1 <= output_reserve(window, None) <= min(window // 4, DEFAULT_RESERVE)
