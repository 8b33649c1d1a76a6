"""Messages as blocks of text, which Markdown and HTML documents render."""

from __future__ import annotations

import json
import time
from enum import StrEnum
from typing import Any, NamedTuple

from hermes.cli.display.terminal import printable
from hermes.state.rows import Row, part_text

UNTITLED = "Untitled"


class BlockKind(StrEnum):
    """The kind of a block."""

    TEXT = "text"
    THOUGHT = "thought"
    CALL = "call"
    RESULT = "result"


class Block(NamedTuple):
    """A part of a message."""

    kind: BlockKind
    text: str
    tool: str = ""
    """The tool of a call or a result."""

    @property
    def summary(self) -> str:
        """The label of the block while it is folded."""
        return (
            "thinking"
            if self.kind is BlockKind.THOUGHT
            else f"{'→' if self.kind is BlockKind.CALL else '←'} {self.tool}"
        )


def message_blocks(message: Row) -> list[Block]:
    """Return the blocks of a message: its thinking, its text or tool result, and its tool calls."""
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
    """The title of a session, or else the start of its first message."""
    return printable(str(session["title"] or session["preview"] or UNTITLED))


def session_facts(session: Row) -> list[tuple[str, str]]:
    """Return the facts about a session as pairs of name and value."""
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
    """The role that a message is shown under; tool results belong to the assistant that called the tool."""
    role = "assistant" if message["role"] == "tool" else str(message["role"])
    return printable(role) + ("" if message["active"] else " (undone)")


def format_time(moment: Any) -> str:
    """Format a timestamp in local time."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))
    except (TypeError, ValueError, OverflowError, OSError):
        return "?"


def _content_text(content: Any) -> str:
    """Return the text of a content; a part that is not text becomes its type in brackets."""
    if content is None or isinstance(content, str):
        return content or ""
    parts = content if isinstance(content, list) else [content]
    return "\n\n".join("[image]" if _is_image(part) else part_text(part) for part in parts)


def _is_image(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in ("image", "image_url", "input_image")


def _call_block(call: Any) -> Block:
    function = call.get("function", call) if isinstance(call, dict) else {"arguments": call}
    source = function if isinstance(function, dict) else {"arguments": function}
    return Block(BlockKind.CALL, _clean(_format_arguments(source.get("arguments", ""))), _tool_name(source.get("name")))


def _format_arguments(arguments: Any) -> str:
    """Format the arguments of a tool call, indented if they are JSON."""
    try:
        value = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return str(arguments)
    return json.dumps(value, ensure_ascii=False, indent=2) if isinstance(value, dict | list) else str(arguments)


def _tool_name(tool: Any) -> str:
    return printable(str(tool)) if tool else "tool"


def _clean(text: str) -> str:
    """Escape the control characters of a text, except newlines and tabs."""
    lines = text.splitlines()
    return "\n".join("\t".join(printable(part) for part in line.split("\t")) for line in lines)
