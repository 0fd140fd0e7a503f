"""Stored options: what the forms let through, and in which words they refuse."""

from datetime import date
from typing import Any

import pytest
from django import forms
from django.core.exceptions import ValidationError

from personas.models import Persona
from protege.context import Context
from protege.exceptions import ResolverError, UnknownResolverError
from resolvers import Resolver, ResolverChain
from resolvers.builtin import LoadRecordResolver, ThreadHistoryResolver
from resolvers.forms import JSONObjectField
from resolvers.options import clean_options
from resolvers.registry import temporary_resolver


def test_absent_options_stay_absent_and_null_means_all() -> None:
    assert clean_options("thread_history", {}) == {}
    assert clean_options("thread_history", {"limit": None}) == {"limit": None}
    given = {"limit": 3, "include_tool_calls": False}
    assert clean_options("thread_history", given) == given


def test_the_defaults_are_those_of_the_constructor() -> None:
    assert ThreadHistoryResolver.from_options({}).__dict__ == ThreadHistoryResolver().__dict__
    assert ThreadHistoryResolver.from_options({"limit": None}).limit is None


@pytest.mark.parametrize(
    ("key", "options", "field"),
    [
        ("thread_history", {"limit": -1}, "limit"),
        ("thread_history", {"limit": "many"}, "limit"),
        ("thread_history", {"limit": True}, "limit"),
        ("thread_history", {"limit": 2.5}, "limit"),
        ("thread_history", {"include_tool_calls": "no"}, "include_tool_calls"),
        ("thread_history", {"include_tool_calls": 0}, "include_tool_calls"),
        ("load_text", {"text": {"a": 1}}, "text"),
        ("load_text", {"text": "a", "role": "tool"}, "role"),
        ("load_text", {"text": "a", "role": 3}, "role"),
        ("load_file", {}, "path"),
        ("load_file", {"path": ["a.md"]}, "path"),
    ],
)
def test_a_wrong_value_is_an_error_of_its_field(key: str, options: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as caught:
        clean_options(key, options)
    assert list(caught.value.message_dict) == [field]


def test_an_unknown_option_is_refused_with_the_legal_ones() -> None:
    with pytest.raises(ValidationError, match=r"'limits'.*limit, include_tool_calls"):
        clean_options("thread_history", {"limits": 3})
    with (
        temporary_resolver(type("Plain", (Resolver,), {"name": "plain"})),
        pytest.raises(ValidationError, match="none"),
    ):
        clean_options("plain", {"a": 1})


@pytest.mark.parametrize("options", [[], "text", None, 3])
def test_options_are_an_object(options: Any) -> None:
    with pytest.raises(ValidationError, match="JSON object"):
        clean_options("thread_history", options)


def test_an_unknown_resolver_is_named_with_the_known_ones() -> None:
    with pytest.raises(UnknownResolverError, match=r"'gone'.*load_file"):
        clean_options("gone", {})


def test_cleaned_options_are_plain_json() -> None:
    class DateForm(forms.Form):
        since = forms.DateField()

    with temporary_resolver(type("Dated", (Resolver,), {"name": "dated", "options_form": DateForm})):
        assert clean_options("dated", {"since": "2026-03-07"}) == {"since": "2026-03-07"}
        assert clean_options("dated", {"since": date(2026, 3, 7)}) == {"since": "2026-03-07"}


# JSON typed in the admin (field case D04)


class FiltersForm(forms.Form):
    filters = JSONObjectField()


def test_json_comes_back_readable_and_unchanged() -> None:
    stored = {"z": "Grüße 中", "a": 1}
    shown = FiltersForm(initial={"filters": stored})["filters"].value()
    assert "Grüße 中" in shown
    form = FiltersForm(data={"filters": shown}, initial={"filters": stored})
    assert form.is_valid()
    assert form.cleaned_data["filters"] == stored
    assert not form.has_changed()
    reordered = FiltersForm(data={"filters": '{"a":1,\n "z": "Gr\\u00fc\\u00dfe 中"}'}, initial={"filters": stored})
    assert not reordered.has_changed()
    assert FiltersForm(data={"filters": '{"a": 2}'}, initial={"filters": stored}).has_changed()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"a": 1, "a": 2}', "twice"),
        ('{"b": {"a": 1, "a": 2}}', "twice"),
        ('{"a": NaN}', "NaN"),
        ('{"a": -Infinity}', "Infinity"),
        ('{"a": 1', "valid JSON"),
        ("[1]", "JSON object"),
        ("[" * 100_000, "valid JSON"),
    ],
)
def test_json_that_would_lose_something_is_refused_and_kept_on_screen(text: str, complaint: str) -> None:
    form = FiltersForm(data={"filters": text}, initial={"filters": {"old": 1}})
    assert not form.is_valid()
    assert complaint in form.errors["filters"][0]
    assert form.has_changed()
    if text != "[1]":
        assert form["filters"].value() == text


def test_nan_in_stored_options_is_refused_too() -> None:
    with pytest.raises(ValidationError):
        clean_options("load_record", {"filters": {"a": float("nan")}})


def test_half_an_emoji_is_refused_before_it_is_stored() -> None:
    with pytest.raises(ValidationError) as caught:
        clean_options("load_text", {"text": "\ud83d hi"})
    assert list(caught.value.message_dict) == ["text"]


def test_rows_are_stored_by_primary_key_and_nothing_odd_at_all() -> None:
    class AnyForm(forms.Form):
        thing = forms.Field()

    with temporary_resolver(type("Things", (Resolver,), {"name": "things", "options_form": AnyForm})):
        assert clean_options("things", {"thing": Persona(pk=7)}) == {"thing": 7}
        with pytest.raises(ValidationError):
            clean_options("things", {"thing": object()})


def test_options_that_the_form_has_come_to_refuse_name_themselves(scheduled: Context) -> None:
    steps = [{"resolver": "thread_history", "options": {"include_tool_calls": 1}}]
    with pytest.raises(ResolverError, match=r"thread_history\. include_tool_calls: Enter true or false"):
        ResolverChain.from_steps(steps).run(scheduled)


def test_an_empty_filter_is_an_empty_object() -> None:
    assert LoadRecordResolver.options_form().fields["filters"].clean("") == {}
