"""`hermes sessions show`: shows a session and its messages."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from hermes.cli.chat.recap import message_text
from hermes.cli.chat.terminal.style import can_move, has_style
from hermes.cli.display.pager import page_text
from hermes.cli.display.terminal import (
    ELLIPSIS,
    heading,
    printable,
    printable_lines,
    terminal_width,
    write_json,
    write_stderr,
)
from hermes.cli.display.times import ago
from hermes.cli.display.totals import format_totals
from hermes.cli.display.wrapping import wrap_line
from hermes.cli.options import AS_JSON
from hermes.cli.session_argument import SESSION, NamedSession, open_named_session
from hermes.cli.store import read_config
from hermes.phrases import plural

if TYPE_CHECKING:
    from hermes.state.rows import AnyRow

SCHEMA = "hermes.session/1"
LAST_ID = 2**62
LONGEST_TOOL_TEXT = 400


@click.command(
    epilog="""\b
Examples:
  hermes sessions show "refactoring auth" --tail 10
  hermes sessions show 20261115_190312_a1b2c3d4 --json | jq '.item.messages[].content'"""
)
@SESSION
@click.option("--tail", "-n", metavar="N", type=click.IntRange(min=1), help="Show only the last N messages.")
@click.option("--full", is_flag=True, help="Show tool calls and results in full.")
@click.option("--all", "-a", "include_inactive", is_flag=True, help="Include undone messages and retried answers.")
@click.option("--no-pager", is_flag=True, help="Write everything at once, also if it is longer than the screen.")
@AS_JSON
def show(name: str, tail: int | None, full: bool, include_inactive: bool, no_pager: bool, as_json: bool) -> None:
    """Show a session and its messages."""
    config = read_config(as_json=as_json)
    with open_named_session(config, name) as session:
        messages = session.store.get_messages(
            session.id, include_inactive, before_id=None if tail is None else LAST_ID, limit=tail
        )
        relatives = read_relatives(session)
    if as_json:
        write_json({"schema": SCHEMA, "item": {**session.row, "messages": messages}})
        return
    width = terminal_width() if can_move(sys.stdout) else 0
    title, *facts = format_summary(session.row, relatives, now=time.time())
    lines = [*map(heading, _wrap(title, width)), *(row for fact in facts for row in _wrap(fact, width))]
    for message in messages:
        lines += ["", *format_message(message, is_full=full, width=width)]
    page_text("\n".join(lines), is_wanted=not no_pager)
    left_out = session.row["message_count"] - len(messages)
    if tail is not None and left_out > 0:
        write_stderr(f"{plural(left_out, 'earlier message')} not shown; raise --tail for more")


def read_relatives(session: NamedSession) -> list[str]:
    """Return lines about the parent and the continuation of a session."""
    lines = []
    parent = session.row["parent_session_id"]
    if parent:
        lines.append(f"{(session.row['child_kind'] or 'child').capitalize()} of: {parent}")
    tip = session.store.get_compression_tip(session.id)
    if tip != session.id:
        lines.append(f"Continued in: {tip}")
    return lines


def format_summary(row: AnyRow, relatives: Sequence[str], *, now: float) -> list[str]:
    """Format the facts about a session."""
    lines = [str(row["title"] or row["preview"] or row["id"])]
    lines.append(f"Session: {row['id']} ({row['source']})")
    if row["model"]:
        lines.append(f"Model: {row['model']}")
    ended = f", ended {ago(row['ended_at'], now)} ({row['end_reason']})" if row["ended_at"] else ""
    lines.append(f"Started: {ago(row['started_at'], now)}, last active {ago(row['last_active'], now)}{ended}")
    if row["imported_from"]:
        lines.append(f"Imported from: {row['imported_from']}")
    flags = [name for name in ("pinned", "archived") if row[name]]
    lines.append(", ".join([f"Messages: {row['message_count']}", *flags]))
    if totals := format_totals(row):
        lines.append(f"Tokens: {totals}")
    return [printable(line) for line in [*lines, *relatives]]


def format_message(message: AnyRow, *, is_full: bool, width: int = 0) -> list[str]:
    """Format a message as lines of text, on a terminal of so many columns with the Markdown of an answer drawn."""
    undone = "" if message["active"] else " (undone)"
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(message["timestamp"]))
    who = f"{message['role']} {message['tool_name']}" if message["tool_name"] else str(message["role"])
    lines = [heading(f"── {printable(who)}{undone} · {when}")]
    text = message_text(message["content"])
    is_tool = message["role"] == "tool"
    if text and width and message["role"] == "assistant":
        from hermes.cli.display.markdown.renderer import render_markdown

        lines += render_markdown(text, width - 1, has_colour=has_style(sys.stdout))
    elif text:
        lines += _wrap(_cut(text) if is_tool and not is_full else text, width)
    for call in message["tool_calls"] or ():
        lines += _wrap(_format_call(call, is_full=is_full), width)
    return lines


def _wrap(text: str, width: int) -> list[str]:
    """Return printable lines, on a terminal broken between words."""
    lines = printable_lines(text).split("\n")
    return [row for line in lines for row in (wrap_line(line, width) if width else [line])]


def _format_call(call: Any, *, is_full: bool) -> str:
    function = call.get("function", call) if isinstance(call, dict) else {}
    name = function.get("name", "unknown") if isinstance(function, dict) else "unknown"
    arguments = str(function.get("arguments", "")) if isinstance(function, dict) else ""
    return f"→ {name}({arguments if is_full else _cut(arguments)})"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_TOOL_TEXT else text[:LONGEST_TOOL_TEXT].rstrip() + ELLIPSIS
