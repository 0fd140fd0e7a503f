from dataclasses import FrozenInstanceError

import pytest

from protege.inference import build_request
from protege.messages import ImagePart, Part, TextPart
from tests.inference.conversations import PNG, assistant, look_up, result, system, user
from tests.toolbox import LookUp


def test_the_context_messages_keep_their_order_before_the_user_turn() -> None:
    context = [user("U1"), system("S1"), assistant("", look_up("c1")), result("c1", "R1"), system("S2")]
    assert build_request("U2", context_messages=context).messages == (*context, user("U2"))


def test_without_a_user_content_nothing_is_put_behind_the_context() -> None:
    context = [system("S1"), user("U1")]
    assert build_request(context_messages=context).messages == tuple(context)


def test_an_empty_user_content_is_still_a_turn() -> None:
    assert build_request("").messages == (user(""),)


def test_a_user_content_may_be_parts() -> None:
    parts: list[Part] = [TextPart("see"), ImagePart("image/png", PNG)]
    assert build_request(parts).messages == (user(parts),)


def test_the_context_and_the_tools_may_be_iterators() -> None:
    tool = LookUp()
    request = build_request(tools=iter([tool]), context_messages=iter([user("U1")]))
    assert (request.messages, request.tools) == ((user("U1"),), (tool,))


def test_a_request_does_not_follow_its_makers_list() -> None:
    context = [user("U1")]
    request = build_request(context_messages=context)
    context.append(user("U2"))
    assert request.messages == (user("U1"),)


def test_a_request_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        build_request("U1").messages = ()  # type: ignore[misc]
