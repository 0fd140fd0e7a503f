"""Rows of the host's tables, written down for a model."""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Field, FileField, Model, QuerySet

from protege.exceptions import ResolverError
from resolvers.registry import is_secret

Serialize = str | Callable[[Any], Any] | None


def taken(answer: object, limit: int) -> tuple[list[Any], bool]:
    """At most `limit` records of what a loader returned, and whether there are more. A queryset is evaluated once."""
    if answer is None:
        return [], False
    if isinstance(answer, Model):
        return [answer], False
    if isinstance(answer, str | bytes | bytearray | Mapping) or not isinstance(answer, Iterable):
        raise ResolverError(
            f"The loader returned {type(answer).__name__}. It returns a model instance, a queryset, an iterable of "
            "records, or None.",
            code="bad_return",
        )
    found = list(answer[: limit + 1]) if isinstance(answer, QuerySet) else list(islice(answer, limit + 1))
    return found[:limit], len(found) > limit


def written(record: object, serialize: Serialize, fields: tuple[str, ...] | None = None) -> str:
    """The text of one record; `fields` limits the JSON of its concrete fields. "" when it has nothing to say."""
    if serialize is None:
        return _as_json(record, fields)
    text = _by_method(record, serialize) if isinstance(serialize, str) else serialize(record)
    if text is not None and not isinstance(text, str):
        raise ResolverError(f"`serialize` returned {type(text).__name__}. It returns a text.", code="bad_return")
    return (text or "").strip()


def label(record: object) -> str:
    """Where it comes from: `record:shop.Order:17`."""
    if isinstance(record, Model):
        return f"record:{record._meta.label}:{record.pk}"
    return f"record:{type(record).__name__}"


def _by_method(record: object, name: str) -> Any:
    method = getattr(record, name, None)
    if not callable(method):
        raise ResolverError(f"{type(record).__name__} has no method {name!r} to serialise with.", code="bad_options")
    return method()


def _as_json(record: object, fields: tuple[str, ...] | None) -> str:
    if not isinstance(record, Model):
        raise ResolverError(
            f"The loader gave a {type(record).__name__}. Give model instances, or a `serialize` callable.",
            code="bad_return",
        )
    values = {field.name: _value(field, record) for field in _readable(record, fields)}
    return json.dumps(values, cls=_RecordEncoder, indent=2, ensure_ascii=False)


def _readable(record: Model, fields: tuple[str, ...] | None) -> "list[Field[Any, Any]]":
    # A deferred column would cost one query a record, and whoever deferred it did not want it.
    deferred = record.get_deferred_fields()
    return [
        field
        for field in record._meta.concrete_fields
        if field.attname not in deferred and not is_secret(field.name) and (fields is None or field.name in fields)
    ]


def _value(field: "Field[Any, Any]", record: Model) -> Any:
    """Relations as primary keys, files as names, and numbers that JSON does not know as text."""
    value = field.value_from_object(record)
    if isinstance(field, FileField):
        return getattr(value, "name", None) or None
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


class _RecordEncoder(DjangoJSONEncoder):
    """Dates as ISO text, decimals as text, bytes by their number, and anything else by its own text."""

    def default(self, value: Any) -> Any:
        if isinstance(value, bytes | bytearray | memoryview):
            return f"{len(value)} bytes"
        try:
            return super().default(value)
        except (TypeError, ValueError):
            return str(value)
