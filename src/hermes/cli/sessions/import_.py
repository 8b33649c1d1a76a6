"""`hermes sessions import`: imports sessions from exports and other programs."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, get_args

import click

from hermes.cli.display.terminal import printable, write_json, write_stderr, write_stdout
from hermes.cli.errors import FAILED
from hermes.cli.options import AS_JSON
from hermes.cli.progress import progress
from hermes.cli.store import database_file, open_for_reading, read_config
from hermes.config import Config
from hermes.errors import HermesError, InvalidValue, NotFound
from hermes.interop.detection import FoundFile, Identity, find, identity_of
from hermes.interop.importer import Importer, ImportOptions, Tally
from hermes.phrases import plural
from hermes.state.import_export.session_writer import ImportOutcome, OnConflict
from hermes.state.indexing.index_backlog import index_backlog
from hermes.state.provider import SessionDBProvider, open_session_db
from hermes.state.rows import require_identifier
from hermes.state.sqlite.files.names import JOURNAL, LOG, SHARED_MEMORY, beside

SCHEMA = "hermes.imported/1"
STDIN = "-"


@click.command(
    "import",
    epilog="""\b
Examples:
  hermes sessions import backup.jsonl --dry-run
  hermes sessions import ~/.claude/projects ~/.codex/sessions
  ssh laptop hermes sessions export - | hermes sessions import -""",
)
@click.argument("names", metavar="FILE...", nargs=-1, required=True)
@click.option("--dry-run", is_flag=True, help="Show what would be imported, and import nothing.")
@click.option(
    "--on-conflict",
    type=click.Choice(get_args(OnConflict)),
    default="merge",
    show_default=True,
    help="If a session exists already: skip it, import it under a new id, or merge the missing messages.",
)
@click.option("--keep-going", is_flag=True, help="Import the readable part of a damaged file.")
@click.option("--source", metavar="NAME", help="Store this as the source of the sessions.")
@click.option(
    "--keep-owners",
    is_flag=True,
    help="Keep the owners that the files name. Without this, the sessions belong to the terminal.",
)
@click.option(
    "--add-to-own",
    is_flag=True,
    help="Let files add messages to sessions created here. Use it only for your own exports.",
)
@AS_JSON
def import_(
    names: tuple[str, ...],
    dry_run: bool,
    on_conflict: OnConflict,
    keep_going: bool,
    source: str | None,
    keep_owners: bool,
    add_to_own: bool,
    as_json: bool,
) -> None:
    """Import sessions from exports, database files, Claude Code and the Codex CLI.

    The format of a FILE is detected from its content. Directories are searched, and - is stdin. Each file is checked
    before anything in it is imported. Importing the same file again adds only what is new.
    """
    config = read_config(as_json=as_json)
    source_name = None if source is None else require_identifier(source, "source")
    options = ImportOptions(
        on_conflict, dry_run, keep_going, source_name, keeps_owners=keep_owners, adds_to_own=add_to_own
    )
    with open_inputs(names) as paths:
        files = list(find(list(paths), find_store_files(config)))
        is_change = not dry_run and any(not isinstance(each.source, HermesError) for each in files)
        with open_store(config, for_change=is_change) as store:
            importer = Importer(store, options, time.time(), paths)
            run_import(importer, files, store if is_change else None)
    report_import(importer.tally, options, as_json=as_json)
    if importer.tally.failures:
        click.get_current_context().exit(FAILED)


def run_import(importer: Importer, files: Sequence[FoundFile], store: SessionDBProvider | None) -> None:
    """Import the sessions and index them. Without a store, only count them."""
    try:
        with progress() as report:
            importer.import_files(files, report)
    except KeyboardInterrupt:
        write_stderr(f"{format_summary(importer.tally, dry_run=store is None)} The rest was not imported.")
        raise
    if store is None or not importer.tally.messages:
        return
    try:
        with progress() as report:
            index_backlog(store, report)
    except KeyboardInterrupt:
        write_stderr("All sessions are imported. Search finds them all, but more slowly until the index is complete.")
        raise


@contextmanager
def open_inputs(names: Sequence[str]) -> Iterator[dict[Path, str]]:
    """Yield the paths to import, each with its display name if that is not the path itself.

    Pipes are copied to temporary files. Raise `NotFound` before anything is read if a file is missing.
    """
    for name in names:
        if name != STDIN and not Path(name).exists():
            raise NotFound(f"there is no file {name}")
    with ExitStack() as copies:
        paths = [copies.enter_context(_readable_twice(name)) for name in names]
        yield {path: "" if path == Path(name) else path.name for path, name in zip(paths, names, strict=True)}


@contextmanager
def _readable_twice(name: str) -> Iterator[Path]:
    path = Path(name)
    if name != STDIN and (path.is_file() or path.is_dir()):
        yield path
        return
    if name != STDIN and (path.is_char_device() or path.is_block_device()):
        raise InvalidValue(
            f"{name} is a device, not a file of sessions", hint="give a file, a directory, or - for stdin"
        )
    with tempfile.TemporaryDirectory(prefix="hermes-") as directory:
        copy = Path(directory, "stdin" if name == STDIN else path.name)
        try:
            with copy.open("wb") as target, sys.stdin.buffer if name == STDIN else path.open("rb") as stream:
                copy_bounded(stream, target, name, shutil.disk_usage(directory).free // 2)
        except OSError as error:
            raise HermesError(f"{name} cannot be read: {error.strerror}") from error
        yield copy


def copy_bounded(stream: BinaryIO, target: BinaryIO, name: str, most_bytes: int) -> None:
    """Copy a stream; raise `InvalidValue` before it fills the disk."""
    while piece := stream.read(1 << 20):
        if target.tell() + len(piece) > most_bytes:
            raise InvalidValue(
                f"{name} has more than {most_bytes} bytes, half of the free space for temporary files",
                hint="save it to a file on another disk and import that",
            )
        target.write(piece)


@contextmanager
def open_store(config: Config, *, for_change: bool) -> Iterator[SessionDBProvider | None]:
    """Open the store; a dry run does not create one."""
    with open_session_db(config) if for_change else open_for_reading(config) as store:
        yield store


def find_store_files(config: Config) -> set[Identity]:
    """Return the identities of the store's own files, which are not imported."""
    if config.sessiondb.provider != "sqlite":
        return set()
    files = [beside(database_file(config), suffix) for suffix in ("", LOG, SHARED_MEMORY, JOURNAL)]
    return {identity for each in files if (identity := identity_of(each)) is not None}


