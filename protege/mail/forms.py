"""The fields of a posted form as bytes.

Django decodes the fields of a form and refuses those over 2.5 MB; a mail inside a field is neither text in one
charset nor small.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from email.parser import HeaderParser
from email.utils import collapse_rfc2231_value
from itertools import islice
from urllib.parse import unquote_to_bytes

from protege.exceptions import MailError

MULTIPART = "multipart/form-data"
MAX_FIELDS = 1_000

_END_OF_HEADERS = re.compile(rb"\r?\n\r?\n|\A\r?\n")
_BOUNDARY = re.compile(r'(?i)boundary="?([^";]{1,70})')


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field; `filename` is None when it is no file, `charset` empty when the sender names none."""

    name: str
    value: bytes
    filename: str | None = None
    content_type: str = ""
    charset: str = ""


def form_fields(body: bytes, *, media_type: str) -> list[Field]:
    """The fields in their order; a form that cannot be taken apart is a `MailError`."""
    found = _multipart(body, media_type) if media_type.startswith(MULTIPART) else _urlencoded(body)
    fields = list(islice(found, MAX_FIELDS + 1))
    if len(fields) > MAX_FIELDS:
        raise MailError("The posted form has too many fields.", code="unreadable_payload")
    return fields


def _multipart(body: bytes, media_type: str) -> Iterator[Field]:
    """RFC 7578. The boundary is taken as it stands: what is between two of them is the field's value, byte by byte."""
    named = _BOUNDARY.search(media_type)
    if named is None:
        raise MailError("The posted form names no boundary.", code="unreadable_payload")
    delimiter = b"\r\n--" + named[1].strip().encode("latin-1", "replace")
    _, *parts = (b"\r\n" + body).split(delimiter)
    for part in parts:
        if part.startswith(b"--"):
            return
        yield _part(part.lstrip(b" \t").removeprefix(b"\r\n"))
    raise MailError("The posted form is cut off.", code="unreadable_payload")


def _part(raw: bytes) -> Field:
    gap = _END_OF_HEADERS.search(raw)
    # Not BytesHeaderParser: browsers and providers write parameters as raw UTF-8, which it loses.
    headers = HeaderParser().parsestr((raw[: gap.start()] if gap else raw).decode("utf-8", "replace"))
    return Field(
        name=_parameter(headers, "name") or "",
        value=raw[gap.end() :] if gap else b"",
        filename=_parameter(headers, "filename"),
        content_type=headers.get_content_type() if "Content-Type" in headers else "",
        charset=str(headers.get_param("charset", "")),
    )


def _parameter(headers: Message, name: str) -> str | None:
    value = headers.get_param(name, header="Content-Disposition")
    return None if value is None else collapse_rfc2231_value(value)


def _urlencoded(body: bytes) -> Iterator[Field]:
    for pair in body.split(b"&"):
        if pair:
            name, _, value = pair.partition(b"=")
            yield Field(name=_unquoted(name).decode("utf-8", "replace"), value=_unquoted(value))


def _unquoted(data: bytes) -> bytes:
    return unquote_to_bytes(data.replace(b"+", b" "))
