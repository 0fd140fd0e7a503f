"""The common currency: what the model reads, as frozen values that compare by value.

The mail is `threads.models.Message`; a `ModelMessage` is one entry of the list that a model is sent.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Role(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class FrozenMapping(Mapping[str, Any]):
    """A mapping that cannot be changed, all the way down; equal to any mapping with the same items."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, Any] | None = None) -> None:
        self._items = {str(key): freeze(value) for key, value in (items or {}).items()}

    def __getitem__(self, key: str) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Mapping):
            return self._items == FrozenMapping(other)._items
        return NotImplemented

    def __repr__(self) -> str:
        return repr(self._items)


def freeze(value: Any) -> Any:
    """`value` with mappings as `FrozenMapping` and sequences as tuples, at every depth."""
    if isinstance(value, FrozenMapping):
        return value
    if isinstance(value, Mapping):
        return FrozenMapping(value)
    if isinstance(value, list | tuple):
        return tuple(freeze(item) for item in value)
    return value


def thaw(value: Any) -> Any:
    """The inverse of `freeze`: plain dicts and lists, ready for JSON."""
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [thaw(item) for item in value]
    return value


@dataclass(frozen=True, slots=True)
class TextPart:
    text: str

    def to_dict(self) -> dict[str, Any]:
        return {"type": "text", "text": self.text}


@dataclass(frozen=True, slots=True)
class ImagePart:
    """A picture; `data` is Base64 text."""

    media_type: str
    data: str

    def to_dict(self) -> dict[str, Any]:
        return {"type": "image", "media_type": self.media_type, "data": self.data}


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """A file that the provider reads natively; `data` is Base64 text."""

    filename: str
    media_type: str
    data: str

    def to_dict(self) -> dict[str, Any]:
        return {"type": "document", "filename": self.filename, "media_type": self.media_type, "data": self.data}


Part = TextPart | ImagePart | DocumentPart

_PART_TYPES: dict[str, type[Part]] = {"text": TextPart, "image": ImagePart, "document": DocumentPart}


def part_from_dict(data: Mapping[str, Any]) -> Part:
    """The part that `to_dict` described; an unknown `type` is a `ValueError`."""
    fields = dict(data)
    kind = fields.pop("type", None)
    if kind not in _PART_TYPES:
        raise ValueError(f"Unknown part type {kind!r}. Use one of: {', '.join(_PART_TYPES)}.")
    return _PART_TYPES[kind](**fields)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model made it: the provider's id, a snake_case tool name, parsed arguments."""

    id: str
    name: str
    input: Mapping[str, Any]

    def __post_init__(self) -> None:
        if not isinstance(self.input, Mapping):
            raise ValueError(f"`input` holds the parsed arguments as a mapping, not {type(self.input).__name__}.")
        object.__setattr__(self, "input", freeze(self.input))

    def to_dict(self) -> dict[str, Any]:
        return {"id": self.id, "name": self.name, "input": thaw(self.input)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "ToolCall":
        return cls(id=data["id"], name=data["name"], input=data["input"])


def told_apart(ids: Iterable[str]) -> list[str]:
    """The call ids of one round, in order, with those changed that are empty or stand there twice."""
    apart: dict[str, None] = {}
    for given in ids:
        wanted = given or "call"
        name, count = wanted, 1
        while name in apart:
            count += 1
            name = f"{wanted}-{count}"
        apart[name] = None
    return list(apart)


@dataclass(frozen=True, slots=True)
class ModelMessage:
    """One entry of what a model reads: role, text or parts, and the two fields of tool use.

    `tool_calls` may stand only with the role `assistant`; `tool_call_id` must stand with the role `tool`, and only
    there. Anything else is a `ValueError`.
    """

    role: Role
    content: str | Sequence[Part]
    tool_call_id: str | None = None
    tool_calls: Sequence[ToolCall] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "role", _role(self.role))
        object.__setattr__(self, "content", _content(self.content))
        object.__setattr__(self, "tool_calls", tuple(self.tool_calls or ()))
        self._check_tool_fields()

    def _check_tool_fields(self) -> None:
        if self.role is Role.TOOL and not self.tool_call_id:
            raise ValueError("A message with the role 'tool' needs the `tool_call_id` that it answers.")
        if self.role is not Role.TOOL and self.tool_call_id is not None:
            raise ValueError(f"`tool_call_id` belongs to the role 'tool', not to {self.role.value!r}.")
        if self.tool_calls and self.role is not Role.ASSISTANT:
            raise ValueError(f"`tool_calls` belong to the role 'assistant', not to {self.role.value!r}.")
        if not all(isinstance(call, ToolCall) for call in self.tool_calls):
            raise ValueError("`tool_calls` holds ToolCall values only.")

    @property
    def parts(self) -> tuple[Part, ...]:
        """The content as parts: a text is one `TextPart`."""
        return (TextPart(self.content),) if isinstance(self.content, str) else tuple(self.content)

    @property
    def text(self) -> str:
        """The text of all text parts, joined by blank lines."""
        return "\n\n".join(part.text for part in self.parts if isinstance(part, TextPart))

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready dict; `from_dict` gives the equal message back."""
        content = self.content if isinstance(self.content, str) else [part.to_dict() for part in self.content]
        return {
            "role": self.role.value,
            "content": content,
            "tool_call_id": self.tool_call_id,
            "tool_calls": [call.to_dict() for call in self.tool_calls],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "ModelMessage":
        content = data["content"]
        return cls(
            role=data["role"],
            content=content if isinstance(content, str) else [part_from_dict(part) for part in content],
            tool_call_id=data.get("tool_call_id"),
            tool_calls=tuple(ToolCall.from_dict(call) for call in data.get("tool_calls") or ()),
        )


def _role(value: object) -> Role:
    try:
        return Role(value)  # type: ignore[arg-type]  # a wrong type is the error we report
    except ValueError:
        raise ValueError(f"Unknown role {value!r}. Use one of: {', '.join(Role)}.") from None


def _content(value: object) -> str | tuple[Part, ...]:
    if isinstance(value, str):
        return value
    if (
        isinstance(value, Sequence)
        and not isinstance(value, bytes)
        and all(isinstance(part, TextPart | ImagePart | DocumentPart) for part in value)
    ):
        return tuple(value)
    raise ValueError(f"`content` must be text or a sequence of parts, not {type(value).__name__}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedMessage:
    """A message together with where it comes from.

    `step` is the index of the chain's step that said it (None: the engine), `kind` what the budget may cut
    (`system history documents lent summary related`), `sources` labels such as `message:17` or
    `file:prompts/ada.md@sha256...`, `exchange` a number shared by the turns that stand or fall together.
    """

    message: ModelMessage
    step: int | None = None
    kind: str = "history"
    sources: tuple[str, ...] = ()
    exchange: int | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that a person who reads the preview or the run should know."""

    code: str
    facts: Mapping[str, Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "facts", freeze(self.facts))

    def to_dict(self) -> dict[str, Any]:
        return {"code": self.code, **thaw(self.facts)}
