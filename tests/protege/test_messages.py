import pytest
from hypothesis import given
from hypothesis import strategies as st

from protege.messages import DocumentPart, ImagePart, ModelMessage, Role, TextPart, ToolCall, freeze, thaw

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
CALLS = st.builds(ToolCall, st.text(min_size=1), st.text(min_size=1), st.dictionaries(st.text(), JSON))
PARTS = (
    st.builds(TextPart, st.text())
    | st.builds(ImagePart, st.text(), st.text())
    | st.builds(DocumentPart, st.text(), st.text(), st.text())
)
CONTENT = st.text() | st.lists(PARTS)


@st.composite
def messages(draw: st.DrawFn) -> ModelMessage:
    role = draw(st.sampled_from(list(Role)))
    return ModelMessage(
        role,
        draw(CONTENT),
        tool_call_id=draw(st.text(min_size=1)) if role is Role.TOOL else None,
        tool_calls=draw(st.lists(CALLS)) if role is Role.ASSISTANT else (),
    )


@given(messages())
def test_a_message_round_trips(message: ModelMessage) -> None:
    assert ModelMessage.from_dict(message.to_dict()) == message
    assert hash(ModelMessage.from_dict(message.to_dict())) == hash(message)


@given(JSON)
def test_freezing_is_undone_by_thawing(value: object) -> None:
    assert thaw(freeze(value)) == value


def test_a_role_may_be_given_as_text() -> None:
    assert ModelMessage("user", "Hi") == ModelMessage(Role.USER, "Hi")


@pytest.mark.parametrize("role", ["developer", "", None, "User"])
def test_an_unknown_role_is_refused(role: object) -> None:
    with pytest.raises(ValueError, match="system, user, assistant, tool"):
        ModelMessage(role, "Hi")  # type: ignore[arg-type]


@pytest.mark.parametrize("content", [None, 7, b"", b"Hi", ["Hi"], {"text": "Hi"}])
def test_other_content_is_refused(content: object) -> None:
    with pytest.raises(ValueError, match="content"):
        ModelMessage("user", content)  # type: ignore[arg-type]


def test_empty_text_is_allowed() -> None:
    assert ModelMessage("user", "").parts == (TextPart(""),)


def test_a_tool_message_needs_the_call_that_it_answers() -> None:
    with pytest.raises(ValueError, match="tool_call_id"):
        ModelMessage("tool", "{}")
    with pytest.raises(ValueError, match="tool_call_id"):
        ModelMessage("user", "Hi", tool_call_id="c1")


@pytest.mark.parametrize("arguments", [["a"], "a", None, 7])
def test_arguments_are_a_mapping(arguments: object) -> None:
    with pytest.raises(ValueError, match="mapping"):
        ToolCall("c1", "look_up", arguments)  # type: ignore[arg-type]


def test_only_the_assistant_calls() -> None:
    with pytest.raises(ValueError, match="assistant"):
        ModelMessage("user", "Hi", tool_calls=[ToolCall("c1", "look_up", {})])
    with pytest.raises(ValueError, match="ToolCall"):
        ModelMessage("assistant", "", tool_calls=[{"id": "c1"}])  # type: ignore[list-item]


def test_values_are_frozen_all_the_way_down() -> None:
    arguments = {"order": {"ids": [7]}}
    message = ModelMessage("assistant", [TextPart("Hi")], tool_calls=[ToolCall("c1", "look_up", arguments)])
    arguments["order"]["ids"].append(8)
    assert message.tool_calls[0].input == {"order": {"ids": (7,)}}
    assert isinstance(message.content, tuple)
    with pytest.raises(TypeError):
        message.tool_calls[0].input["order"]["ids"] = ()  # type: ignore[index]
    with pytest.raises(AttributeError):
        message.role = Role.USER  # type: ignore[misc]
