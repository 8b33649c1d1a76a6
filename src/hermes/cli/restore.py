"""`hermes sessions restore`: which backups there are, and going back to one of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from hermes.cli.confirm import YES, confirm
from hermes.cli.options import AS_JSON
from hermes.cli.progress import progress
from hermes.cli.store import read_config
from hermes.cli.table import Column, lay_out
from hermes.cli.terminal import heading, printable, talk, terminal_width, write, write_json
from hermes.cli.times import ago
from hermes.cli.verify import item_of, sqlite_file
from hermes.home import get_hermes_home
from hermes.phrases import counted, megabytes
from hermes.state.spool import Spool
from hermes.state.sqlite.files import beside, real_file
from hermes.state.sqlite.upkeep.copies import Copy, copies_of
from hermes.state.sqlite.upkeep.restore import Loss, compare, refuse
from hermes.state.sqlite.upkeep.restore import restore as restore_file
from hermes.state.sqlite.upkeep.verify import Depth, Verdict
from hermes.state.sqlite.upkeep.verify import verify as verify_file

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
    """Go back to a backup, or list the backups there are.

    A backup that is not whole is refused. Before anything is changed, what would be lost is shown; the database of
    today is kept beside the restored one. Programs of Hermes that are running go on with what was restored.
    """
    config = read_config(as_json=as_json)
    database = sqlite_file(config, must_be_there=False)
    directory = config.backup.folder(get_hermes_home())
    if file is None:
        show(copies_of(database, directory), directory, as_json=as_json)
        return
    with progress() as report:
        verdict = verify_file(find(file, directory), Depth.DAMAGE, is_backup=True, report=report)
    refuse(database, verdict)
    loss = compare(database, verdict.path)
    for line in () if as_json else prospect(database, verdict, loss, now=time.time(), width=terminal_width()):
        talk(line)
    if not confirm("Restore it?", is_sure=is_sure):
        talk("Nothing was changed.")
        return
    with progress() as report:
        kept = restore_file(database, verdict, report=report)
    item = outcome(database, verdict, loss, kept)
    if as_json:
        write_json({"schema": SCHEMA, "item": item})
        return
    write(
        printable(
            f"{database}: {counted(item['sessions'], 'session')}, {counted(item['messages'], 'message')} restored"
        )
    )
    if kept is not None:
        talk(f"What was there is kept as {kept}; remove it when nothing is missing.")
    if item["spooled"]:
        talk(
            f"{counted(item['spooled'], 'message')} could not be stored before; the next program to open it does that."
        )


def find(file: Path, directory: Path) -> Path:
    """The backup that is meant: a path, or the name of one in the directory of backups."""
    named = directory / file
    return named if len(file.parts) == 1 and not file.exists() and named.exists() else file.absolute()


def show(copies: Sequence[Copy], directory: Path, *, as_json: bool) -> None:
    """List what can be gone back to."""
    if as_json:
        items = [copy_item(each) for each in copies]
        write_json({"schema": LIST_SCHEMA, "items": items, "total": len(items), "next": None})
        return
    if not copies:
        talk(f"No backups in {directory}; `hermes sessions backup` makes one.")
        return
    header, *lines = table_of(copies, now=time.time(), width=terminal_width())
    write("\n".join([heading(header), *lines]))
    talk(f"{counted(len(copies), 'file')}; `hermes sessions restore FILE` goes back to one of them")


def copy_item(copy: Copy) -> dict[str, Any]:
    """A file that can be gone back to, as JSON tells of it."""
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


def table_of(copies: Sequence[Copy], *, now: float, width: int) -> list[str]:
    """What can be gone back to, as a table."""
    found = [each.contents for each in copies]
    columns = [
        Column("Made", [time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(each.made_at)) for each in copies]),
        Column("Sessions", [str(each.sessions) if each else UNKNOWN for each in found]),
        Column("Messages", [str(each.messages) if each else UNKNOWN for each in found]),
        Column("Newest", [ago(each.newest, now) if each else UNKNOWN for each in found]),
        Column("Size", [megabytes(each.size_bytes) for each in copies]),
        Column("Kind", [each.trouble or KINDS[each.kind] for each in copies], is_elastic=True),
        Column("File", [str(each.path) for each in copies]),
    ]
    return lay_out(columns, width)


def prospect(database: Path, verdict: Verdict, loss: Loss, *, now: float, width: int) -> list[str]:
    """What restoring a backup would change, for the person who is to decide."""
    assert verdict.contents is not None
    lines = [f"{verdict.path} is whole."]
    rows = {"in the backup": verdict.contents}
    if loss.contents is not None:
        rows = {"now": loss.contents, **rows}
    lines += lay_out(
        [
            Column("", list(rows)),
            Column("Sessions", [str(each.sessions) for each in rows.values()]),
            Column("Messages", [str(each.messages) for each in rows.values()]),
            Column("Newest message", [ago(each.newest, now) for each in rows.values()]),
        ],
        width,
    )
    if loss.trouble:
        lines.append(f"What is there now cannot be read: {loss.trouble}")
    elif loss.contents is None:
        lines.append(f"There is nothing in {database} now.")
    else:
        lost = f"{counted(loss.sessions, 'session')} and {counted(loss.messages, 'message')}"
        lines.append(f"There now, but not in the backup: {lost}.")
    return lines


def outcome(database: Path, verdict: Verdict, loss: Loss, kept: Path | None) -> dict[str, Any]:
    """What was restored, as JSON tells of it."""
    return item_of(verdict) | {
        "database": str(database),
        "lost_sessions": None if loss.trouble else loss.sessions,
        "lost_messages": None if loss.trouble else loss.messages,
        "kept": None if kept is None else str(kept),
        "spooled": Spool(beside(real_file(database), ".spool")).waiting(),
    }
