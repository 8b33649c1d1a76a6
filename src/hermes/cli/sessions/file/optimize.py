"""`hermes sessions optimize`: merges the search index and shrinks the database."""

from __future__ import annotations

from pathlib import Path

import click

from hermes.cli.display.terminal import write_json, write_stderr, write_stdout
from hermes.cli.options import AS_JSON
from hermes.cli.progress import progress
from hermes.cli.store import database_file, no_sessions_message, open_for_change, read_config
from hermes.phrases import format_megabytes
from hermes.state.engine import Capability
from hermes.state.maintenance.disk_usage import measure_disk_usage
from hermes.state.provider import SessionDBProvider
from hermes.state.sqlite.files.names import LOG, beside, bytes_of

SCHEMA = "hermes.optimized/1"


@click.command()
@click.option(
    "--vacuum/--no-vacuum",
    default=True,
    show_default=True,
    help="Also rewrite the file without unused space. Other programs cannot write meanwhile.",
)
@AS_JSON
def optimize(vacuum: bool, as_json: bool) -> None:
    """Merge the search index and shrink the database.

    This is optional: search finds the same before and after. It needs disk space for a second copy of the file.
    """
    config = read_config(as_json=as_json)
    path = database_file(config)
    before = after = 0
    with open_for_change(config) as store, progress() as report:
        if store is None:
            write_stderr(no_sessions_message(path))
        else:
            before = _bytes_of(store, path)
            store.vacuum(report) if vacuum else store.optimize_fts(report)
            after = _bytes_of(store, path)
    if as_json:
        item = {"bytes_before": before, "bytes_after": after, "vacuumed": vacuum}
        write_json({"schema": SCHEMA, "item": item})
        return
    write_stdout(f"Size: {format_megabytes(before)} before, {format_megabytes(after)} now.")


def _bytes_of(store: SessionDBProvider, path: Path) -> int:
    """Return the size of a store; 0 if its provider does not report it."""
    if Capability.FILE in store.capabilities:
        return bytes_of(path) + bytes_of(beside(path, LOG))
    usage = measure_disk_usage(store, 0)
    return 0 if usage is None else usage.total
