"""Texts with `{{ persona.name }}` in them.

This is no template engine: a closed list of names stands for plain strings that are made beforehand, and each text is
gone through once, so that nothing in a value is replaced again.
"""

import re
import string
import zoneinfo
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError

from protege.exceptions import ResolverError
from protege.messages import Role
from protege.untrusted import one_line

if TYPE_CHECKING:
    from protege.context import Context

OUTPUT_LIMIT = 100_000
"""Characters that a filled text may have."""

WITHHELD_ADDRESS = "(an unusual address, not shown here)"

Values = Mapping[str, str]


# Every repetition is bounded and no two of them can match the same character: linear in time on any text.
_PATTERN = r"""
    \{\{(?:
      (?P<escaped>\{\{)
      | [ \t]{0,8}(?P<named>[^\s{}]{1,100})[ \t]{0,8}\}\}
      | (?P<braced>(?!))
      | (?P<invalid>)
    )
"""


class PlaceholderText(string.Template):
    """`string.Template` with `{{ dotted.name }}` for placeholders and `{{{{` for a literal `{{`."""

    delimiter = "{{"
    flags = re.RegexFlag(0)
    pattern = _PATTERN  # type: ignore[assignment]  # the base class compiles it


def _persona(name: str) -> Callable[["Context"], str]:
    return lambda context: str(getattr(context.persona, name))


def _responsibility(name: str) -> Callable[["Context"], str]:
    return lambda context: str(getattr(context.responsibility, name)) if context.responsibility is not None else ""


def _message(name: str, limit: int) -> Callable[["Context"], str]:
    return lambda context: one_line(getattr(context.message, name), limit) if context.message is not None else ""


def _today(form: str) -> Callable[["Context"], str]:
    return lambda context: context.now.astimezone(zoneinfo.ZoneInfo(context.persona.timezone)).strftime(form)


def _sender(context: "Context") -> str:
    """The sender's address, unless a stranger could write sentences in it."""
    address = _message("from_address", 254)(context)
    return address if not address or _is_bare(address) else WITHHELD_ADDRESS


def _is_bare(address: str) -> bool:
    return re.fullmatch(r"[^\s\"'<>()\[\]\\,;:@]{1,64}@[^\s\"'<>()\\,;@]{1,255}", address) is not None


SENDER = "message.from_address"
"""The one name of the sender's that may stand in system text and in filters."""

TRUSTED: dict[str, Callable[["Context"], str]] = {
    "persona.name": _persona("name"),
    "persona.slug": _persona("slug"),
    "persona.address": _persona("address"),
    "persona.tenant": _persona("tenant"),
    "persona.timezone": _persona("timezone"),
    "persona.instructions": _persona("instructions"),
    "responsibility.name": _responsibility("name"),
    "responsibility.slug": _responsibility("slug"),
    "responsibility.subject": _responsibility("subject"),
    "responsibility.instructions": _responsibility("instructions"),
    "now.date": _today("%Y-%m-%d"),
    "now.weekday": _today("%A"),
    SENDER: _sender,
}
"""What no stranger writes."""

FROM_MAIL: dict[str, Callable[["Context"], str]] = {
    "message.from_name": _message("from_name", 100),
    "message.subject": _message("subject", 300),
}
"""What strangers write; never in the system role."""


def names_for(role: str) -> tuple[str, ...]:
    """The names that a text of this role may use."""
    return tuple(TRUSTED) if role == Role.SYSTEM else (*TRUSTED, *FROM_MAIL)


def values(context: "Context", names: Collection[str]) -> dict[str, str]:
    """The strings behind `names`; what this kind of run does not have is ""."""
    makers = {**TRUSTED, **FROM_MAIL}
    return {name: makers[name](context) for name in names}


def complaint(text: str, role: str) -> str | None:
    """What is wrong with the placeholders of `text`, in a sentence that says what to do; None when nothing is."""
    template = PlaceholderText(text)
    legal = names_for(role)
    unknown = [name for name in template.get_identifiers() if name not in legal]
    if unknown and unknown[0] in FROM_MAIL:
        return f"{{{{ {unknown[0]} }}}} is written by strangers: it cannot stand in a text with the role system."
    if unknown:
        return f"There is no placeholder {unknown[0]!r}. Use one of: {', '.join(legal)}."
    if not template.is_valid():
        return "Write placeholders as {{ persona.name }}, and a literal {{ as {{{{."
    return None


def validate(text: str, role: str) -> None:
    """`ValidationError` for a text that cannot be filled."""
    wrong = complaint(text, role)
    if wrong:
        raise ValidationError(wrong, code="placeholder")


def fill(text: str, role: str, context: "Context") -> str:
    """`text` with its placeholders replaced, once; `ResolverError` for an unknown one or an output that is too long."""
    wrong = complaint(text, role)
    if wrong:
        raise ResolverError(f"{wrong} Correct the step's text.", code="placeholder")
    template = PlaceholderText(text)
    found = values(context, template.get_identifiers())
    if _length(template, found) > OUTPUT_LIMIT:
        raise ResolverError(f"The filled text has over {OUTPUT_LIMIT:,} characters. Shorten it.", code="text_too_long")
    return template.substitute(found)


def _length(template: PlaceholderText, found: Values) -> int:
    """The length of the result, known before it is made: a short text can ask for a very long one."""
    length = len(template.template)
    for match in re.finditer(_PATTERN, template.template, re.VERBOSE):
        length += len(found.get(match["named"], "")) - len(match[0]) if match["named"] else -len(template.delimiter)
    return length
