import json
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from protege.context import Context
from protege.exceptions import RegistryError, ToolFailure
from protege.toolkit import Tool, ToolResult, register_tool, tools, tools_for
from tests.factories import PersonaFactory


class LookUp(Tool):
    name = "look_up"
    description = "Look up an order."
    effect = "read"

    def run(self, context: Context, order: Annotated[int, Field(description="The number.")], note: str = "") -> Any:
        return {"order": order, "note": note, "for": context.persona.slug}


class Search(BaseModel):
    query: str = Field(max_length=5)


class WithModel(LookUp):
    arguments = Search

    def run(self, context: Context, query: str) -> Any:
        return query.upper()


@pytest.fixture
def context() -> Context:
    return Context(persona=PersonaFactory.build(slug="helper"))


def test_schema_comes_from_annotations() -> None:
    schema = LookUp.schema()
    assert schema["properties"]["order"] == {"description": "The number.", "title": "Order", "type": "integer"}
    assert schema["required"] == ["order"]
    assert schema["additionalProperties"] is False


def test_schema_may_come_from_a_pydantic_model(context: Context) -> None:
    assert WithModel.schema() == Search.model_json_schema()
    assert WithModel().call(context, {"query": "abc"}).value == "ABC"
    assert WithModel().call(context, {"query": "too long"}).outcome == "retry"


def test_a_plain_value_is_a_success(context: Context) -> None:
    result = LookUp().call(context, {"order": 7})
    assert json.loads(result.text()) == {"order": 7, "note": "", "for": "helper"}


@pytest.mark.parametrize("arguments", [{}, {"order": "seven"}, {"order": 7, "colour": "red"}])
def test_bad_arguments_tell_the_model_how_to_call_again(context: Context, arguments: dict[str, Any]) -> None:
    result = LookUp().call(context, arguments)
    error = json.loads(result.text())["error"]
    assert error["code"] == "bad_arguments"
    assert error["retry"] is True
    assert "order" in error["message"] or "colour" in error["message"]


def test_an_exception_is_a_failure_without_its_text(context: Context) -> None:
    class Broken(LookUp):
        def run(self, context: Context, order: int) -> Any:
            raise RuntimeError("the password is hunter2")

    result = Broken().call(context, {"order": 7})
    assert result.code == "exception"
    assert "RuntimeError" in result.text()
    assert "hunter2" not in result.text()


def test_a_value_that_is_no_json_is_a_failure(context: Context) -> None:
    class Odd(LookUp):
        def run(self, context: Context, order: int) -> Any:
            return {"when": object()}

    assert Odd().call(context, {"order": 7}).outcome == "failure"


def test_success_failure_and_retry(context: Context) -> None:
    tool = LookUp()
    assert json.loads(tool.success().text()) == {"ok": True}
    assert json.loads(tool.failure("no").text())["error"]["message"] == "no"
    assert tool.retry("again") == ToolResult(outcome="retry", value="again", code="retry")


def test_a_tool_failure_keeps_its_code(context: Context) -> None:
    class Refusing(LookUp):
        def run(self, context: Context, order: int) -> Any:
            raise ToolFailure("not that one", code="unknown_order")

    assert Refusing().call(context, {"order": 7}).code == "unknown_order"


def test_registration_refuses_what_is_no_tool() -> None:
    with pytest.raises(RegistryError, match="no subclass"):
        register_tool(str)  # type: ignore[arg-type]
    with pytest.raises(RegistryError, match="description"):
        register_tool(type("Mute", (Tool,), {"name": "mute"}))
    with pytest.raises(RegistryError, match="effect"):
        register_tool(type("Odd", (LookUp,), {"name": "odd", "effect": "magic"}))


def test_tools_come_in_the_order_asked_for_and_once() -> None:
    with tools.temporarily("look_up", LookUp), tools.temporarily("other", WithModel):
        found = tools_for(["other", "missing", "look_up", "other"])
    assert [type(tool) for tool in found] == [WithModel, LookUp]


def test_a_tool_without_run_names_its_class(context: Context) -> None:
    with pytest.raises(NotImplementedError, match="Tool"):
        Tool().run(context)
