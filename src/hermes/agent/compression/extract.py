"""A summary without a model: sentences, files and commands extracted from a conversation."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hermes.agent.history.text_limits import valid_text
from hermes.state.rows import AnyRow, flatten_text, one_line

MAX_CHARACTERS = 8_000
MAX_ITEMS = 12
LINE = 240
EARLIER_CHARACTERS = 2_000

_PATH = re.compile(
    r"(?<![\w/.:@+~-])(?:~|\.{1,2})?/?(?:[\w.@+-]{1,255}+/){1,50}+[\w.@+-]{0,255}\w"
    r"|(?<![\w-])[\w-]{1,255}+\.(?:py|md|toml|ya?ml|json|sql|ts|js|sh)\b"
)
_DECISION = re.compile(
    r"\b(decided?|decision|agreed?|chose|choose|instead of|let'?s|we(?:'ll| will)|going to|settled|conclusion)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?…。！？])\s+|\n+")


def extract(rows: Sequence[AnyRow], focus: str | None = None) -> str:
    """Extract requests, decisions, files, commands and questions, at most `MAX_CHARACTERS`; prefer the newest."""
    asked = [text for row in rows if row["role"] == "user" and (text := one_line(row["content"], LINE))]
    sections = {
        "Asked for": asked[:1] + _newest(asked[1:], MAX_ITEMS - 1),
        f"About {focus}": _sentences(rows, lambda text: focus is not None and focus.casefold() in text.casefold()),
        "Decided": _sentences(rows, lambda text: bool(_DECISION.search(text))),
        "Files": _newest(_unique(_paths(rows)), 2 * MAX_ITEMS),
        "Commands": _newest(_unique(_commands(rows)), MAX_ITEMS),
        "Questions": _sentences(rows, lambda text: text.endswith(("?", "？"))),
        "Last answer": [one_line(row["content"], 2 * LINE) for row in rows if _is_answer(row)][-1:],
    }
    found = [f"{heading}:\n" + "\n".join(f"- {item}" for item in items) for heading, items in sections.items() if items]
    earlier = [flatten_text(row["content"])[:EARLIER_CHARACTERS] for row in rows if row["role"] == "system"]
    return valid_text("\n\n".join([*earlier, *found]))[:MAX_CHARACTERS] or "The messages contain no text."


def _sentences(rows: Sequence[AnyRow], is_wanted: Callable[[str], bool]) -> list[str]:
    sentences = (
        one_line(sentence, LINE)
        for row in rows
        if row["role"] in ("user", "assistant")
        for sentence in _SENTENCE.split(flatten_text(row["content"]))
        if is_wanted(sentence.strip())
    )
    return _newest(_unique(sentences), MAX_ITEMS)


def _paths(rows: Sequence[AnyRow]) -> Iterable[str]:
    for row in rows:
        text = flatten_text(row["content"]) if row["role"] in ("user", "assistant") else ""
        for each in [text, *(json.dumps(arguments, ensure_ascii=False) for arguments in _arguments(row))]:
            yield from (found.group() for found in _PATH.finditer(each))


def _commands(rows: Sequence[AnyRow]) -> Iterable[str]:
    for row in rows:
        for arguments in _arguments(row):
            if isinstance(command := arguments.get("command"), str):
                yield one_line(command, LINE)


def _arguments(row: AnyRow) -> list[dict[str, Any]]:
    """The arguments of the tool calls that are valid JSON objects."""
    found = []
    for call in row["tool_calls"] if isinstance(row["tool_calls"], list) else ():
        try:
            parsed = json.loads(call["function"]["arguments"])
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
        if isinstance(parsed, dict):
            found.append(parsed)
    return found


def _is_answer(row: AnyRow) -> bool:
    return row["role"] == "assistant" and bool(flatten_text(row["content"]).strip())


def _unique(items: Iterable[str]) -> list[str]:
    """Return each item once, at its last position."""
    return list(dict.fromkeys(reversed(list(items))))[::-1]


def _newest(items: Sequence[str], count: int) -> list[str]:
    return list(items[-count:]) if count else []
