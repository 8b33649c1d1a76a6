"""`hermes sessions restore`: lists backups and restores one of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from hermes.cli.confirm import YES, confirm
from hermes.cli.display.table import Column, format_table
from hermes.cli.display.terminal import heading, printable, terminal_width, write_json, write_stderr, write_stdout
from hermes.cli.display.times import ago
from hermes.cli.options import AS_JSON
from hermes.cli.progress import progress
from hermes.cli.sessions.file.verify import sqlite_file, verdict_json
from hermes.cli.store import read_config
from hermes.home import get_hermes_home
from hermes.phrases import format_megabytes, plural
from hermes.state.messages.spool import Spool
from hermes.state.sqlite.backup.copies import Copy, copies_of
from hermes.state.sqlite.backup.restore import Loss, compare, require_restorable
from hermes.state.sqlite.backup.restore import restore as restore_file
from hermes.state.sqlite.checks.verify import Depth, Verdict
from hermes.state.sqlite.checks.verify import verify as verify_file
from hermes.state.sqlite.files.names import beside, real_file

LIST_SCHEMA = "hermes.backups/1"
SCHEMA = "hermes.restored/1"
UNKNOWN = "?"
KINDS = {"backup": "backup", "replaced": "before a restore", "upgraded": "before an upgrade"}


@click.command(
    epilog="""\b
Examples:
  hermes sessions restore
  hermes sessions restore state-20261116_021530.db""",
)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@YES
@AS_JSON
def restore(file: Path | None, is_sure: bool, as_json: bool) -> None:
    """Restore a backup, or list the backups.

    A damaged backup is refused. Before any change, this shows what would be lost. The current database is kept under
    another name. Running Hermes programs switch to the restored database.
    """
    config = read_config(as_json=as_json)
    database = sqlite_file(config, must_be_there=False)
    directory = config.backup.folder(get_hermes_home())
    if file is None:
        show_backups(copies_of(database, directory), directory, as_json=as_json)
        return
    with progress() as report:
        verdict = verify_file(find_backup(file, directory), Depth.DAMAGE, is_backup=True, report=report)
    require_restorable(database, verdict)
    loss = compare(database, verdict.path)
    for line in () if as_json else preview_lines(database, verdict, loss, now=time.time(), width=terminal_width()):
        write_stderr(line)
    if not confirm("Restore this backup?", is_sure=is_sure):
        write_stderr("Nothing was changed.")
        return
    with progress() as report:
        kept = restore_file(database, verdict, report=report)
    item = restore_json(database, verdict, loss, kept)
    if as_json:
        write_json({"schema": SCHEMA, "item": item})
        return
    write_stdout(
        printable(f"{database}: {plural(item['sessions'], 'session')}, {plural(item['messages'], 'message')} restored")
    )
    if kept is not None:
        write_stderr(f"The previous database is kept as {kept}; delete it if nothing is missing.")
    if item["spooled"]:
        write_stderr(
            f"{plural(item['spooled'], 'spooled message')} will be stored when a program next opens the database."
        )


def find_backup(file: Path, directory: Path) -> Path:
    """Return the path of a backup, given as a path or as a name in the backup directory."""
    named = directory / file
    return named if len(file.parts) == 1 and not file.exists() and named.exists() else file.absolute()


def show_backups(copies: Sequence[Copy], directory: Path, *, as_json: bool) -> None:
    """Print the list of backups."""
    if as_json:
        items = [backup_json(each) for each in copies]
        write_json({"schema": LIST_SCHEMA, "items": items, "total": len(items), "next": None})
        return
    if not copies:
        write_stderr(f"No backups in {directory}. Create one with `hermes sessions backup`.")
        return
    header, *lines = format_backups(copies, now=time.time(), width=terminal_width())
    write_stdout("\n".join([heading(header), *lines]))
    write_stderr(f"{plural(len(copies), 'file')}. Restore one with `hermes sessions restore FILE`.")


def backup_json(copy: Copy) -> dict[str, Any]:
    """Return a backup for JSON output."""
    contents = copy.contents
    return {
        "path": str(copy.path),
        "kind": copy.kind,
        "made_at": copy.made_at,
        "size_bytes": copy.size_bytes,
        "sessions": contents.sessions if contents else None,
        "messages": contents.messages if contents else None,
        "newest_message": contents.newest if contents else None,
        "trouble": copy.trouble or None,
    }


def format_backups(copies: Sequence[Copy], *, now: float, width: int) -> list[str]:
    """Format the backups as a table."""
    found = [each.contents for each in copies]
    columns = [
        Column("Made", [time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(each.made_at)) for each in copies]),
        Column("Sessions", [str(each.sessions) if each else UNKNOWN for each in found]),
        Column("Messages", [str(each.messages) if each else UNKNOWN for each in found]),
        Column("Newest", [ago(each.newest, now) if each else UNKNOWN for each in found]),
        Column("Size", [format_megabytes(each.size_bytes) for each in copies]),
        Column("Kind", [each.trouble or KINDS[each.kind] for each in copies], is_elastic=True),
        Column("File", [str(each.path) for each in copies]),
    ]
    return format_table(columns, width)


def preview_lines(database: Path, verdict: Verdict, loss: Loss, *, now: float, width: int) -> list[str]:
    """Describe what restoring a backup would change, so that the user can decide."""
    assert verdict.contents is not None
    lines = [f"{verdict.path} is intact."]
    rows = {"in the backup": verdict.contents}
    if loss.contents is not None:
        rows = {"now": loss.contents, **rows}
    lines += format_table(
        [
            Column("", list(rows)),
            Column("Sessions", [str(each.sessions) for each in rows.values()]),
            Column("Messages", [str(each.messages) for each in rows.values()]),
            Column("Newest message", [ago(each.newest, now) for each in rows.values()]),
        ],
        width,
    )
    if loss.trouble:
        lines.append(f"The current database cannot be read: {loss.trouble}")
    elif loss.contents is None:
        lines.append(f"{database} has no sessions now.")
    else:
        lost = f"{plural(loss.sessions, 'session')} and {plural(loss.messages, 'message')}"
        lines.append(f"Not in the backup, so lost: {lost}.")
    return lines


def restore_json(database: Path, verdict: Verdict, loss: Loss, kept: Path | None) -> dict[str, Any]:
    """Return the result of a restore for JSON output."""
    return verdict_json(verdict) | {
        "database": str(database),
        "lost_sessions": None if loss.trouble else loss.sessions,
        "lost_messages": None if loss.trouble else loss.messages,
        "kept": None if kept is None else str(kept),
        "spooled": Spool(beside(real_file(database), ".spool")).count(),
    }
