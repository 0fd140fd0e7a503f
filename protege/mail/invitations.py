"""Calendar invitations as text: what, when, where, and who asks. A reader of lines, not of the whole standard."""

import re
from collections.abc import Iterator

from protege.untrusted import one_line, storable

_FIELDS = {
    "SUMMARY": "Subject",
    "DTSTART": "Start",
    "DTEND": "End",
    "LOCATION": "Place",
    "ORGANIZER": "Organiser",
    "STATUS": "Status",
    "DESCRIPTION": "Description",
}
_HEADINGS = {
    "REQUEST": "[Calendar invitation]",
    "CANCEL": "[Cancelled calendar event]",
    "REPLY": "[Answer to a calendar invitation]",
}
_MAX_EVENTS = 20


def calendar_text(source: str) -> str:
    """The events of an iCalendar text (RFC 5545) as lines `Subject: ...`; empty when there is none."""
    lines = _unfolded(source)
    method = next((value for name, _, value in lines if name == "METHOD"), "").strip().upper()
    events = [text for text in (_event_text(event) for event in _events(lines)) if text]
    heading = _HEADINGS.get(method, "[Calendar entry]")
    return "\n\n".join([heading, *events[:_MAX_EVENTS]]) if events else ""


def _unfolded(source: str) -> list[tuple[str, str, str]]:
    """(name, parameters, value) of every content line."""
    text = re.sub(r"\r?\n[ \t]", "", storable(source))
    return [_content_line(line) for line in re.split(r"\r?\n", text)[:5_000] if ":" in line]


def _content_line(line: str) -> tuple[str, str, str]:
    quoted, end = False, len(line)
    for index, character in enumerate(line):
        quoted ^= character == '"'
        if character == ":" and not quoted:
            end = index
            break
    name, _, parameters = line[:end].partition(";")
    return name.strip().upper(), parameters, line[end + 1 :]


def _events(lines: list[tuple[str, str, str]]) -> Iterator[list[tuple[str, str, str]]]:
    current: list[tuple[str, str, str]] | None = None
    alarm = False
    for line in lines:
        name, _, value = line
        kind = value.strip().upper()
        if name in ("BEGIN", "END") and kind in ("VEVENT", "VTODO"):
            if name == "END" and current is not None:
                yield current
            current = [] if name == "BEGIN" else None
        elif name in ("BEGIN", "END") and kind == "VALARM":
            alarm = name == "BEGIN"
        elif current is not None and not alarm:
            current.append(line)
    if current:
        yield current


def _event_text(event: list[tuple[str, str, str]]) -> str:
    found: dict[str, str] = {}
    for name, parameters, value in event:
        text = _value(name, parameters, value)
        if name in _FIELDS and text:
            found.setdefault(name, text)
    return "\n".join(f"{label}: {found[name]}" for name, label in _FIELDS.items() if name in found)


def _value(name: str, parameters: str, value: str) -> str:
    if name in ("DTSTART", "DTEND"):
        return _time(parameters, value.strip())
    if name == "ORGANIZER":
        common_name = re.search(r'(?:^|;)CN=(?:"([^"]*)"|([^;]*))', parameters, re.IGNORECASE)
        address = re.sub(r"^mailto:", "", value.strip(), flags=re.IGNORECASE)
        named = (common_name[1] or common_name[2] or "") if common_name else ""
        return one_line(f"{named} <{address}>" if named and named != address else address, 300)
    text = re.sub(r"\\([nN\\;,])", lambda found: "\n" if found[1] in "nN" else found[1], value)
    return text.strip()[:4_000] if name == "DESCRIPTION" else one_line(text, 500)


def _time(parameters: str, value: str) -> str:
    parts = re.fullmatch(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)\d\d(Z?))?", value)
    if parts is None:
        return one_line(value, 50)
    zone = re.search(r'(?:^|;)TZID="?([^";:]+)', parameters, re.IGNORECASE)
    day = f"{parts[1]}-{parts[2]}-{parts[3]}"
    if parts[4] is None:
        return day
    return f"{day} {parts[4]}:{parts[5]} {'UTC' if parts[6] else one_line(zone[1], 60) if zone else ''}".strip()
