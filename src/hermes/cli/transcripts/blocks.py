"""Messages as blocks of text, which each kind of document shows in its way."""

from __future__ import annotations

import json
import time
from enum import StrEnum
from typing import Any, NamedTuple

from hermes.cli.display.terminal import printable
from hermes.state.rows import Row

UNTITLED = "Untitled"


class BlockKind(StrEnum):
    """What a block is."""

    TEXT = "text"
    THOUGHT = "thought"
    CALL = "call"
    RESULT = "result"


class Block(NamedTuple):
    """A part of a message."""

    kind: BlockKind
    text: str
    tool: str = ""
    """The tool that is called, or that has answered."""

    @property
    def summary(self) -> str:
        """What stands for it while it is folded."""
        return (
            "thinking"
            if self.kind is BlockKind.THOUGHT
            else f"{'→' if self.kind is BlockKind.CALL else '←'} {self.tool}"
        )


def message_blocks(message: Row) -> list[Block]:
    """What was thought, said, called and answered in a message, in this order."""
    thought = message["reasoning"] or message["reasoning_content"]
    blocks = [Block(BlockKind.THOUGHT, _clean(thought))] if thought else []
    text = _content_text(message["content"])
    if message["role"] == "tool":
        blocks.append(Block(BlockKind.RESULT, _clean(text), _tool_name(message["tool_name"])))
    elif text:
        blocks.append(Block(BlockKind.TEXT, _clean(text)))
    calls = message["tool_calls"]
    return blocks + [_call_block(call) for call in (calls if isinstance(calls, list) else [calls] if calls else [])]


def session_title(session: Row) -> str:
    """What a session is called."""
    return printable(str(session["title"] or session["preview"] or UNTITLED))


def session_facts(session: Row) -> list[tuple[str, str]]:
    """What a session is, each fact with its name."""
    facts = [("Session", f"{session['id']} ({session['source']})")]
    if session["model"]:
        facts.append(("Model", session["model"]))
    if session["imported_from"]:
        facts.append(("Imported from", session["imported_from"]))
    facts.append(("Started", format_time(session["started_at"])))
    facts.append(("Last active", format_time(session["last_active"])))
    if session["ended_at"]:
        facts.append(("Ended", f"{format_time(session['ended_at'])} ({session['end_reason']})"))
    if session["parent_session_id"]:
        facts.append(((session["child_kind"] or "child").capitalize() + " of", session["parent_session_id"]))
    facts.append(("Messages", str(session["message_count"])))
    return [(name, printable(str(value))) for name, value in facts]


def speaker_name(message: Row) -> str:
    """Whose turn a message belongs to; what tools answer belongs to the one that called them."""
    role = "assistant" if message["role"] == "tool" else str(message["role"])
    return printable(role) + ("" if message["active"] else " (undone)")


def format_time(moment: Any) -> str:
    """A moment in local time."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))
    except (TypeError, ValueError, OverflowError, OSError):
        return "?"


def _content_text(content: Any) -> str:
    """What can be read of a content; of what is no text, what it is."""
    if content is None or isinstance(content, str):
        return content or ""
    parts = content if isinstance(content, list) else [content]
    return "\n\n".join(_part(part) for part in parts)


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return str(part["text"])
    if isinstance(part, dict) and isinstance(part.get("type"), str):
        return f"[{part['type']}]"
    return json.dumps(part, ensure_ascii=False)


def _call_block(call: Any) -> Block:
    function = call.get("function", call) if isinstance(call, dict) else {"arguments": call}
    source = function if isinstance(function, dict) else {"arguments": function}
    return Block(BlockKind.CALL, _clean(_format_arguments(source.get("arguments", ""))), _tool_name(source.get("name")))


def _format_arguments(given: Any) -> str:
    """Arguments on lines of their own, if they are JSON."""
    try:
        value = json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        return str(given)
    return json.dumps(value, ensure_ascii=False, indent=2) if isinstance(value, dict | list) else str(given)


def _tool_name(tool: Any) -> str:
    return printable(str(tool)) if tool else "tool"


def _clean(text: str) -> str:
    """Text whose lines and tabs are kept, without what could act on whoever shows it."""
    lines = text.splitlines()
    return "\n".join("\t".join(printable(part) for part in line.split("\t")) for line in lines)
