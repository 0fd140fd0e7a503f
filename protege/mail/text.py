"""HTML to the text that a reader of the mail would have seen."""

import html as entities
import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote

from inscriptis.css_profiles import CSS_PROFILES
from inscriptis.html_engine import Inscriptis
from inscriptis.model.config import ParserConfig
from lxml import etree
from lxml.html import HtmlElement, HTMLParser, document_fromstring

from protege.mail import limits
from protege.mail.quotes import readable
from protege.untrusted import one_line, storable

__all__ = ["html_to_text", "picture_marker", "readable"]

_UNSEEN_TAGS = {"style", "script", "head", "title", "template", "noscript", "noframes", "iframe", "object", "embed"}
_UNSEEN_TAGS |= {"svg", "math", "canvas", "audio", "video", "select", "textarea"}
_UNSEEN_STYLE = re.compile(
    r"display:none|visibility:(?:hidden|collapse)|mso-hide:all|(?:^|;)opacity:0(?:\.0+)?(?![.\d])|color:transparent"
    r"|text-indent:-\d{3,}|(?:left|top):-\d{3,}|clip:rect\(0|(?:^|;)zoom:0(?![.\d])"
)
_FLAT_STYLE = re.compile(r"(?:^|;)(?:max-height|max-width|height|width):0(?:\.0+)?(?:px|pt|em|rem|%)?(?:;|!|$)")
_NO_SIZE = re.compile(r"(?:^|;)font-size:0(?:\.0+)?(?:px|pt|em|rem|%)?(?:;|!|$)")
_CLASS_OR_ID = re.compile(r"^(?:[a-z]+[0-9]?)?([.#][\w-]+)$")
_SENTINEL = re.compile("[\ue000\ue001]")
_QUOTE = re.compile("[ \t]*\ue000([0-9]+)\ue001[ \t]*")
_MAX_BLOCKQUOTES = 200
_LAYOUT = ParserConfig(css=CSS_PROFILES["strict"], display_links=False, display_images=False)


def html_to_text(html: str, pictures: Mapping[str, str] | None = None) -> str:
    """The visible text of an HTML mail; quoted blocks get `> ` before each line. Never raises.

    Style, scripts and elements hidden by attribute or style are left out. A picture that came with the mail leaves a
    marker; `pictures` maps Content-IDs to file names. When the HTML cannot be laid out, its tags are stripped.
    """
    html = _SENTINEL.sub("\ufffd", storable(html[: limits.MAX_TEXT_BYTES]))
    try:
        text = _laid_out(html, pictures or {})
    except Exception:  # lxml on what is no HTML, inscriptis on deep nesting (RecursionError)
        text = ""
    return tidy(text or _stripped(html))


def picture_marker(name: str) -> str:
    """What stands in the text where a picture stood."""
    name = one_line(storable(name), limits.FILENAME_LENGTH)
    return f"[picture: {name}]" if name else "[picture]"


