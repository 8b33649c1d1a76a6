"""The Markdown of models as the HTML that Telegram understands."""

from __future__ import annotations

import html
import re
from typing import NamedTuple

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([\w+#.-]{0,40})[^\n]*$")
_CODE = re.compile(r"(?<!`)(`{1,8})(?!`)([^`\n]{1,4000})\1(?!`)")
_TAG = re.compile(r"<(/?)([bis])>")
_LINK = re.compile(r"\[([^\[\]\n]{1,500})\]\((https?://[^\s()<>]{1,1000})\)")
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(\S[^\n]*)$")
_STYLES = (
    (re.compile(r"\*\*(?=\S)([^*\n]{1,2000})(?<=\S)\*\*"), "b"),
    (re.compile(r"(?<![\w_])__(?=\S)([^_\n]{1,2000})(?<=\S)__(?![\w_])"), "b"),
    (re.compile(r"~~(?=\S)([^~\n]{1,2000})(?<=\S)~~"), "s"),
    (re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]{1,2000})(?<=[^\s*])\*(?![\w*])"), "i"),
    (re.compile(r"(?<![\w_])_(?=[^\s_])([^_\n]{1,2000})(?<=[^\s_])_(?![\w_])"), "i"),
)
_CONTROLS = {number: None for number in (*range(32), 127) if chr(number) not in "\t\n\r"}
_MARK = re.compile("\ue000([0-9]{1,6})\ue001")


class _Piece(NamedTuple):
    """A finished piece of HTML, which a mark stands for in the text."""

    made: str
    shown: str = ""
    """What people see of it."""
    source: str = ""
    """What the text had there."""


def utf16_length(text: str) -> int:
    """Return the length of a text in the units in which Telegram counts."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def fitting(text: str, most: int) -> str:
    """Return the beginning of a text that has at most so many units."""
    units = text.encode("utf-16-le")[: 2 * most]
    return units.decode("utf-16-le", "ignore")


def sendable(text: str) -> str:
    """Return a text as Telegram takes it: valid Unicode without control characters."""
    return text.encode("utf-8", "replace").decode().translate(_CONTROLS)


def to_html(text: str) -> str:
    """Return a text with its code, headings, links and emphasis as HTML; everything else is shown as it is."""
    text = text.replace("\ue000", "").replace("\ue001", "")
    done: list[_Piece] = []
    lines: list[str] = []
    code: list[str] | None = None
    marker = language = ""
    for line in text.split("\n"):
        fence = _FENCE.match(line)
        if code is not None and line.strip().startswith(marker) and not line.strip().strip(marker[0]):
            lines.append(_keep(done, _Piece(_block(code, language))))
            code = None
        elif code is not None:
            code.append(line)
        elif fence:
            code, marker, language = [], fence[1], fence[2]
        else:
            lines.append(_line(line, done))
    if code is not None:
        lines.append(_keep(done, _Piece(_block(code, language))))
    return _MARK.sub(lambda match: done[int(match[1])].made, "\n".join(lines))


def _line(line: str, done: list[_Piece]) -> str:
    line = _CODE.sub(lambda match: _keep(done, _code(match[2].strip(), match[0])), line)
    line = _LINK.sub(lambda match: _keep(done, _link(match[1], match[2], done)), line)
    heading = _HEADING.match(line)
    line = _emphasis(html.escape(heading[1] if heading else line, False))
    return f"<b>{line.replace('<b>', '').replace('</b>', '')}</b>" if heading else line


def _emphasis(escaped: str) -> str:
    for pattern, tag in _STYLES:
        escaped = pattern.sub(lambda match, tag=tag: _styled(match, tag), escaped)  # type: ignore[misc]
    return escaped


def _styled(match: re.Match[str], tag: str) -> str:
    """Return the styled text; tags that a style would cut are left as they were written."""
    inner = match[1]
    opened = _TAG.findall(inner)
    depth = 0
    for closing, _ in opened:
        depth += -1 if closing else 1
        if depth < 0:
            return match[0]
    return match[0] if depth else f"<{tag}>{inner}</{tag}>"


def _code(shown: str, source: str) -> _Piece:
    return _Piece(f"<code>{html.escape(shown, False)}</code>", shown, source)


def _link(label: str, address: str, done: list[_Piece]) -> _Piece:
    """Return a link; Telegram shows no code in its label, so that the label has the text of the code."""
    label = _MARK.sub(lambda match: done[int(match[1])].shown, label)
    address = _MARK.sub(lambda match: done[int(match[1])].source, address)
    return _Piece(f'<a href="{html.escape(address)}">{html.escape(label, False) or html.escape(address)}</a>')


def _block(lines: list[str], language: str) -> str:
    code = html.escape("\n".join(lines), False)
    if language:
        return f'<pre><code class="language-{html.escape(language)}">{code}</code></pre>'
    return f"<pre>{code}</pre>"


def _keep(done: list[_Piece], piece: _Piece) -> str:
    """Put a finished piece away and return the mark that stands for it."""
    done.append(piece)
    return f"\ue000{len(done) - 1}\ue001"