def format_summary(tally: Tally, *, dry_run: bool) -> str:
    """Summarize the import in one sentence."""
    parts = ", ".join(f"{tally.sessions[outcome]} {outcome}" for outcome in ImportOutcome if tally.sessions[outcome])
    sessions = plural(sum(tally.sessions.values()), "session") + (f" ({parts})" if parts else "")
    return f"{'Would import' if dry_run else 'Imported'} {plural(tally.messages, 'message')} of {sessions}."


def report_import(tally: Tally, options: ImportOptions, *, as_json: bool) -> None:
    """Print the result of the import."""
    if as_json:
        write_json({"schema": SCHEMA, "item": import_json(tally, options)})
        return
    for error in tally.failures.values():
        write_stderr(f"Error: {error.message}")
        if error.hint:
            write_stderr(f"Hint: {error.hint}")
    write_stdout(printable(format_summary(tally, dry_run=options.is_dry_run)))
    if kept := tally.sessions[ImportOutcome.KEPT]:
        write_stderr(
            f"{plural(kept, 'session')} created here left unchanged; pass --add-to-own to add messages to them."
        )
    if tally.skipped_lines:
        write_stderr(f"Skipped {plural(tally.skipped_lines, 'unknown line')}.")
    if tally.failures:
        imported = "their readable parts were imported" if options.keeps_going else "nothing in them was imported"
        write_stderr(f"{len(tally.failures)} of {plural(tally.files, 'file')} failed; {imported}.")


def import_json(tally: Tally, options: ImportOptions) -> dict[str, Any]:
    """Return the result of the import for JSON output."""
    return {
        "dry_run": options.is_dry_run,
        "files": tally.files,
        "sessions": {str(outcome): tally.sessions[outcome] for outcome in ImportOutcome},
        "messages": tally.messages,
        "skipped_lines": tally.skipped_lines,
        "failed": [
            {"path": str(path), "code": error.code, "message": error.message} for path, error in tally.failures.items()
        ],
    }
