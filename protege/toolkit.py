"""Tools: what a model may call. A host subclasses `Tool` and decorates it with `@register_tool`.

The JSON schema of the arguments comes from the annotations of `run`, or from `arguments`, a pydantic model.
"""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from weakref import WeakKeyDictionary

from protege.exceptions import ToolFailure
from protege.registry import Registry

if TYPE_CHECKING:
    from pydantic import BaseModel

    from protege.context import Context

Effect = Literal["read", "write", "egress"]
Outcome = Literal["success", "failure", "retry"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool answers. `value` is JSON; for a failure or a retry it is the text the model reads.

    `on_record` is called inside the transaction that stores the result, so that what the tool writes and the
    record of it stand or fall together; it may raise `ToolFailure`.
    """

    outcome: Outcome
    value: Any
    code: str = ""
    on_record: Callable[[], None] | None = None

    def text(self) -> str:
        """The result as the model reads it: canonical JSON, and never empty."""
        if self.outcome == "success":
            return canonical_json({"ok": True} if self.value is None else self.value)
        error = {"code": self.code or self.outcome, "message": str(self.value), "retry": self.outcome == "retry"}
        return canonical_json({"error": error})


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and readable letters: the same text for the same value on every database."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)


class Tool:
    """Base class of tools.

    `effect` says what a call does to the world: `read` nothing, `write` changes something here, `egress` sends
    something out. `run` gets the frozen context and the checked arguments and returns a JSON value or one of
    `self.success(value)`, `self.failure(text)`, `self.retry(text)`. An exception is a failure without its text.
    """

    name: ClassVar[str] = ""
    description: ClassVar[str] = ""
    effect: ClassVar[Effect] = "write"
    arguments: "ClassVar[type[BaseModel] | None]" = None

    if TYPE_CHECKING:
        # Each tool names its own arguments, which the types of a method could not say.
        run: Callable[..., Any]
    else:

        def run(self, context, **arguments):
            raise NotImplementedError(f"{type(self).__name__} does not implement run(context, **arguments).")

    def success(self, value: Any = None, *, on_record: Callable[[], None] | None = None) -> ToolResult:
        return ToolResult(outcome="success", value=value, on_record=on_record)

    def failure(self, text: str, *, code: str = "tool_failed") -> ToolResult:
        return ToolResult(outcome="failure", value=text, code=code)

    def retry(self, text: str) -> ToolResult:
        """The arguments were not usable; the text tells the model how to call again."""
        return ToolResult(outcome="retry", value=text, code="retry")

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """The JSON schema of the arguments: an object, closed."""
        return _arguments_model(cls).model_json_schema()

    @classmethod
    def check(cls, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """`arguments` validated and converted; `ToolFailure` (code `bad_arguments`) names each wrong field."""
        from pydantic import ValidationError

        try:
            model = _arguments_model(cls).model_validate(dict(arguments))
        except ValidationError as error:
            raise ToolFailure(_complaints(error), code="bad_arguments") from None
        return {name: getattr(model, name) for name in type(model).model_fields}

    def call(self, context: "Context", arguments: Mapping[str, Any]) -> ToolResult:
        """Check the arguments, run, and give every outcome the form of a `ToolResult`; never raises `Exception`."""
        try:
            answer = self.run(context, **self.check(arguments))
            result = answer if isinstance(answer, ToolResult) else self.success(answer)
            result.text()
        except ToolFailure as failure:
            outcome: Outcome = "retry" if failure.code == "bad_arguments" else "failure"
            return ToolResult(outcome=outcome, value=str(failure), code=failure.code)
        except Exception as error:  # a tool is the host's code: whatever it raises, the model gets an answer
            context.logger.warning("tool %s raised %s", self.name, type(error).__name__)
            text = f"The tool {self.name} failed ({type(error).__name__}). It did not finish its work."
            return ToolResult(outcome="failure", value=text, code="exception")
        return result


def _arguments_model(tool: type[Tool]) -> "type[BaseModel]":
    """The model that checks the arguments of `tool`; made once for each class."""
    if tool not in _arguments_models:
        _arguments_models[tool] = tool.arguments or _from_annotations(tool)
    return _arguments_models[tool]


_arguments_models: "WeakKeyDictionary[type[Tool], type[BaseModel]]" = WeakKeyDictionary()


def _from_annotations(tool: type[Tool]) -> "type[BaseModel]":
    from pydantic import ConfigDict, create_model

    fields: dict[str, Any] = {}
    for parameter in list(inspect.signature(tool.run, eval_str=True).parameters.values())[2:]:
        annotation = Any if parameter.annotation is parameter.empty else parameter.annotation
        fields[parameter.name] = (annotation, ... if parameter.default is parameter.empty else parameter.default)
    return create_model(f"{tool.__name__}Arguments", __config__=ConfigDict(extra="forbid"), **fields)


def _complaints(error: Any) -> str:
    lines = [f"{'.'.join(map(str, item['loc'])) or 'arguments'}: {item['msg']}" for item in error.errors()]
    return "The arguments are not usable. " + "; ".join(lines)


def _check_tool(entry: object) -> str | None:
    if not (isinstance(entry, type) and issubclass(entry, Tool)):
        return "it is no subclass of protege.toolkit.Tool."
    if not entry.description:
        return "it has no `description`; the model reads it to know when to call."
    if entry.effect not in ("read", "write", "egress"):
        return f"its `effect` is {entry.effect!r}; use read, write or egress."
    return None


tools: Registry[type[Tool]] = Registry("tool", check=_check_tool)


def register_tool(tool: type[Tool]) -> type[Tool]:
    """Class decorator: offer the tool to personas under its `name`."""
    return tools.register(getattr(tool, "name", ""), tool)


def tools_for(names: Sequence[str]) -> list[Tool]:
    """Fresh instances of the named tools, in the order given; unknown names are left out."""
    found = [tools.get(name) for name in dict.fromkeys(names)]
    return [tool() for tool in found if tool is not None]
