"""The recap: the last messages of a resumed conversation, in short.

`build_recap` chooses the content from the history alone; `draw_panel` draws it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hermes.agent.compression.summary import MARK
from hermes.cli.chat.terminal.style import GOLD, GREEN, colour_text, dim
from hermes.cli.display.terminal import clip, display_width, graphemes, pad
from hermes.cli.display.wrapping import wrap_text
from hermes.config import DisplayConfig
from hermes.phrases import plural
from hermes.state.messages.partial import PARTIAL
from hermes.state.rows import AnyRow, count_tool_calls, tool_names

TITLE = "Previous Conversation"
MAX_WIDTH = 100
MAX_NAMES = 4
LEAST_FOR_MARGIN = 40
"""If the panel is narrower, further lines start below the label instead of to its right."""
DOTS = "..."

COMPRESSED = "older messages were replaced by a summary"

LABELS = {"user": ("●", "You:", GOLD), "assistant": ("◆", "Hermes:", GREEN), "system": ("…", "Earlier:", GREEN)}

_UNFINISHED = ("interrupted", PARTIAL)
_REASONING = frozenset(("think", "thinking", "reasoning", "reasoning_scratchpad", "thought"))
_TAG = re.compile(
    r"<(?P<closes>/?)(?P<name>think|thinking|reasoning|reasoning_scratchpad|thought"
    r"|tool_calls?|tool_result|function_calls?)\b[^<>]{0,200}>",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A shortened message."""

    role: Literal["user", "assistant", "system"]
    text: str


@dataclass(frozen=True, slots=True)
class Recap:
    """The end of a conversation, and the number of messages before it."""

    entries: Sequence[Entry] = ()
    earlier: int = 0


def build_recap(history: Sequence[AnyRow], limits: DisplayConfig) -> Recap:
    """Build the recap of a history in the form of `get_messages_as_conversation`."""
    start = _start_of_last(history, limits.resume_exchanges)
    entries = build_entries(history[start:], limits)
    if any(map(_is_summary, history[:start])):
        entries.insert(0, Entry("system", COMPRESSED))
    return Recap(entries, start)


def build_entries(rows: Sequence[AnyRow], limits: DisplayConfig) -> list[Entry]:
    """Return shortened messages; consecutive tool calls without text become one entry."""
    entries: list[Entry] = []
    calls: list[object] = []

    def close_calls() -> None:
        if calls and not limits.resume_skip_tool_only:
            entries.append(Entry("assistant", format_tool_note(calls)))
        calls.clear()

    for row in rows:
        if row["role"] == "user":
            close_calls()
            if text := message_text(row["content"]).strip():
                entries.append(Entry("user", shorten(text, limits.resume_max_user_chars)))
        elif _is_summary(row):
            close_calls()
            entries.append(Entry("system", COMPRESSED))
        elif row["role"] == "assistant":
            text = _format_answer(row, limits)
            if not text:
                calls += row.get("tool_calls") or ()
                continue
            close_calls()
            entries.append(Entry("assistant", f"{text} {format_tool_note(row.get('tool_calls'))}".strip()))
    close_calls()
    return entries


def draw_panel(recap: Recap, width: int) -> list[str]:
    """Draw the recap in a dim frame of at most `width` columns; no lines if the recap is empty."""
    if not recap.entries:
        return []
    inner = max(12, min(width, MAX_WIDTH) - 4)
    body: list[tuple[str, str]] = []
    if recap.earlier:
        note = f"{DOTS} {plural(recap.earlier, 'earlier message')} {DOTS}"
        body += [("", line) for line in wrap_text(note, inner)]
        body.append(("", ""))
    for entry in recap.entries:
        body += _entry_lines(entry, inner)
    head = clip(f"─ {TITLE} ", inner + 2)
    lines = [dim(f"╭{head}{'─' * (inner + 2 - display_width(head))}╮")]
    side = dim("│")
    lines += [f"{side} {mark}{dim(pad(text, inner - bool(mark)))} {side}" for mark, text in body]
    return [*lines, dim(f"╰{'─' * (inner + 2)}╯")]


