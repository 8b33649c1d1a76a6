"""`hermes sessions import`: sessions brought in, from exports and from other programs."""

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
from hermes.interop.detection import Found, Identity, find, identity_of
from hermes.interop.importer import Importer, Tally, Wishes
from hermes.phrases import counted
from hermes.state.import_export.session_writer import ImportOutcome, OnConflict
from hermes.state.provider import SessionDBProvider, open_session_db
from hermes.state.rows import require_identifier
from hermes.state.search.index_backlog import index_backlog
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
@click.option("--dry-run", is_flag=True, help="Only tell what would come in.")
@click.option(
    "--on-conflict",
    type=click.Choice(get_args(OnConflict)),
    default="merge",
    show_default=True,
    help="What to do with a session that is here already: leave it as it is, bring the other in under a new id, or add"
    " the messages that it lacks.",
)
@click.option(
    "--keep-going", is_flag=True, help="Of a file that cannot be read to its end, bring in what comes before."
)
@click.option("--source", metavar="NAME", help="Name this as where the sessions come from.")
@click.option(
    "--keep-owners",
    is_flag=True,
    help="Give sessions to the chat users that the files name as their owners; otherwise they are the terminal's.",
)
@click.option(
    "--add-to-own",
    is_flag=True,
    help="Let files add messages and continuations to sessions that were made here; only for exports of your own.",
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
    """Bring sessions in: exports, files of Claude Code and of the Codex CLI, and database files of any version.

    A FILE is known by what is in it, not by its name; directories are looked through, and - is stdin. Each is checked
    before anything of it comes in. To bring the same in again adds only what is new.
    """
    config = read_config(as_json=as_json)
    named = None if source is None else require_identifier(source, "source")
    wishes = Wishes(on_conflict, dry_run, keep_going, named, keeps_owners=keep_owners, adds_to_own=add_to_own)
    with open_inputs(names) as paths:
        files = list(find(list(paths), find_store_files(config)))
        is_change = not dry_run and any(not isinstance(each.source, HermesError) for each in files)
        with open_store(config, for_change=is_change) as store:
            importer = Importer(store, wishes, time.time(), paths)
            run_import(importer, files, store if is_change else None)
    report_import(importer.tally, wishes, as_json=as_json)
    if importer.tally.failures:
        click.get_current_context().exit(FAILED)


def run_import(importer: Importer, files: Sequence[Found], store: SessionDBProvider | None) -> None:
    """Bring the sessions in and have them indexed, where there is a store to bring them into."""
    try:
        with progress() as report:
            importer.take(files, report)
    except KeyboardInterrupt:
        write_stderr(f"{format_summary(importer.tally, dry_run=store is None)} The rest was not brought in.")
        raise
    if store is None or not importer.tally.messages:
        return
    try:
        with progress() as report:
            index_backlog(store, report)
    except KeyboardInterrupt:
        write_stderr(
            "All is brought in. What is not in the search index yet is found all the same, though not as fast."
        )
        raise


@contextmanager
def open_inputs(names: Sequence[str]) -> Iterator[dict[Path, str]]:
    """The files that are named, those that can be read only once as copies; one that is not there keeps all out.

    Each comes with what it is called, if that is not its path.
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
            f"{name} is a device, not a file of sessions", hint="name a file, a directory, or - for stdin"
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
    """Copy a stream that may never end; the disk is not filled with it."""
    while piece := stream.read(1 << 20):
        if target.tell() + len(piece) > most_bytes:
            raise InvalidValue(
                f"{name} has more than {most_bytes} bytes, half of the free room for temporary files",
                hint="save it to a file on another disk and import that",
            )
        target.write(piece)


@contextmanager
def open_store(config: Config, *, for_change: bool) -> Iterator[SessionDBProvider | None]:
    """The store; a dry run makes none where there is none yet."""
    with open_session_db(config) if for_change else open_for_reading(config) as store:
        yield store


def find_store_files(config: Config) -> set[Identity]:
    """The files that SQLite has open."""
    if config.sessiondb.provider != "sqlite":
        return set()
    files = [beside(database_file(config), suffix) for suffix in ("", LOG, SHARED_MEMORY, JOURNAL)]
    return {identity for each in files if (identity := identity_of(each)) is not None}


def format_summary(tally: Tally, *, dry_run: bool) -> str:
    """What came in, in a sentence."""
    parts = ", ".join(f"{tally.sessions[outcome]} {outcome}" for outcome in ImportOutcome if tally.sessions[outcome])
    sessions = counted(sum(tally.sessions.values()), "session") + (f" ({parts})" if parts else "")
    return f"{'Would import' if dry_run else 'Imported'} {counted(tally.messages, 'message')} of {sessions}."


def report_import(tally: Tally, wishes: Wishes, *, as_json: bool) -> None:
    """Tell what came of it."""
    if as_json:
        write_json({"schema": SCHEMA, "item": import_json(tally, wishes)})
        return
    for error in tally.failures.values():
        write_stderr(f"Error: {error.message}")
        if error.hint:
            write_stderr(f"Hint: {error.hint}")
    write_stdout(printable(format_summary(tally, dry_run=wishes.is_dry_run)))
    if kept := tally.sessions[ImportOutcome.KEPT]:
        write_stderr(f"{counted(kept, 'session')} made here kept as is; --add-to-own adds the messages of the files.")
    if tally.skipped_lines:
        write_stderr(f"{counted(tally.skipped_lines, 'line')} of no kind that is known here passed over.")
    if tally.failures:
        taken = "what comes before it was" if wishes.keeps_going else "nothing of it was"
        write_stderr(f"{len(tally.failures)} of {counted(tally.files, 'file')} failed; {taken} brought in.")


def import_json(tally: Tally, wishes: Wishes) -> dict[str, Any]:
    """What came of it, as JSON tells of it."""
    return {
        "dry_run": wishes.is_dry_run,
        "files": tally.files,
        "sessions": {str(outcome): tally.sessions[outcome] for outcome in ImportOutcome},
        "messages": tally.messages,
        "skipped_lines": tally.skipped_lines,
        "failed": [
            {"path": str(path), "code": error.code, "message": error.message} for path, error in tally.failures.items()
        ],
    }
