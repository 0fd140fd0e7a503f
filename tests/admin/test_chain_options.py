"""Options are JSON that people type: it comes back as it was, or is refused beside its field (D04)."""

import json

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils.html import escape

from personas.models import Persona
from protege.services import chains
from resolvers import Resolver
from resolvers.forms import JSONObjectField, NoOptionsForm
from resolvers.models import ChainRevision, ChainStep
from resolvers.registry import temporary_resolver
from tests.admin import pages
from tests.admin.chains_page import give, put, revisions, say, texts

pytestmark = pytest.mark.django_db


class AnythingForm(NoOptionsForm):
    z = JSONObjectField()
    a = JSONObjectField()


class Anything(Resolver):
    name = "anything"
    options_form = AnythingForm


def test_letters_stay_readable_and_a_save_without_a_change_is_none(root: Client, ada: Persona) -> None:
    options = {"z": {"text": "Grüße 中"}, "a": {"one": 1}}
    with temporary_resolver(Anything):
        steps = [{"resolver": "anything", "options": options}]
        chains.save(ada, "message", steps, expected_revision=0)
        before = ChainStep.objects.get(persona=ada).options
        data = pages.open_form(root, ada)
        assert "Grüße 中" in data["message_chain-0-options"]
        pages.save(root, ada, data)
        assert revisions(ada) == 1
        assert list(ChainStep.objects.get(persona=ada).options) == list(before)
    assert "hain" not in LogEntry.objects.latest("pk").get_change_message()


@pytest.mark.parametrize(
    ("typed", "complaint"),
    [
        ('{"text": "a", "text": "b"}', "'text' stands there twice"),
        ('{"text": NaN}', "NaN is no JSON value"),
        ('{"text": 1e999}', "cannot be stored as JSON"),
        ('{"text": "Grüße', "Enter valid JSON"),
        ('["text"]', "Enter a JSON object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"text": "\\u0000"}', "cannot be stored"),
        ('{"text": "\\ud800"}', "cannot be stored"),
        ('{"txet": "a"}', "txet"),
        ('{"text": "{{ persona.password }}"}', "persona.password"),
        ("{}", "exactly one of text and source"),
        ('{"text": 5}', "Enter a text"),
    ],
)
def test_wrong_options_are_an_error_beside_the_field(root: Client, ada: Persona, typed: str, complaint: str) -> None:
    give(ada, "a", "b")
    data = pages.open_form(root, ada)
    put(data, 1, options=typed)
    page = pages.refused(root, ada, data)
    row = pages.tree(page).get_element_by_id("message_chain-1")
    assert complaint in row.xpath(".//ul[contains(@class, 'errorlist')]")[0].text_content()
    assert escape(typed) in page.content.decode()
    assert (texts(ada), revisions(ada)) == (["a", "b"], 1)


def test_a_changed_option_makes_a_revision_with_its_author(root: Client, ada: Persona) -> None:
    give(ada, "a")
    data = pages.open_form(root, ada)
    say(data, 0, "Grüße")
    put(data, 0, enabled=None, on_error="skip")
    pages.save(root, ada, data)
    last = ChainRevision.objects.latest("pk")
    assert (last.number, last.author_label) == (2, "root")
    assert last.steps == [{"resolver": "load_text", "options": {"text": "Grüße"}, "enabled": False, "on_error": "skip"}]


def test_true_is_another_option_than_1(root: Client, ada: Persona) -> None:
    with temporary_resolver(Anything):
        chains.save(ada, "message", [{"resolver": "anything", "options": {"a": {"x": 1}}}], expected_revision=0)
        data = pages.open_form(root, ada)
        put(data, 0, options=json.dumps({"a": {"x": True}}))
        pages.save(root, ada, data)
        assert ChainStep.objects.get(persona=ada).options["a"]["x"] is True


def test_a_step_needs_a_resolver(root: Client, ada: Persona) -> None:
    give(ada, "a")
    data = pages.open_form(root, ada)
    put(data, 1, options='{"text": "b"}')
    assert pages.errors(pages.refused(root, ada, data)) == ["Choose what this step does, or delete the step."]


@pytest.fixture
def unknown(ada: Persona) -> Persona:
    """A persona with a step whose app has been taken out."""
    give(ada, "a")
    ChainStep.objects.create(persona=ada, trigger="message", position=5, resolver="crm_lookup", options={"x": 1})
    return ada


def test_a_resolver_that_is_gone_is_shown_and_kept(root: Client, unknown: Persona) -> None:
    page = root.get(pages.url_of(unknown))
    row = pages.tree(page).get_element_by_id("message_chain-1")
    assert "pr-unknown" in row.get("class")
    assert "crm_lookup (not installed)" in row.text_content()
    data = pages.open_form(root, unknown)
    pages.save(root, unknown, {**data, "name": "Ada the Second"})
    assert texts(unknown) == ["a", "crm_lookup"]
    assert Persona.objects.get(pk=unknown.pk).name == "Ada the Second"


def test_a_chain_cannot_be_changed_around_a_resolver_that_is_gone(root: Client, unknown: Persona) -> None:
    data = pages.open_form(root, unknown)
    say(data, 0, "b")
    page = pages.refused(root, unknown, data)
    assert any("No installed app registers the resolver 'crm_lookup'" in error for error in pages.errors(page))
    put(data, 1, DELETE="on")
    pages.save(root, unknown, data)
    assert texts(unknown) == ["b"]
