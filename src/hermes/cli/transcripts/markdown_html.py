"""Markdown of a model as safe HTML, in the colours of the terminal: nothing in it loads, runs or leaves its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from urllib.parse import urlsplit

from markdown_it.token import Token
from rich.style import Style
from rich.text import Text

from hermes.cli.display.markdown.code import CodeHighlighter
from hermes.cli.display.markdown.elements import parse

MAX_CHARACTERS = 200_000
"""A longer text is shown as it is."""

_SCHEMES = frozenset(("http", "https", "mailto"))
_HEADING_BELOW = 3
"""The page itself has headings of three levels."""
_LAST_HEADING = 6
_PAIRS = {
    **{name: name for name in ("em", "strong", "s", "blockquote", "tr", "th", "td", "thead", "tbody")},
    "ordered_list": "ol",
    "bullet_list": "ul",
    "list_item": "li",
}
_CLASSES = {"bold": "b", "italic": "i", "dim": "d"}


def render_markdown(text: str) -> str:
    """Return a text as HTML."""
    if len(text) > MAX_CHARACTERS:
        return f'<div class="text" dir="auto">{escape(text)}</div>'
    return f'<div class="md" dir="auto">{"".join(_blocks(parse(text)))}</div>'


def _blocks(tokens: Sequence[Token]) -> Iterator[str]:
    """Yield the HTML of blocks; only the tags below ever come from here, and all text is escaped."""
    for token in tokens:
        name, _, end = token.type.rpartition("_")
        if token.type in ("fence", "code_block"):
            yield _code(token.content, token.info.split()[0] if token.info.strip() else "")
        elif token.type == "inline":
            yield "".join(_inline(token.children or ()))
        elif token.type == "hr":
            yield "<hr>\n"
        elif token.type == "html_block":
            yield f"<p>{escape(token.content)}</p>\n"
        elif name == "paragraph":
            yield "" if token.hidden else "<p>" if end == "open" else "</p>\n"
        elif name == "heading":
            tag = f"h{min(int(token.tag[1:]) + _HEADING_BELOW, _LAST_HEADING)}"
            yield f"<{tag}>" if end == "open" else f"</{tag}>\n"
        elif name == "table":
            yield '<div class="wide"><table>' if end == "open" else "</table></div>\n"
        elif name in _PAIRS:
            yield _pair(token, _PAIRS[name], is_open=end == "open")


def _pair(token: Token, tag: str, *, is_open: bool) -> str:
    if not is_open:
        return f"</{tag}>"
    start = token.attrs.get("start")
    align = str(token.attrs.get("style", "")).removeprefix("text-align:")
    attributes = f' start="{int(start)}"' if tag == "ol" and start is not None else ""
    if align in ("left", "center", "right"):
        attributes += f' class="{align}"'
    return f"<{tag}{attributes}>"


def _inline(tokens: Sequence[Token]) -> Iterator[str]:
    opened: list[bool] = []
    """For each open link, whether it is one in the page."""
    for token in tokens:
        name, _, end = token.type.rpartition("_")
        match token.type:
            case "text" | "html_inline":
                yield escape(token.content)
            case "code_inline":
                yield f"<code>{escape(token.content)}</code>"
            case "softbreak" | "hardbreak":
                yield "<br>\n"
            case "image":
                yield f"[image: {escape(token.content or str(token.attrs.get('src', '')))}]"
            case "link_open":
                address = str(token.attrs.get("href", ""))
                opened.append(_is_safe(address))
                yield f'<a href="{escape(address)}" rel="noopener noreferrer nofollow">' if opened[-1] else ""
            case "link_close":
                yield "</a>" if opened and opened.pop() else ""
            case _ if name in _PAIRS:
                yield f"<{_PAIRS[name]}>" if end == "open" else f"</{_PAIRS[name]}>"
            case _:
                yield escape(token.content)


def _is_safe(address: str) -> bool:
    try:
        return urlsplit(address).scheme in _SCHEMES
    except ValueError:
        return False


def _code(code: str, language: str) -> str:
    lines = CodeHighlighter(language).highlight(code.removesuffix("\n"))
    return f"<pre><code>{chr(10).join(map(_coloured, lines))}</code></pre>\n"


def _coloured(line: Text) -> str:
    parts, end = [], 0
    for span in line.spans:
        parts.append(escape(line.plain[end : span.start]))
        inner = escape(line.plain[span.start : span.end])
        classes = _classes(span.style) if isinstance(span.style, Style) else ""
        parts.append(f'<span class="{classes}">{inner}</span>' if classes and inner.strip() else inner)
        end = span.end
    return "".join([*parts, escape(line.plain[end:])])


def _classes(style: Style) -> str:
    names = [short for name, short in _CLASSES.items() if getattr(style, name)]
    return " ".join([*names, *([style.color.name] if style.color else [])])