def tidy(text: str) -> str:
    """`text` without blanks at line ends, no-break spaces and runs of blank lines."""
    lines = (line.rstrip() for line in storable(text).replace("\xa0", " ").split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


def _laid_out(html: str, pictures: Mapping[str, str]) -> str:
    parser = HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    tree = document_fromstring(html.encode("utf-8"), parser=parser)
    _remove_unseen(tree)
    _mark_pictures(tree, pictures)
    return _render_with_quotes(tree)


def _remove_unseen(tree: HtmlElement) -> None:
    hidden_names, sized = _hidden_by_sheet(tree), _holders_of_sizes(tree)
    for element in list(tree.iter(etree.Element)):
        if _is_unseen(element, hidden_names) or (_has_no_size(element) and element not in sized):
            _empty(element)


def _empty(element: HtmlElement, text: str = "") -> None:
    """Leave `text` in the element's place; cutting it out of the tree would be quadratic in its siblings."""
    element.clear(keep_tail=True)
    element.tag, element.text = "span", text or None


def _is_unseen(element: HtmlElement, hidden_names: set[str]) -> bool:
    if element.tag in _UNSEEN_TAGS or "hidden" in element.attrib or element.get("type", "").lower() == "hidden":
        return True
    names = {f".{name}" for name in element.get("class", "").split()} | {f"#{element.get('id', '')}"}
    return bool(hidden_names & names) or _hides(_compact(element.get("style", "")))


def _hides(style: str) -> bool:
    flat = "overflow:hidden" in style and _FLAT_STYLE.search(style)
    return bool(flat or _UNSEEN_STYLE.search(style))


def _has_no_size(element: HtmlElement) -> bool:
    return _NO_SIZE.search(_compact(element.get("style", ""))) is not None


def _holders_of_sizes(tree: HtmlElement) -> set[HtmlElement]:
    """All elements with something of a size of its own in them: layout tables of size 0 hold visible text."""
    holders: set[HtmlElement] = set()
    for element in tree.iter(etree.Element):
        if "font-size:" in _compact(element.get("style", "")) and not _has_no_size(element):
            while element is not None and element not in holders:
                holders.add(element)
                element = element.getparent()
    return holders


def _compact(style: str) -> str:
    return "".join(style.lower().split())


def _hidden_by_sheet(tree: HtmlElement) -> set[str]:
    """Classes and ids that a style sheet hides outside of media rules; those depend on the reader's screen."""
    sheets = " ".join(element.text or "" for element in tree.iter("style"))
    hidden: set[str] = set()
    for selectors, style in _rules(re.sub(r"<!--|-->", " ", sheets)):
        if _UNSEEN_STYLE.search(_compact(style)):
            hidden.update(found[1] for one in selectors.split(",") if (found := _CLASS_OR_ID.match(one.strip())))
    return hidden


def _rules(sheet: str) -> Iterator[tuple[str, str]]:
    """The (selectors, declarations) of the rules at the top level of a style sheet."""
    depth, selectors, start = 0, "", 0
    for brace in re.finditer(r"[{}]", sheet):
        if brace[0] == "{":
            selectors = sheet[start : brace.start()] if depth == 0 else selectors
            depth += 1
        elif depth > 0:
            depth -= 1
            if depth == 0 and not selectors.strip().startswith("@"):
                yield selectors, sheet[start : brace.start()]
        start = brace.end()


def _mark_pictures(tree: HtmlElement, pictures: Mapping[str, str]) -> None:
    """Replace pictures that came with the mail by markers; remote ones, mostly counters, leave nothing."""
    for image in list(tree.iter("img")):
        source = image.get("src", "").strip()
        if source[:5].lower() == "data:":
            marker = picture_marker(image.get("alt", ""))
        elif source[:4].lower() == "cid:":
            marker = picture_marker(pictures.get(unquote(source[4:]), "") or image.get("alt", ""))
        else:
            marker = ""
        _empty(image, marker)


def _render_with_quotes(tree: HtmlElement) -> str:
    """The text of the tree; quoted blocks are laid out one by one and put back with `> ` before their lines."""
    quotes: list[str] = []
    blocks = list(tree.iter("blockquote"))[:_MAX_BLOCKQUOTES]
    for block in reversed(blocks):  # the innermost come last in document order
        place = etree.Element("p")
        place.text = f"\ue000{len(quotes)}\ue001"
        place.tail, block.tail = block.tail, None
        parent = block.getparent()
        if parent is None:
            continue
        parent.replace(block, place)
        block.tag = "div"
        quotes.append(_restored(_render(block), quotes))
    return _restored(_render(tree), quotes)


def _render(element: HtmlElement) -> str:
    return str(Inscriptis(element, _LAYOUT).get_text()).strip("\n")


def _restored(text: str, quotes: list[str]) -> str:
    return "\n".join(_quoted(quotes, line) for line in text.split("\n"))


def _quoted(quotes: list[str], line: str) -> str:
    place = _QUOTE.fullmatch(line)
    if place is None:
        return _QUOTE.sub(lambda found: "\n" + _prefixed(quotes[int(found[1])]) + "\n", line)
    return _prefixed(quotes[int(place[1])])


def _prefixed(text: str) -> str:
    return "\n".join(f"> {line}" if line[:1] != ">" else f">{line}" for line in tidy(text).split("\n"))


def _stripped(html: str) -> str:
    """The text between the tags, without elements that are not seen: linear, for HTML that nothing else reads."""
    return entities.unescape("".join(_texts(html)))


def _texts(html: str) -> Iterator[str]:
    position = 0
    while (start := html.find("<", position)) >= 0:
        yield html[position:start]
        end = html.find(">", start)
        if end < 0:
            return
        tag = html[start + 1 : end]
        name = re.match(r"/?([a-zA-Z][a-zA-Z0-9]*)", tag)
        position = end + 1
        if html.startswith("<!--", start):
            close = html.find("-->", start)
            position = close + 3 if close >= 0 else len(html)
        elif name is not None and tag[0] != "/" and tag[-1] != "/" and _is_unseen_tag(name[1].lower(), tag):
            position = _end_of_element(html, name[1], position)
        elif name is not None and name[1].lower() in ("p", "div", "br", "tr", "li", "td", "table", "blockquote"):
            yield "\n" if name[1].lower() != "td" else " "
    yield html[position:]


def _is_unseen_tag(name: str, tag: str) -> bool:
    if name in ("br", "img", "hr", "input", "meta", "link", "body", "html"):
        return False
    style = re.search(r"""style\s*=\s*(?:"([^"]*)"|'([^']*)'|(\S+))""", tag[:2_000], re.IGNORECASE)
    declared = _compact(next(filter(None, style.groups()), "")) if style else ""
    return (
        name in _UNSEEN_TAGS
        or re.search(r"\shidden(?:[\s=]|$)", tag) is not None
        or bool(_UNSEEN_STYLE.search(declared) or _NO_SIZE.search(declared))
    )


def _end_of_element(html: str, name: str, position: int) -> int:
    """Where the element that began before `position` ends, counting elements of the same name inside it."""
    depth = 1
    for tag in re.compile(rf"<(/?){name}(?![a-zA-Z0-9])[^>]*>", re.IGNORECASE).finditer(html, position):
        depth += -1 if tag[1] else 1
        if depth == 0:
            return tag.end()
    return len(html)