def strip_reasoning(text: str) -> str:
    """Remove the model's thinking, and tool calls written as text, from an answer."""
    tags = list(_TAG.finditer(text)) if "<" in text else []
    last_close = {_kind(tag): number for number, tag in enumerate(tags) if tag["closes"]}
    kept: list[str] = []
    at, inside = 0, ""
    for number, tag in enumerate(tags):
        kind = _kind(tag)
        if inside:
            if tag["closes"] and kind == inside:
                at, inside = tag.end(), ""
            continue
        if tag["closes"] and kind in _REASONING:
            kept = []  # everything before the closing tag was thinking
        else:
            kept.append(text[at : tag.start()])
            if not tag["closes"] and last_close.get(kind, -1) > number:
                inside = kind
            elif not tag["closes"] and kind in _REASONING:
                return "".join(kept).strip()
        at = tag.end()
    return "".join([*kept, text[at:]]).strip()


def _kind(tag: re.Match[str]) -> str:
    return tag["name"].lower()


def format_tool_note(tool_calls: object) -> str:
    """Format `[3 tool calls: terminal, web_search]`; empty if there are none."""
    count = count_tool_calls(tool_calls or None)
    if not count:
        return ""
    names = list(dict.fromkeys(tool_names(tool_calls))) or ["unknown"]
    more = [DOTS] if len(names) > MAX_NAMES else []
    return f"[{plural(count, 'tool call')}: {', '.join([*names[:MAX_NAMES], *more])}]"


def message_text(content: object) -> str:
    """Return the text of a message; an image becomes `[image]`."""
    if content is None or isinstance(content, str):
        return content or ""
    parts = content if isinstance(content, list) else [content]
    return " ".join(text for part in parts if (text := _part_text(part)))


def shorten(text: str, limit: int) -> str:
    """Cut a text to `limit` visible characters, ending with dots if something was cut."""
    if len(text) <= limit:
        return text
    characters = list(graphemes(text))
    return text if len(characters) <= limit else "".join(characters[:limit]).rstrip() + DOTS


def _is_summary(row: AnyRow) -> bool:
    return bool(row["role"] == "system") and message_text(row["content"]).startswith(MARK)


def _start_of_last(history: Sequence[AnyRow], exchanges: int) -> int:
    """Return the index at which the last exchanges start; user messages without an answer join the next one."""
    starts: list[int] = []
    is_answered = True
    for place, row in enumerate(history):
        if row["role"] == "user" and is_answered:
            starts.append(place)
            is_answered = False
        elif row["role"] in ("assistant", "tool"):
            is_answered = True
    return starts[-exchanges] if len(starts) > exchanges else 0


def _format_answer(row: AnyRow, limits: DisplayConfig) -> str:
    """Shorten an answer, first by lines, then by characters."""
    text = strip_reasoning(message_text(row["content"]))
    lines = text.splitlines()
    if len(lines) > limits.resume_max_assistant_lines:
        text = "\n".join(lines[: limits.resume_max_assistant_lines]).rstrip() + f" {DOTS}"
    text = shorten(text, limits.resume_max_assistant_chars)
    return f"{text} [interrupted]".strip() if row.get("finish_reason") in _UNFINISHED else text


def _entry_lines(entry: Entry, width: int) -> list[tuple[str, str]]:
    """Return the lines of an entry, each as a mark and a text."""
    mark, label, colour = LABELS[entry.role]
    if width < LEAST_FOR_MARGIN:
        margin = 2
        lines = wrap_text(f"{label} {entry.text}", width - margin)
    else:
        margin = len(label) + 3
        lines = wrap_text(entry.text, width - margin)
        lines[0] = f"{label} {lines[0]}"
    others = [("", f"{' ' * margin}{line}") for line in lines[1:]]
    return [(colour_text(mark, colour, is_dim=True), f" {lines[0]}"), *others]


def _part_text(part: object) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return ""
    text = part.get("text")
    if isinstance(text, str):
        return text
    return "[image]" if "image" in str(part.get("type", "")) else ""
