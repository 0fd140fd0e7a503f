"""Paging by keyset on a total order: each page starts behind the last row of the one before.

Nothing here knows DRF. A page neither repeats nor loses rows whatever keys they share, as the order ends in the
primary key, and what is inserted or moved meanwhile shifts no other row. (DRF's own cursor goes by the first field
of the order and an offset among equals.)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any, Generic, TypeVar

from django.core import signing
from django.db.models import Field, Model, Q, QuerySet

from protege.exceptions import ProtegeError

DEFAULT_LIMIT = 50
LIMIT_CAP = 500

M = TypeVar("M", bound=Model)


class PageError(ProtegeError, ValueError):
    """A cursor or a limit that no list of ours has given out or can take."""

    code = "bad_cursor"


@dataclass(frozen=True, slots=True)
class Page(Generic[M]):
    """The rows of one page, the limit that was in force, and the cursor of the next page (None: this is the last)."""

    rows: list[M]
    limit: int
    next: str | None


def page(queryset: "QuerySet[M]", order: Sequence[str], *, cursor: str | None = None, limit: int) -> Page[M]:
    """One page of `queryset` in `order`, in one query.

    `order` holds names of columns that are never null, descending with a minus, the last of them unique. A cursor
    that does not come from a list in this order is a `PageError`.
    """
    rows = queryset.order_by(*order)
    if cursor is not None:
        rows = rows.filter(_behind(order, _decode(queryset, order, cursor)))
    found = list(rows[: limit + 1])
    more = len(found) > limit
    return Page(rows=found[:limit], limit=limit, next=_encode(queryset, order, found[limit - 1]) if more else None)


def effective_limit(given: str | None) -> int:
    """The limit that `given` asks for, at most 500; 50 without one. Anything but a positive number is a `PageError`."""
    if given is None:
        return DEFAULT_LIMIT
    if not (given.isascii() and given.isdecimal() and given.strip("0")):
        raise PageError(f"`limit` must be a whole number from 1 to {LIMIT_CAP}.", code="bad_limit")
    # What is longer than the cap's own digits is over it, and need not become a number.
    return min(int(given.lstrip("0")[:4]), LIMIT_CAP)


def _behind(order: Sequence[str], values: Sequence[Any]) -> Q:
    """The rows behind the one with these key values: equal in the first keys, and behind it in the next."""
    alternatives = []
    for index, (name, value) in enumerate(zip(order, values, strict=True)):
        equal = {_column(earlier): values[place] for place, earlier in enumerate(order[:index])}
        alternatives.append(Q(**equal, **{f"{_column(name)}__{_comparison(name)}": value}))
    # Implied by the alternatives, and the part that an index on the order can start from.
    first = Q(**{f"{_column(order[0])}__{_comparison(order[0])}e": values[0]})
    return first & reduce(or_, alternatives)


def _comparison(name: str) -> str:
    return "lt" if name.startswith("-") else "gt"


def _column(name: str) -> str:
    return name.removeprefix("-")


def _salt(queryset: "QuerySet[M]", order: Sequence[str]) -> str:
    return f"protege.keyset:{queryset.model._meta.label}:{','.join(order)}"


def _encode(queryset: "QuerySet[M]", order: Sequence[str], row: M) -> str:
    """The key values of `row`, signed: what comes back is what went out, for a list in the same order."""
    values = [getattr(row, _column(name)) for name in order]
    plain = [value.isoformat() if isinstance(value, datetime) else value for value in values]
    return signing.dumps(plain, salt=_salt(queryset, order))


def _decode(queryset: "QuerySet[M]", order: Sequence[str], cursor: str) -> list[Any]:
    try:
        values = signing.loads(cursor, salt=_salt(queryset, order))
    except (signing.BadSignature, ValueError):
        raise PageError("`cursor` is not one that this list gave out. Start again without it.") from None
    return [_field(queryset, _column(name)).to_python(value) for name, value in zip(order, values, strict=True)]


def _field(queryset: "QuerySet[M]", name: str) -> "Field[Any, Any]":
    annotation = queryset.query.annotations.get(name)
    if annotation is not None:
        return annotation.output_field
    field: Field[Any, Any] = queryset.model._meta.get_field(name)  # type: ignore[assignment]  # a column, no relation
    return field
