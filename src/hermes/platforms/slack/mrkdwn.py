"""Slack's own mark-up: Markdown is converted to it, and messages of people are read from it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f]")
_INLINE_CODE = re.compile(r"`[^`\n]{1,4000}`")
_MENTION = re.compile(r"<@([UW][A-Z0-9]{1,30})>")
_LINK = re.compile(r"!?\[([^\[\]\n]{1,500})\]\((https?://[^\s()<>|]{1,2000}|mailto:[^\s()<>|]{1,500})\)")
_HEADING = re.compile(r"^ {0,3}#{1,6} ([^\n]*)$", re.MULTILINE)
_BULLET = re.compile(r"^([ \t]{0,20})[-*+] +(?=\S)", re.MULTILINE)
_STRONG = re.compile(r"\*{3}(?=\S)([^*\n]{1,2000})(?<=\S)\*{3}")
_BOLD = re.compile(
    r"\*\*(?=\S)((?:(?!\*\*)[^\n]){1,2000})(?<=\S)\*\*|(?<!\w)__(?=\S)((?:(?!__)[^\n]){1,2000})(?<=\S)__(?!\w)"
)
_ITALIC = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]{1,2000}?)(?<=[^\s*])\*(?![\w*])")
_STRUCK = re.compile(r"~~(?=\S)([^\n~]{1,2000}?)(?<=\S)~~")
_QUOTE = re.compile(r"^(?:&gt;)+ ?", re.MULTILINE)
_STAR = "\x01"
"""Stands for the stars of bold text, which are not those of italic text."""
_KEPT = re.compile("\x00([0-9]+)\x00")
_MARKED = re.compile(r"<([^<>\n]{1,3000})>")
_NAMED = re.compile(r"<@([UW][A-Z0-9]{1,30})[|>]")


def to_mrkdwn(text: str) -> str:
    """Return Markdown as Slack shows it; nothing in the text can notify a channel."""
    return "\n".join(_blocks(_CONTROL.sub("", text)))


def escape(text: str) -> str:
    """Return a text in which Slack finds no mark-up in angle brackets."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def shown_length(text: str) -> int:
    """Return the most characters that a text can have after the conversion."""
    escaped = 4 * text.count("&") + 3 * (text.count("<") + text.count(">"))
    return len(text) + escaped + text.count("```") + text.count("~~~")


def to_plain(text: str, bot_id: str, names: Mapping[str, str]) -> str:
    """Return the text of a person's message: without mentions of the bot, with links and names as people see them."""
    text = _MARKED.sub(lambda found: _plain_mark(found[1], bot_id, names), text)
    text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").replace("\x00", "")
    return text.encode("utf-8", "replace").decode().strip()


def mentions(text: str, user: str) -> bool:
    """Return whether a message names a user."""
    return bool(user) and (f"<@{user}>" in text or f"<@{user}|" in text)


def mentioned_users(text: str, most: int) -> list[str]:
    """Return the first users that a message names, each once."""
    found: dict[str, None] = {}
    for each in _NAMED.finditer(text):
        found[each[1]] = None
        if len(found) == most:
            break
    return list(found)


def _blocks(text: str) -> Iterator[str]:
    """Yield text and blocks of code, converted."""
    lines: list[str] = []
    marker = ""
    for line in text.split("\n"):
        fence = _FENCE.match(line)
        if not marker and fence and not ("`" in fence[2] and fence[1][0] == "`"):
            if lines:
                yield _convert("\n".join(lines))
            marker, lines = fence[1], []
        elif marker and fence and fence[1].startswith(marker) and not fence[2].strip():
            yield _block(lines)
            marker, lines = "", []
        else:
            lines.append(line)
    if marker:
        yield _block(lines)
    elif lines:
        yield _convert("\n".join(lines))


def _block(lines: list[str]) -> str:
    """Return a block of code; Slack knows no languages, and three backticks inside would end it."""
    content = escape("\n".join(lines)).replace("```", "``\u200b`")
    return f"```\n{content}\n```"


def _convert(text: str) -> str:
    kept: list[str] = []

    def keep(mark: str) -> str:
        kept.append(mark)
        return f"\x00{len(kept) - 1}\x00"

    text = _INLINE_CODE.sub(lambda found: keep(escape(found[0])), text)
    text = _MENTION.sub(lambda found: keep(found[0]), text)
    text = _LINK.sub(lambda found: keep(f"<{escape(found[2])}|{escape(found[1]).replace('|', '¦')}>"), text)
    text = _QUOTE.sub("> ", escape(text))
    text = _HEADING.sub(lambda found: _heading(found[1]), text)
    text = _BULLET.sub(r"\1• ", text)
    text = _STRONG.sub(rf"{_STAR}_\1_{_STAR}", text)
    text = _BOLD.sub(lambda found: f"{_STAR}{found[1] or found[2]}{_STAR}", text)
    text = _ITALIC.sub(r"_\1_", text)
    text = _STRUCK.sub(r"~\1~", text)
    text = text.replace(_STAR, "*")
    for _ in range(3):  # code inside the label of a link is kept twice
        text = _KEPT.sub(lambda found: kept[int(found[1])], text)
    return text


def _heading(title: str) -> str:
    title = title.strip()
    if title.endswith("#"):
        rest = title.rstrip("#")
        title = rest if rest[-1:] in (" ", "") else title
    title = title.replace("**", "").strip()
    return f"{_STAR}{title}{_STAR}" if title else ""


def _plain_mark(mark: str, bot_id: str, names: Mapping[str, str]) -> str:
    address, _, label = mark.partition("|")
    if address.startswith("@"):
        user = address[1:]
        return "" if user == bot_id else f"@{label or names.get(user) or user}"
    if address.startswith("#"):
        return f"#{label or address[1:]}"
    if address.startswith("!"):
        return label or f"@{address[1:].partition('^')[0]}"
    address = address.removeprefix("mailto:")
    return f"{label} ({address})" if label and label != address else address
