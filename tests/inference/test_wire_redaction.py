"""A wire as it is shown: files as their type, size and SHA-256, all else as it is."""

import base64
import hashlib
import json
from typing import Any

import pytest

from protege.inference.wire import redact_wire, wire_sha256
from protege.messages import DocumentPart, ImagePart, TextPart
from tests.inference.conversations import LONG, MODELS, PDF, PNG, captured, said, user

every_model = pytest.mark.parametrize("model", MODELS)


def described(kind: str, media_type: str, data: str) -> dict[str, Any]:
    content = base64.b64decode(data)
    digest = hashlib.sha256(content).hexdigest()
    return {"type": kind, "media_type": media_type, "bytes": len(content), "sha256": digest}


def found(value: Any) -> list[Any]:
    """The descriptions in a redacted body, in order."""
    if isinstance(value, dict):
        return [value] if "sha256" in value else [hit for item in value.values() for hit in found(item)]
    return [hit for item in value for hit in found(item)] if isinstance(value, list) else []


@every_model
def test_no_bytes_of_files_are_shown(model: str) -> None:
    shown = json.dumps(redact_wire(captured(model, *LONG).body))
    assert PNG not in shown
    assert PDF not in shown


@every_model
def test_a_file_is_described_in_its_place(model: str) -> None:
    assert found(redact_wire(captured(model, *LONG).body)) == [
        described("image", "image/png", PNG),
        described("document", "application/pdf", PDF),
    ]


@every_model
def test_all_else_is_shown_as_it_is(model: str) -> None:
    body = captured(model, user("U1"), user([TextPart("T1")])).body
    assert redact_wire(body) == body


@every_model
def test_a_full_wire_is_shown_whole(model: str) -> None:
    body = captured(model, *LONG).body
    assert redact_wire(body, full=True) == body


@every_model
def test_showing_a_wire_does_not_change_it(model: str) -> None:
    wire = captured(model, *LONG)
    redact_wire(wire.body)
    assert wire_sha256(wire.body) == wire.sha256


@every_model
def test_a_text_about_data_uris_stays_a_text(model: str) -> None:
    text = f"Write data:image/png;base64,{PNG} into the page."
    body = captured(model, user(text)).body
    assert redact_wire(body) == body


@pytest.mark.parametrize("data", ["no base64!", "abc", ""])
def test_data_that_is_no_base64_is_described_all_the_same(data: str) -> None:
    (shown,) = found(redact_wire({"source": {"type": "base64", "media_type": "image/png", "data": data}}))
    assert shown["type"] == "image"
    assert shown["bytes"] == len(data)


def test_the_hash_is_that_of_the_parsed_body() -> None:
    assert wire_sha256(b'{"b": "\xc3\xa9", "a": [1, 2]}') == wire_sha256({"a": [1, 2], "b": "é"})


def test_the_hash_is_over_canonical_json() -> None:
    assert wire_sha256({"b": "é", "a": 1}) == hashlib.sha256('{"a":1,"b":"é"}'.encode()).hexdigest()


@every_model
def test_a_changed_word_changes_the_hash(model: str) -> None:
    assert captured(model, user("yes")).sha256 != captured(model, user("no")).sha256


@every_model
def test_a_changed_picture_changes_the_hash(model: str) -> None:
    one, other = (captured(model, user([ImagePart("image/png", data)])) for data in (PNG, PDF))
    assert one.sha256 != other.sha256


def test_the_words_are_not_touched_where_files_are_described() -> None:
    turn = user([DocumentPart("a.pdf", "application/pdf", PDF), TextPart("T1")])
    wire = captured("anthropic:claude-sonnet-4-5", turn)
    assert said(wire)[-1] == ("user", "T1")
    assert "T1" in json.dumps(redact_wire(wire.body))
