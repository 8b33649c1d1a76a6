"""`hermes sessions backup`: backs up the database while other programs use it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hermes.cli.display.terminal import printable, write_json, write_stderr, write_stdout
from hermes.cli.options import AS_JSON
from hermes.cli.progress import progress
from hermes.cli.sessions.file.verify import sqlite_file, verdict_json
from hermes.cli.store import read_config
from hermes.home import get_hermes_home
from hermes.phrases import format_megabytes, plural
from hermes.state.messages.spool import Spool
from hermes.state.sqlite.backup.backup import BackupResult, back_up, back_up_into
from hermes.state.sqlite.files.names import beside, real_file

SCHEMA = "hermes.backup/1"


@click.command(
    epilog="""\b
Examples:
  hermes sessions backup
  hermes sessions backup /media/disk/sessions.db --force""",
)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option(
    "--keep",
    metavar="N",
    type=click.IntRange(min=1),
    help="Keep the N newest backups and delete the older ones. Default: backup.keep.",
)
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@AS_JSON
def backup(file: Path | None, keep: int | None, force: bool, as_json: bool) -> None:
    """Back up the database while other programs use it.

    The backup is verified before it gets its name. Without FILE, it goes to the backup directory under a name with the
    current time, and the oldest backups there are deleted.
    """
    if file is not None and keep is not None:
        raise click.UsageError("--keep works only without FILE")
    if file is None and force:
        raise click.UsageError("--force works only with FILE")
    config = read_config(as_json=as_json)
    database = sqlite_file(config, must_be_there=True)
    with progress() as report:
        if file is not None:
            made = BackupResult(back_up(database, file.absolute(), overwrite=force, report=report), [])
        else:
            directory = config.backup.folder(get_hermes_home())
            made = back_up_into(database, directory, config.backup.keep if keep is None else keep, report)
    item = verdict_json(made.verdict) | {
        "removed": [str(path) for path in made.removed],
        "spooled": Spool(beside(real_file(database), ".spool")).count(),
    }
    if as_json:
        write_json({"schema": SCHEMA, "item": item})
        return
    write_stdout(
        printable(
            f"{item['path']}: {plural(item['sessions'], 'session')}, {plural(item['messages'], 'message')}, "
            f"{format_megabytes(item['size_bytes'])}"
        )
    )
    for line in backup_notes(item, made):
        write_stderr(line)


def backup_notes(item: dict[str, Any], made: BackupResult) -> list[str]:
    """Return the lines about the backup for stderr."""
    lines = [f"Deleted old backup {path}" for path in made.removed]
    if item["spooled"]:
        lines.append(f"Not included: {plural(item['spooled'], 'spooled message')} not stored yet")
    for defect in made.verdict.defects:
        lines += [f"Warning: {defect.message}", f"Hint: {defect.hint}"]
    return lines
