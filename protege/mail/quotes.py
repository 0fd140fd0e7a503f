"""Quoted history in a mail: found line by line, cut where the thread holds it, labelled where it does not.

What the thread holds is decided on runs of words, since quoting rewraps lines, adds `>` and drops markup. All of it is
linear in the text; no pattern sees more than one short line.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from protege.mail import limits
from protege.untrusted import cut, storable

QUOTE_LABEL = "[Quoted text:]"

_RUN = 4
_MAX_LINE = 1_000
_MAX_THREAD_TEXT = 4_000_000
_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_CJK}]|(?:(?![{_CJK}])\w)+")
_MARKDOWN_LINK = re.compile(r"\]\([^()\s]{1,2000}\)")
_QUOTED = re.compile(r"[ \t]{0,3}[>|\uff1e](?!From )")
_MARKS = re.compile(r"(?:[ \t]{0,3}[>|\uff1e])+[ \t]?")
_ATTRIBUTION = re.compile(
    r"\W{0,3}(?:on|am|le|el|il|op|den|em|w dniu|dnia|le|de|von|from|\d{1,4}[-./])?\b.{0,300}"
    r"(?:wrote|schrieb|a \u00e9crit|escribi\u00f3|ha scritto|schreef|skrev|napisa\u0142\(?a?\)?|escreveu|kirjoitti"
    r"|p\u00ed\u0161e|\u5199\u9053|\uff1a)"
    r".{0,120}[:\uff1a]?\W{0,3}",
    re.IGNORECASE,
)
_DIVIDER = re.compile(
    r"\W{0,3}[-_]{2,}\s*(?:original message|original appointment|forwarded message|urspr\u00fcngliche nachricht"
    r"|weitergeleitete nachricht|message d'origine|message transf\u00e9r\u00e9|mensaje original|messaggio originale"
    r"|oorspronkelijk bericht|forwarded by.{0,200})\s*[-_]*\W{0,3}|\W{0,3}begin forwarded message:\W{0,3}"
    r"|\W{0,3}anfang der weitergeleiteten nachricht:\W{0,3}",
    re.IGNORECASE,
)
_SENDER_FIELD = re.compile(
    r"\W{0,3}(?:from|von|de|da|van|fr\u00e5n|fra|od|\u53d1\u4ef6\u4eba)\W{0,2}[:\uff1a]", re.IGNORECASE
)
_OTHER_FIELD = re.compile(
    r"\W{0,3}(?:sent|date|to|cc|subject|gesendet|datum|an|betreff|envoy\u00e9|\u00e0|objet|enviado|para|asunto|inviato|a"
    r"|oggetto|verzonden|aan|onderwerp|skickat|till|\u00e4mne|reply-to)\W{0,2}[:\uff1a]",
    re.IGNORECASE,
)
_RULE = re.compile(r"\W{0,3}[_-]{5,}\W{0,3}")


@dataclass(frozen=True, slots=True)
class _Block:
    """Consecutive lines of one kind; `heading` lines say who wrote what follows, and stand or fall with it."""

    quoted: bool
    lines: list[str]
    heading: int = 0


def readable(body: str, *, thread_texts: Sequence[str]) -> str:
    """What a model reads of `body`: quoted text that is in `thread_texts` is cut, other quoted text is labelled.

    Answers between quotes are kept, each with the beginning of the line that it answers. A body that is nothing but
    known quotes is given whole: the result is empty only when the body is blank. At most 200,000 characters.
    """
    text = storable(body).replace("\r\n", "\n").replace("\r", "\n")
    blocks = list(_blocks(text[: limits.MAX_READABLE * 2].split("\n")))
    if not any(block.quoted for block in blocks):
        return cut(text.strip("\n"), limits.MAX_READABLE).rstrip()
    known = _runs(thread_texts)
    pieces = [piece for piece in _pieces(blocks, known) if piece.strip()]
    return cut("\n\n".join(pieces) or text.strip(), limits.MAX_READABLE)


def _pieces(blocks: list[_Block], known: set[str]) -> Iterator[str]:
    interleaved = sum(1 for block, after in _pairs(blocks) if block.quoted and _has_text(after)) > 1
    for block, after in _pairs(blocks):
        if not block.quoted:
            yield "\n".join(block.lines).strip("\n")
            continue
        unknown = _unknown_lines(block, known)
        if unknown:
            yield "\n".join([QUOTE_LABEL, *unknown])
        elif interleaved and _has_text(after):
            yield _answered_line(block)


def _pairs(blocks: list[_Block]) -> Iterator[tuple[_Block, _Block | None]]:
    return zip(blocks, [*blocks[1:], None], strict=True)


def _has_text(block: _Block | None) -> bool:
    return block is not None and not block.quoted and any(line.strip() for line in block.lines)


def _answered_line(block: _Block) -> str:
    """The last quoted line in short, so that "Yes." among several answers still says to what."""
    last = next((line for line in reversed(block.lines) if _bare(line)), "")
    words = _bare(last)
    return f'[On "{words if len(words) <= 80 else cut(words, 80) + "…"}":]'


def _bare(line: str) -> str:
    return _MARKS.sub("", line, count=1).strip()


def _blocks(lines: list[str]) -> Iterator[_Block]:
    """The lines as own and quoted blocks, in order."""
    own: list[str] = []
    position = 0
    while position < len(lines):
        block = _quoted_block(lines, position)
        if block is None:
            own.append(lines[position])
            position += 1
            continue
        if own:
            yield _Block(False, own)
            own = []
        yield block
        position += len(block.lines)
    if own:
        yield _Block(False, own)


def _quoted_block(lines: list[str], position: int) -> _Block | None:
    """The quoted block that begins at this line, or None."""
    if _is_quoted(lines[position]):
        return _Block(True, lines[position : _end_of_marks(lines, position)])
    heading = _heading(lines, position)
    if heading == 0:
        return None
    start = _skip_blank(lines, position + heading)
    marked = start < len(lines) and _is_quoted(lines[start])
    end = _end_of_marks(lines, start) if marked else len(lines)
    return _Block(True, lines[position:end], heading)


def _is_quoted(line: str) -> bool:
    return _QUOTED.match(line) is not None and not (line.lstrip()[:1] == "|" and line.count("|") > 1)


def _end_of_marks(lines: list[str], position: int) -> int:
    """The end of a run of marked lines; blank lines inside it belong to it."""
    end = position
    while position < len(lines) and (_is_quoted(lines[position]) or not lines[position].strip()):
        if _is_quoted(lines[position]):
            end = position + 1
        position += 1
    return end


def _skip_blank(lines: list[str], position: int) -> int:
    while position < len(lines) and not lines[position].strip():
        position += 1
    return position


def _heading(lines: list[str], position: int) -> int:
    """How many lines at `position` announce a quote: an attribution, a divider or a block of header fields; 0: none."""
    line = lines[position][:_MAX_LINE].strip()
    if not line:
        return 0
    fields = _fields(lines, position)
    if fields:
        return fields
    if _RULE.fullmatch(line) and (under := _fields(lines, position + 1)):
        return under + 1
    if _DIVIDER.fullmatch(line):
        after = _skip_blank(lines, position + 1)
        return after - position + _fields(lines, after)
    return _attribution(lines, position)


def _fields(lines: list[str], position: int) -> int:
    """The length of a block From / Sent / To / Subject as Outlook and forwards write it; 0 when there is none."""
    if position >= len(lines) or not _SENDER_FIELD.match(lines[position][:_MAX_LINE]):
        return 0
    names = [bool(_OTHER_FIELD.match(line[:_MAX_LINE])) for line in lines[position + 1 : position + 8]]
    return 2 + max(index for index, hit in enumerate(names) if hit) if sum(names) >= 2 else 0


def _attribution(lines: list[str], position: int) -> int:
    """The length of "On ... wrote:", which may be folded over three lines; 0 when there is none."""
    joined = ""
    for count in (1, 2, 3):
        line = lines[position + count - 1][:_MAX_LINE].strip() if position + count <= len(lines) else ""
        if not line or _is_quoted(line) or len(joined) > 400:
            return 0
        joined = f"{joined} {line}".strip()
        if line.endswith((":", "\uff1a")):
            return count if _is_attribution(joined) else 0
    return 0


def _is_attribution(text: str) -> bool:
    # A name alone before "wrote:" may be a sentence of the writer's own.
    return len(text) <= 500 and re.search(r"\d|@", text) is not None and _ATTRIBUTION.fullmatch(text) is not None


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def _runs(texts: Iterable[str]) -> set[str]:
    """All runs of four words, and shorter lines, that the thread holds, in a form that ignores markup and line ends."""
    known: set[str] = set()
    left = _MAX_THREAD_TEXT
    for text in texts:
        text = text[: max(0, left)]
        left -= len(text)
        for variant in {text, _MARKDOWN_LINK.sub("]", text)}:
            known.update(_keys(_words(variant), _RUN))
            known.update(key for line in variant.split("\n") if (key := _short_key(_words(line))))
    return known


def _short_key(words: list[str]) -> str:
    """The key of a line that is shorter than a run: it is held when the thread has it as a line."""
    return " ".join(words) if len(words) < _RUN else ""


def _keys(words: list[str], length: int) -> list[str]:
    return [" ".join(words[index : index + length]) for index in range(len(words) - length + 1)]


def _unknown_lines(block: _Block, known: set[str]) -> list[str]:
    """The lines of a quoted block that the thread does not hold, with their heading; none when it holds them all."""
    quoted = [_words(_bare(line)) if index >= block.heading else [] for index, line in enumerate(block.lines)]
    quoted = [[] if _announces(block.lines, index) else words for index, words in enumerate(quoted)]
    covered = _covered([word for words in quoted for word in words], known)
    fresh, position = set(), 0
    for index, words in enumerate(quoted):
        if not all(covered[position : position + len(words)]) and _short_key(words) not in known:
            fresh.add(index)
        position += len(words)
    if not fresh:
        return []
    return [line for index, line in enumerate(block.lines) if _stays(index, fresh, block, quoted)]


def _stays(index: int, fresh: set[int], block: _Block, quoted: list[list[str]]) -> bool:
    """Fresh lines stay, and headings and wordless lines that stand next to one."""
    return index in fresh or index < block.heading or (not quoted[index] and bool({index - 1, index + 1} & fresh))


def _announces(lines: list[str], index: int) -> bool:
    """True for an attribution inside a quote: it quotes an older mail and is part of none."""
    line = _bare(lines[index])
    following = _bare(lines[index + 1]) if index + 1 < len(lines) else ""
    previous = _bare(lines[index - 1]) if index else ""
    return any(
        text.endswith((":", "\uff1a")) and _is_attribution(text[:501])
        for text in (line, f"{line} {following}", f"{previous} {line}")
    )


def _covered(words: list[str], known: set[str]) -> list[bool]:
    """For each word whether it stands in a run that the thread holds."""
    covered = [False] * len(words)
    for index, key in enumerate(_keys(words, _RUN)):
        if key in known:
            covered[index : index + _RUN] = [True] * _RUN
    return covered
