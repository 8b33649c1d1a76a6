"""`hermes sessions repair`: rebuilds a damaged database from what can still be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import click

from hermes.cli.confirm import YES, confirm
from hermes.cli.display.terminal import printable, write_json, write_stderr, write_stdout
from hermes.cli.errors import FAILED
from hermes.cli.options import AS_JSON
from hermes.cli.progress import progress
from hermes.cli.sessions.file.verify import sqlite_file
from hermes.cli.store import read_config
from hermes.phrases import plural
from hermes.state.sqlite.repair.repair import FileCondition, RepairResult
from hermes.state.sqlite.repair.repair import check as check_file
from hermes.state.sqlite.repair.repair import repair as repair_file
from hermes.state.sqlite.repair.salvage import Salvaged

SCHEMA = "hermes.repair/1"
MOST_LINES = 5
"""The number of lines shown of a long list."""


@click.command(
    epilog="""\b
Examples:
  hermes sessions repair --check
  hermes sessions repair
  hermes sessions repair --yes --json | jq .item.salvaged.messages""",
)
@click.option("--check", "only_check", is_flag=True, help="Only check: change nothing, and exit with 1 if damaged.")
@YES
@AS_JSON
@click.pass_context
def repair(context: click.Context, only_check: bool, is_sure: bool, as_json: bool) -> None:
    """Repair a damaged database.

    Every readable row is copied to a new file with new indexes. The new file is verified and then replaces the damaged
    one, which is kept under another name. Running Hermes programs switch to the new file. A healthy database is not
    changed.
    """
    config = read_config(as_json=as_json)
    database, patience_s = sqlite_file(config, must_be_there=True), config.sessiondb.write_timeout_s
    was_shown = False
    with ExitStack() as stack:
        report = stack.enter_context(progress())

        def ask(outcome: RepairResult) -> bool:
            nonlocal was_shown
            stack.close()
            if not as_json:
                write_stdout("\n".join(format_repair(outcome)))
                was_shown = True
            return confirm("Replace the database by the repaired copy? The damaged file is kept.", is_sure=False)

        if only_check:
            outcome = check_file(database, timeout_s=patience_s, report=report)
        else:
            outcome = repair_file(database, confirm=None if is_sure else ask, timeout_s=patience_s, report=report)
    if as_json:
        write_json({"schema": SCHEMA, "item": repair_json(outcome)})
    elif not was_shown:
        write_stdout("\n".join(format_repair(outcome)))
    for line in () if as_json else repair_notes(outcome, was_offered=not only_check):
        write_stderr(line)
    if outcome.condition is FileCondition.DAMAGED:
        context.exit(FAILED)


def repair_json(outcome: RepairResult) -> dict[str, Any]:
    """Return the result of a repair for JSON output."""
    return {
        "path": str(outcome.path),
        "condition": str(outcome.condition),
        "damage": list(outcome.damage),
        "problems": list(outcome.problems),
        "salvaged": salvaged_json(outcome.salvaged) if outcome.salvaged else None,
        "kept_as": str(outcome.kept_as) if outcome.kept_as else None,
        "spooled": outcome.spooled,
    }


def salvaged_json(salvaged: Salvaged) -> dict[str, Any]:
    """Return the salvaged rows for JSON output."""
    sessions, messages = salvaged.rows["sessions"], salvaged.rows["messages"]
    return {
        "sessions": salvaged.sessions,
        "sessions_from_table": sessions.from_table,
        "sessions_stray": sessions.unreachable,
        "sessions_from_indexes": salvaged.sessions_rebuilt,
        "sessions_from_messages": salvaged.sessions_made,
        "messages": salvaged.messages,
        "messages_from_table": messages.from_table,
        "messages_stray": messages.unreachable,
        "messages_cut": messages.truncated,
        "messages_lost": salvaged.lost_messages,
        "incomplete_sessions": [{"id": each, "lost": lost} for each, lost in salvaged.incomplete.items()],
        "titles_changed": salvaged.titles_changed,
        "other_rows": {
            name: tally.count for name, tally in salvaged.rows.items() if name not in ("sessions", "messages")
        },
        "left_out": salvaged.left_out,
        "pages": salvaged.pages,
        "pages_damaged": salvaged.pages_damaged,
    }


def format_repair(outcome: RepairResult) -> list[str]:
    """Format the result of a repair."""
    if outcome.condition is FileCondition.HEALTHY:
        lines = [f"{outcome.path} is healthy."]
    elif outcome.condition is FileCondition.EMPTY:
        lines = [f"{outcome.path} is empty: it has no sessions."]
    else:
        assert outcome.salvaged is not None
        lines = [f"{outcome.path} {_verb(outcome)} damaged: {', '.join(outcome.damage)}"]
        lines += [f"  {problem}" for problem in _first_lines(outcome.problems)]
        lines += _saved_lines(
            outcome.salvaged, "Saved" if outcome.condition is FileCondition.REPAIRED else "Can be saved"
        )
        lines += _lost_lines(outcome.salvaged)
    return [printable(line) for line in lines]


def repair_notes(outcome: RepairResult, *, was_offered: bool) -> list[str]:
    """Return the lines about a repair for stderr."""
    lines = []
    if outcome.kept_as is not None:
        lines.append(f"Repaired. The damaged file is kept as {outcome.kept_as}; delete it if nothing is missing.")
    elif outcome.condition is FileCondition.DAMAGED:
        lines.append("Nothing was changed." if was_offered else "Run `hermes sessions repair` to repair it.")
    if outcome.spooled:
        lines.append(
            f"{plural(outcome.spooled, 'spooled message')} will be stored when a program next opens the database."
        )
    return lines


def _verb(outcome: RepairResult) -> str:
    return "was" if outcome.condition is FileCondition.REPAIRED else "is"


def _saved_lines(salvaged: Salvaged, how: str) -> Iterator[str]:
    sessions, messages = salvaged.rows["sessions"], salvaged.rows["messages"]
    yield f"{how}: {plural(salvaged.sessions, 'session')}, {plural(salvaged.messages, 'message')}"
    unreachable = [
        plural(tally.unreachable, noun)
        for tally, noun in ((sessions, "session"), (messages, "message"))
        if tally.unreachable
    ]
    if unreachable:
        yield f"  {' and '.join(unreachable)} recovered from detached pages"
    if salvaged.sessions_rebuilt:
        yield f"  {plural(salvaged.sessions_rebuilt, 'session')} rebuilt from indexes, with some fields missing"
    if salvaged.sessions_made:
        yield f"  {plural(salvaged.sessions_made, 'session')} rebuilt from messages only, with an unknown source"
    if messages.truncated:
        yield f"  {plural(messages.truncated, 'message')} cut off: the end is unreadable"
    if salvaged.titles_changed:
        yield f"  {plural(salvaged.titles_changed, 'duplicate title')} numbered"
    if salvaged.left_out:
        yield f"  without the tables {', '.join(salvaged.left_out)}"


def _lost_lines(salvaged: Salvaged) -> Iterator[str]:
    if salvaged.pages_damaged:
        yield f"Unreadable: {salvaged.pages_damaged} of {plural(salvaged.pages, 'page')}"
    if salvaged.lost_messages:
        yield f"Lost: at least {plural(salvaged.lost_messages, 'message')}"
        yield from _first_lines([f"  {count} of session {each}" for each, count in salvaged.incomplete.items()])
    else:
        yield "Lost: no messages, as far as can be checked"


def _first_lines(lines: list[str] | tuple[str, ...]) -> list[str]:
    more = len(lines) - MOST_LINES
    return [*lines[:MOST_LINES], *([f"  and {more} more"] if more > 0 else [])]
