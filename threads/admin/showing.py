"""How texts that strangers wrote are shown: as text, on one line where they are a header, with nothing hidden."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from protege.untrusted import cut, one_line, visible

BODY_LIMIT = 20_000
"""Characters of a body that a transcript shows; the page of the mail has all of it."""


def line(text: str, limit: int = 120) -> str:
    return one_line(text, limit) or "-"


def address(name: str, mailbox: str) -> str:
    name, mailbox = one_line(name, 100), one_line(mailbox, 254)
    return f"{name} <{mailbox}>" if name else mailbox


def addresses(entries: Iterable[Mapping[str, Any]]) -> str:
    """The stored lists of names and addresses, on one line."""
    shown = [address(str(entry.get("name") or ""), str(entry.get("address") or "")) for entry in entries]
    return ", ".join(shown) or "-"


def text_block(text: str, limit: int | None = None) -> SafeString:
    """A whole text with its line breaks, cut with a note when it is longer than `limit`."""
    shown = visible(text)
    if limit is not None and len(shown) > limit:
        shown = f"{cut(shown, limit)}\n[cut: {len(shown)} characters in all]"
    return format_html('<pre class="pt-text">{}</pre>', shown) if shown else SafeString("-")


def readable_json(value: Any) -> str:
    """JSON with readable letters; text that holds JSON is laid out, other text stays as it is."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return visible(value)
    return visible(json.dumps(value, ensure_ascii=False, indent=2))


def json_block(value: Any) -> SafeString:
    return format_html('<pre class="pt-json">{}</pre>', readable_json(value)) if value else SafeString("-")


def notice_list(notices: Iterable[Mapping[str, Any]]) -> SafeString:
    """Each notice of a run: its code and its facts."""
    rows = [(str(notice.get("code", "")), _facts(notice)) for notice in notices]
    if not rows:
        return SafeString("-")
    return format_html('<ul class="pt-notices">{}</ul>', format_html_join("", "<li><code>{}</code> {}</li>", rows))


def _facts(notice: Mapping[str, Any]) -> str:
    facts = {key: value for key, value in notice.items() if key != "code"}
    return visible(", ".join(f"{key}: {value}" for key, value in facts.items()))


def tokens(run: Any) -> str:
    """`812 in, 96 out, 400 cached`."""
    cached = f", {run.cached_tokens:,} cached" if run.cached_tokens else ""
    return f"{run.input_tokens:,} in, {run.output_tokens:,} out{cached}"


def cost(run: Any) -> str:
    """What a run cost; a run that has no price is not one that cost nothing."""
    return f"{run.cost.normalize():f} {run.currency}".strip() if run.cost is not None else "-"
