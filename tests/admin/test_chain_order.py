"""The order of steps means what the numbers on the page say (D02)."""

import string

import pytest
from django.test import Client

from personas.models import Persona
from resolvers.models import ChainStep
from tests.admin import pages
from tests.admin.chains_page import give, order_on_page, positions, put, revisions, say, texts

pytestmark = pytest.mark.django_db

TWELVE = string.ascii_lowercase[:12]


@pytest.fixture
def twelve(ada: Persona) -> Persona:
    give(ada, *TWELVE)
    return ada


@pytest.mark.parametrize(
    ("row", "position", "expected"),
    [
        (6, 3, "abgcdefhijkl"),
        (2, 7, "abdefgchijkl"),
        (11, 1, "labcdefghijk"),
        (0, 12, "bcdefghijkla"),
        (0, 999, "bcdefghijkla"),
        (4, "", "abcdfghijkle"),
        (4, 0, "eabcdfghijkl"),
    ],
)
def test_a_step_goes_to_the_number_that_was_typed(
    root: Client, twelve: Persona, row: int, position: object, expected: str
) -> None:
    data = pages.open_form(root, twelve)
    put(data, row, position=position)
    pages.save(root, twelve, data)
    assert "".join(texts(twelve)) == expected
    assert positions(twelve) == list(range(12))
    assert order_on_page(pages.open_form(root, twelve)) == texts(twelve)


def test_all_numbers_may_be_equal(root: Client, twelve: Persona) -> None:
    """The order of the screen stays."""
    data = pages.open_form(root, twelve)
    for row in range(12):
        put(data, row, position=0)
    say(data, 12, "new")
    pages.save(root, twelve, data)
    assert texts(twelve) == [*TWELVE, "new"]


def test_all_numbers_may_be_blank(root: Client, twelve: Persona) -> None:
    data = pages.open_form(root, twelve)
    for row in range(12):
        put(data, row, position="")
    pages.save(root, twelve, data)
    assert texts(twelve) == [*TWELVE]
    assert revisions(twelve) == 1


def test_a_new_step_is_last(root: Client, twelve: Persona) -> None:
    data = pages.open_form(root, twelve)
    say(data, 12, "new")
    pages.save(root, twelve, data)
    assert texts(twelve) == [*TWELVE, "new"]


def test_a_new_step_with_a_number_gets_that_place(root: Client, twelve: Persona) -> None:
    data = pages.open_form(root, twelve)
    say(data, 12, "new", position=2)
    pages.save(root, twelve, data)
    assert texts(twelve) == ["a", "new", *TWELVE[1:]]


def test_stored_gaps_are_shown_as_places_and_healed(root: Client, ada: Persona) -> None:
    for position, word in ((3, "a"), (70, "b"), (71, "c")):
        ChainStep.objects.create(
            persona=ada, trigger="message", position=position, resolver="load_text", options={"text": word}
        )
    data = pages.open_form(root, ada)
    assert [data[f"message_chain-{row}-position"] for row in range(3)] == ["1", "2", "3"]
    put(data, 2, position=1)
    pages.save(root, ada, data)
    assert (texts(ada), positions(ada)) == (["c", "a", "b"], [0, 1, 2])


def test_deleting_and_moving_in_one_go(root: Client, twelve: Persona) -> None:
    data = pages.open_form(root, twelve)
    put(data, 0, DELETE="on")
    put(data, 11, position=2)
    pages.save(root, twelve, data)
    assert "".join(texts(twelve)) == "lbcdefghijk"


def test_both_chains_are_kept_apart(root: Client, twelve: Persona) -> None:
    give(twelve, "x", "y", trigger="responsibility")
    data = pages.open_form(root, twelve)
    data["responsibility_chain-1-position"] = 1
    pages.save(root, twelve, data)
    assert texts(twelve, "responsibility") == ["y", "x"]
    assert (texts(twelve), revisions(twelve)) == ([*TWELVE], 1)


def test_after_an_error_the_rows_stand_as_they_were_typed(root: Client, ada: Persona) -> None:
    give(ada, "a", "b", "c")
    data = pages.open_form(root, ada)
    put(data, 2, position=1)
    put(data, 0, options="{")
    page = pages.refused(root, ada, data)
    shown = [row.get("id") for row in pages.tree(page).xpath("//ol[@class='pr-steps']/li")][:3]
    assert shown == ["message_chain-2", "message_chain-0", "message_chain-1"]
    assert texts(ada) == ["a", "b", "c"]
