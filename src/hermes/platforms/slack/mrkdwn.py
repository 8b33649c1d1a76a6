"""Slack's own mark-up: Markdown is converted to it, and messages of people are read from it."""

from __future__ import annotations

import re

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]{1,4000}`", re.DOTALL)
_MENTION = re.compile(r"<@[UW][A-Z0-9]{1,30}>")
_LINK = re.compile(r"!?\[([^\[\]\n]{1,500})\]\((https?://[^\s()<>]{1,2000}|mailto:[^\s()<>]{1,500})\)")
_HEADING = re.compile(r"^ {0,3}#{1,6} +([^\n]*?)[ #]*$", re.MULTILINE)
_BULLET = re.compile(r"^([ \t]{0,20})[-*+] +(?=\S)", re.MULTILINE)
_BOLD = re.compile(r"(\*\*|__)(?=\S)([^\n]{1,2000}?)(?<=\S)\1")
_ITALIC = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]{1,2000}?)(?<=[^\s*])\*(?![\w*])")
_STRUCK = re.compile(r"~~(?=\S)([^\n~]{1,2000}?)(?<=\S)~~")
_QUOTE = re.compile(r"^&gt; ?", re.MULTILINE)
_BOLD_MARK = "\x00"
_MARKED = re.compile(r"<([^<>\n]{1,3000})>")


def to_mrkdwn(text: str) -> str:
    """Return Markdown as Slack shows it; nothing in the text can notify a channel."""
    text = text.replace(_BOLD_MARK, "")
    parts, end = [], 0
    for code in _CODE.finditer(text):
        parts += [_convert(text[end : code.start()]), escape(_without_language(code[0]))]
        end = code.end()
    return "".join([*parts, _convert(text[end:])])


def escape(text: str) -> str:
    """Return a text in which Slack finds no mark-up in angle brackets."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def shown_length(text: str) -> int:
    """Return the most characters that a text can have after the conversion."""
    return len(text) + 4 * text.count("&") + 3 * (text.count("<") + text.count(">"))


def to_plain(text: str, bot_id: str) -> str:
    """Return the text of a person's message: without mentions of the bot, links and names as people see them."""
    text = _MARKED.sub(lambda found: _plain_mark(found[1], bot_id), text)
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").strip()


def mentions(text: str, bot_id: str) -> bool:
    """Return whether a message names the bot."""
    return bool(bot_id) and (f"<@{bot_id}>" in text or f"<@{bot_id}|" in text)


def _convert(text: str) -> str:
    kept: list[str] = _MENTION.findall(text)
    text = escape(text)
    for each in kept:
        text = text.replace(escape(each), each)
    text = _QUOTE.sub("> ", text)
    text = _LINK.sub(lambda found: f"<{found[2]}|{found[1].replace('|', '¦')}>", text)
    text = _HEADING.sub(lambda found: _heading(found[1]), text)
    text = _BULLET.sub(r"\1• ", text)
    text = _BOLD.sub(lambda found: f"{_BOLD_MARK}{found[2]}{_BOLD_MARK}", text)
    text = _ITALIC.sub(r"_\1_", text)
    text = _STRUCK.sub(r"~\1~", text)
    return text.replace(_BOLD_MARK, "*")


def _heading(title: str) -> str:
    title = title.replace("**", "").strip()
    return f"{_BOLD_MARK}{title}{_BOLD_MARK}" if title else ""


def _without_language(code: str) -> str:
    """Return a block of code without the language, which Slack would show as its first line."""
    return re.sub(r"\A```[\w+#.-]{1,30}\n", "```\n", code)


def _plain_mark(mark: str, bot_id: str) -> str:
    address, _, label = mark.partition("|")
    if address.startswith("@"):
        return "" if address[1:] == bot_id else f"@{label or address[1:]}"
    if address.startswith("#"):
        return f"#{label or address[1:]}"
    if address.startswith("!"):
        return label or f"@{address[1:].partition('^')[0]}"
    address = address.removeprefix("mailto:")
    return f"{label} ({address})" if label and label != address else address
