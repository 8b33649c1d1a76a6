"""The readable text of an HTML page.

A small scanner of its own: it reads every character once, so that a hostile page cannot make it slow, and it never
fails. It drops scripts, styles, forms and everything that a browser would not show.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

from hermes.web.clean_text import clean_line, clean_text, fold_blanks

MAX_TITLE = 300

_DROPPED = frozenset(
    (
        *("script", "style", "noscript", "template", "svg", "math", "iframe", "object", "embed", "audio", "video"),
        *("canvas", "select", "textarea", "noframes", "noembed", "xmp", "map", "dialog", "datalist"),
    )
)
"""Elements that are dropped with everything in them."""
_RAW = frozenset(("script", "style", "textarea", "title", "iframe", "noembed", "noframes", "xmp", "noscript"))
"""Elements in which tags are text; each ends only at its own end tag."""
_VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr")
)
_BLOCKS = frozenset(
    (
        *("address", "article", "aside", "blockquote", "body", "dd", "div", "dl", "dt", "fieldset", "figcaption"),
        *("figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol"),
        *("p", "pre", "section", "summary", "table", "tr", "ul", "br", "title", "head", "html"),
    )
)
_PARAGRAPHS = frozenset(("p", "h1", "h2", "h3", "h4", "h5", "h6", "table", "ul", "ol", "blockquote", "pre", "section"))

_TAG_NAME = re.compile(r"/?([a-zA-Z][^\s/>]{0,60})")
_TAG_REST = re.compile(r"(?:[^>\"']|\"[^\"]*+\"|'[^']*+')*+")
"""The attributes of a tag; a `>` in quotes does not end it."""
_ATTRIBUTE = re.compile(r"(?:[\s/]|(?<=[\"']))([^\s/>=\"']++)(?:\s*+=\s*+(\"[^\"]*+\"?|'[^']*+'?|[^\s>]*+))?+")
"""An attribute and its value; after a closing quote the next one may follow at once."""
_HIDDEN_STYLE = re.compile(
    r"display\s*+:\s*+none|visibility\s*+:\s*+hidden|font-size\s*+:\s*+0(?![.\d])|opacity\s*+:\s*+0(?![.\d])",
    re.IGNORECASE,
)
_MAX_ATTRIBUTES = 4_000
"""The characters of a tag that are searched for a sign that it is hidden."""
_LONG_NUMBER = re.compile(r"&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{7,});?")
"""Character references that are longer than any character needs."""


@dataclass(frozen=True, slots=True)
class PageText:
    """The title and the text of a page."""

    title: str
    text: str


def read_html(page: str) -> PageText:
    """Return the title and the readable text of a page, whatever it contains."""
    return _Scanner(page).read()


class _Scanner:
    def __init__(self, page: str) -> None:
        self._page = page
        self._pieces: list[str] = []
        self._title = ""
        self._skipped: tuple[str, int] | None = None
        """The element that is being dropped, and how many elements of this name are open."""

    def read(self) -> PageText:
        page, place = self._page, 0
        while (start := page.find("<", place)) >= 0:
            self._add_text(page[place:start])
            place = self._markup(start)
        self._add_text(page[place:])
        return PageText(clean_line(self._title)[:MAX_TITLE], fold_blanks(clean_text("".join(self._pieces))))

    def _markup(self, start: int) -> int:
        """Read a tag or a comment, and return the place after it."""
        page = self._page
        if page.startswith("<!--", start):
            # `<!-->` and `<!--->` are complete comments.
            return self._after("-->", start + 2)
        if page.startswith(("<!", "<?"), start):
            return self._after(">", start)
        name = _TAG_NAME.match(page, start + 1)
        if name is None:
            self._add_text("<")
            return start + 1
        rest = _TAG_REST.match(page, name.end())
        assert rest is not None  # it matches nothing, too
        end = rest.end()
        if end < len(page) and page[end] != ">":  # a quote that does not end
            end = page.find(">", end)
        if end < 0:
            return len(page)
        self._tag(name[1].lower(), page[name.end() : end], is_end=page[start + 1] == "/")
        if page[start + 1] != "/" and name[1].lower() in _RAW:
            return self._raw(name[1].lower(), end + 1)
        return end + 1

    def _after(self, mark: str, place: int) -> int:
        found = self._page.find(mark, place)
        return len(self._page) if found < 0 else found + len(mark)

    def _raw(self, name: str, place: int) -> int:
        """Read the content of an element without tags, and return the place of its end tag."""
        found = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(self._page, place)
        end = len(self._page) if found is None else found.start()
        if name == "title" and not self._title and self._skipped is None:
            self._title = _unescape(self._page[place : min(end, place + 4 * MAX_TITLE)])
        return end

    def _tag(self, name: str, attributes: str, *, is_end: bool) -> None:
        if self._skipped is not None:
            self._skip(name, attributes, is_end=is_end)
            return
        if (
            not is_end
            and not _is_void(name, attributes)
            and (name in _DROPPED or _is_hidden(attributes[:_MAX_ATTRIBUTES]))
        ):
            self._skipped = name, 1
        elif name in _BLOCKS:
            self._pieces.append("\n\n" if name in _PARAGRAPHS else "\n")
            if name == "li" and not is_end:
                self._pieces.append("- ")
        elif name in ("td", "th") and is_end:
            self._pieces.append(" | ")

    def _skip(self, name: str, attributes: str, *, is_end: bool) -> None:
        assert self._skipped is not None
        skipped, depth = self._skipped
        if name != skipped or _is_void(name, attributes):
            return
        if name == "p" and not is_end:  # a paragraph ends where the next one begins
            self._skipped = None
            self._tag(name, attributes, is_end=is_end)
        else:
            depth += -1 if is_end else 1
            self._skipped = (skipped, depth) if depth else None

    def _add_text(self, text: str) -> None:
        if text and self._skipped is None:
            # Outside of tags, a line break is a blank.
            self._pieces.append(_unescape(text).replace("\n", " ").replace("\r", " "))


def _is_hidden(attributes: str) -> bool:
    """Whether a browser does not show an element, by its own attributes; style sheets are not read."""
    for found in _ATTRIBUTE.finditer(attributes):
        name, value = found[1].lower(), _unescape(found[2] or "").lstrip("\"'")
        if name == "hidden" or (name == "aria-hidden" and value.lower().startswith("true")):
            return True
        if name == "style" and _HIDDEN_STYLE.search(value) is not None:
            return True
    return False


def _is_void(name: str, attributes: str) -> bool:
    """Whether an element has no content; a slash at its end means that only in pictures and formulas."""
    return name in _VOID or (name in ("svg", "math") and attributes.endswith("/"))


def _unescape(text: str) -> str:
    return html.unescape(_LONG_NUMBER.sub("\ufffd", text)) if "&" in text else text
