"""What our own mail server found out about a mail: whose it is (RFC 8601), and whether it is spam.

Anybody can write an `Authentication-Results` field into a mail. The server that is named by a listed authserv-id
removes those that claim to be its own and puts its result on top, so that the topmost one of a listed id is believed
and no other. A field that cannot be read to its end verifies nothing.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email.message import Message

from protege.mail.headers import raw_values

FIELD_LENGTH = 16 * 1024
"""Characters of one field that are read; a longer one verifies nothing."""

_SPECIAL = re.compile(r"[;=()\s\"]")
_RESULT = re.compile(r"\s*([a-z0-9-]+)(?:/\d+)?\s{0,9}=\s{0,9}([a-z]+)")
_PROPERTY = re.compile(r"(?:^|\s)([a-z]+\.[a-z0-9_-]+)\s{0,9}=\s{0,9}(\S+)")


@dataclass(frozen=True, slots=True)
class Authentication:
    """`verified`: the domain of the From address stands behind the mail; `dmarc_failed`: it disowns it."""

    verified: bool = False
    dmarc_failed: bool = False


@dataclass(frozen=True, slots=True)
class _Result:
    method: str
    outcome: str
    properties: dict[str, str]


def authenticate(fields: Sequence[str], *, authserv_ids: Sequence[str], from_address: str) -> Authentication:
    """The verdict of the topmost of `fields` that a listed server wrote; nothing is verified without one.

    Verified is a mail with dmarc=pass, or with a dkim or spf pass of a domain aligned with that of `from_address`.
    """
    results = _topmost(fields, {name.strip().lower() for name in authserv_ids})
    domain = _domain(from_address)
    if any(result.method == "dmarc" and result.outcome == "fail" for result in results):
        return Authentication(dmarc_failed=True)
    return Authentication(verified=bool(domain) and any(_vouches(result, domain) for result in results))


def is_aligned(domain: str, from_domain: str) -> bool:
    """True when the domains are equal or one lies below the other, as organisational domains mostly do.

    Of two that only share a parent nothing is said, and nothing lies below a domain of a single label.
    """
    one, other = _normal(domain), _normal(from_domain)
    if not one or not other:
        return False
    short, long = sorted((one, other), key=len)
    return short == long or ("." in short and long.endswith(f".{short}"))


def marked_as_spam(msg: Message) -> bool:
    """True for the marks of SpamAssassin and rspamd, under their customary names."""
    names = ("X-Spam-Flag", "X-Spam-Status", "X-Spam")
    return any(re.match(r"\s*yes\b", value, re.IGNORECASE) for name in names for value in raw_values(msg, name))


def _topmost(fields: Sequence[str], authserv_ids: set[str]) -> list[_Result]:
    for value in fields:
        segments = _flattened(value[: FIELD_LENGTH + 1]).split(";")
        words = segments[0].split()
        if words and words[0] in authserv_ids:
            return [] if len(value) > FIELD_LENGTH else list(_results(segments[1:]))
    return []


def _results(segments: Sequence[str]) -> Iterator[_Result]:
    for segment in segments:
        found = _RESULT.match(segment)
        if found:
            rest = segment[found.end() :]
            yield _Result(found[1], found[2], dict(_PROPERTY.findall(rest)))


def _flattened(value: str) -> str:
    """`value` in lower case, without comments and quotation marks; what had a meaning inside quotes loses it.

    A sender chooses parts of it, such as the local part of `smtp.mailfrom`, and must not write results with them. An
    open quote or comment gives the empty text.
    """
    kept: list[str] = []
    depth, quoted, escaped = 0, False, False
    for character in value.lower():
        if escaped:
            escaped, character = False, "_"
        elif character == "\\" and (quoted or depth):
            escaped = True
            continue
        elif not quoted and character in "()":
            depth += 1 if character == "(" else -1
            character = " "
            if depth < 0:
                return ""
        elif not depth and character == '"':
            quoted = not quoted
            continue
        if not depth:
            kept.append(_SPECIAL.sub("_", character) if quoted else character)
    return "" if quoted or depth or escaped else "".join(kept)


def _vouches(result: _Result, from_domain: str) -> bool:
    if result.outcome != "pass":
        return False
    if result.method == "dmarc":
        # Another From than ours was looked at when the domains differ: parsers read crafted mail differently.
        return is_aligned(_domain(result.properties.get("header.from", from_domain)), from_domain)
    if result.method == "dkim":
        signer = result.properties.get("header.d") or result.properties.get("header.i", "")
        return is_aligned(_domain(signer), from_domain)
    return result.method == "spf" and is_aligned(_domain(result.properties.get("smtp.mailfrom", "")), from_domain)


def _domain(address: str) -> str:
    """The domain of an address, or of a value that is a domain only."""
    return address.strip("<>").rpartition("@")[2]


def _normal(domain: str) -> str:
    """Lower case, in the form that DNS knows."""
    bare = domain.strip().strip(".").lower()
    try:
        return bare.encode("idna").decode("ascii")
    except UnicodeError:
        return bare
