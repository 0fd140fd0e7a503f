"""The body that goes over the wire, its hash, and a form of it that is fit to be shown."""

import base64
import binascii
import copy
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

_DATA_URI = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """The first request as it would be posted; `body` is the parsed JSON, `sha256` that of its canonical form."""

    provider: str
    method: str
    url: str
    body: Any
    sha256: str


def wire_sha256(body: Any) -> str:
    """SHA-256 of the canonical JSON of `body` (parsed, or as bytes): sorted keys, no blanks, UTF-8."""
    parsed = json.loads(body) if isinstance(body, bytes | str) else body
    canonical = json.dumps(parsed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode("utf-8", errors="surrogatepass")).hexdigest()


def shown_url(url: str) -> str:
    """`url` without what may be a credential: the user and password before the host, and the query."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def redact_wire(value: Any, full: bool = False) -> Any:
    """A copy of `value` in which the bytes of files are their type, size and SHA-256; all of it when `full`."""
    if full:
        return copy.deepcopy(value)
    if isinstance(value, Mapping):
        if isinstance(value.get("media_type"), str) and isinstance(value.get("data"), str):
            return _described(value["media_type"], value["data"])
        return {key: redact_wire(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redact_wire(item) for item in value]
    if isinstance(value, str) and (match := _DATA_URI.fullmatch(value)):
        return _described(match[1], match[2])
    return value


def _described(media_type: str, data: str) -> dict[str, Any]:
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        content = data.encode()
    kind = "image" if media_type.startswith("image/") else "document"
    digest = hashlib.sha256(content).hexdigest()
    return {"type": kind, "media_type": media_type, "bytes": len(content), "sha256": digest}
