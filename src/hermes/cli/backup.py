"""`hermes sessions backup`: a copy of the database, made while others use it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hermes.cli.options import AS_JSON
from hermes.cli.progress import progress
from hermes.cli.store import read_config
from hermes.cli.terminal import printable, talk, write, write_json
from hermes.cli.verify import item_of, sqlite_file
from hermes.home import get_hermes_home
from hermes.phrases import counted, megabytes
from hermes.state.spool import Spool
from hermes.state.sqlite.files import beside, real_file
from hermes.state.sqlite.upkeep.backup import Rotated, back_up, back_up_into

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
    help="Keep the N newest backups and remove the older ones; default: backup.keep.",
)
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
@AS_JSON
def backup(file: Path | None, keep: int | None, force: bool, as_json: bool) -> None:
    """Copy the database to a file of its own, while others use it.

    The copy counts only once it has been read and found to be whole. Without FILE it gets a name with the time in it,
    among the others in the directory of backups, and the oldest of them go.
    """
    if file is not None and keep is not None:
        raise click.UsageError("--keep is for the directory of backups, not for a FILE")
    if file is None and force:
        raise click.UsageError("--force is for a FILE; in the directory of backups each has its own name")
    config = read_config(as_json=as_json)
    database = sqlite_file(config, must_be_there=True)
    with progress() as report:
        if file is not None:
            made = Rotated(back_up(database, file.absolute(), overwrite=force, report=report), [])
        else:
            directory = config.backup.folder(get_hermes_home())
            made = back_up_into(database, directory, config.backup.keep if keep is None else keep, report)
    item = item_of(made.verdict) | {
        "removed": [str(path) for path in made.removed],
        "spooled": Spool(beside(real_file(database), ".spool")).waiting(),
    }
    if as_json:
        write_json({"schema": SCHEMA, "item": item})
        return
    write(
        printable(
            f"{item['path']}: {counted(item['sessions'], 'session')}, {counted(item['messages'], 'message')}, "
            f"{megabytes(item['size_bytes'])}"
        )
    )
    for line in remarks(item, made):
        talk(line)


def remarks(item: dict[str, Any], made: Rotated) -> list[str]:
    """What the person should know beyond where the backup is."""
    lines = [f"Removed the older {path}" for path in made.removed]
    if item["spooled"]:
        lines.append(f"{counted(item['spooled'], 'message')} could not be stored yet and so cannot be in it")
    for finding in made.verdict.findings:
        lines += [f"Warning: {finding.message}", f"Hint: {finding.hint}"]
    return lines
