"""The stored mails that several tests read."""

from pathlib import Path

from protege.mail.parsing import ParsedMail, parse

FOLDER = Path(__file__).resolve().parent.parent / "fixtures" / "mail"


def raw(name: str) -> bytes:
    return (FOLDER / f"{name}.eml").read_bytes()


def parsed(name: str, sender: str | None = None) -> ParsedMail:
    return parse(raw(name), sender=sender)


def all_names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.eml"))
