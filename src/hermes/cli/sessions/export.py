"""`hermes sessions export`: exports sessions as a backup or as a document to read."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import click

from hermes.cli.display.atomic_file import STDOUT, open_output
from hermes.cli.display.terminal import printable, write_json, write_stderr, write_stdout
from hermes.cli.display.times import MOMENT_FORMS, parse_moment_option
from hermes.cli.options import AS_JSON, SOURCE, AliasedOption
from hermes.cli.progress import progress
from hermes.cli.store import database_file, no_sessions_message, open_for_reading, read_config
from hermes.config import Config
from hermes.errors import InvalidValue, UnknownSession
from hermes.interop.exporter import Form, Lines, write_out
from hermes.phrases import plural
from hermes.state.import_export.session_reader import SelectedSession, select_sessions
from hermes.state.operations import chunks, fetch_sessions, read
from hermes.state.provider import SessionDBProvider
from hermes.state.rows import Row
from hermes.state.sessions.lookup import Purpose, find_session
from hermes.state.sqlite.files.names import JOURNAL, LOG, SHARED_MEMORY, beside

SCHEMA = "hermes.exported/1"
FORMATS = ("jsonl", "md", "html")

OWN_FILES = ("", LOG, SHARED_MEMORY, JOURNAL, ".lock", ".gate", ".spool")
"""The suffixes of the database files, which an export must not overwrite."""

DEEP = 4_000
"""The recursion limit during an export: a stored message may be nested deeply."""


@click.command(
    epilog="""\b
Examples:
  hermes sessions export backup.jsonl
  hermes sessions export talk.html --session "refactoring auth" --redact
  hermes sessions export - --since 7d | gzip > week.jsonl.gz""",
)
@click.argument("output")
@SOURCE
@click.option(
    "--session", "name", cls=AliasedOption, aliases=["--session-id"], metavar="ID|TITLE", help="Only this session."
)
@click.option("--since", metavar="WHEN", help=f"Only sessions active since WHEN: {MOMENT_FORMS}.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Write importable JSON lines, or a document to read. Default: by the suffix of OUTPUT, else jsonl.",
)
@click.option("--redact", is_flag=True, help="Replace keys, tokens and passwords.")
@click.option(
    "--all",
    "-a",
    "with_undone",
    is_flag=True,
    help="Include undone messages and retried answers in documents and redacted exports.",
)
@click.option("--force", is_flag=True, help="Overwrite OUTPUT if it exists.")
@AS_JSON
def export(
    output: str,
    source: str | None,
    name: str | None,
    since: str | None,
    form: str | None,
    redact: bool,
    with_undone: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Export sessions as JSON lines, Markdown or HTML.

    OUTPUT is a file, or - for stdout. The file appears when it is complete, and only you can read it. `hermes sessions
    import` restores exported JSON lines exactly.
    """
    if as_json and output == STDOUT:
        raise click.UsageError("--json needs an OUTPUT file: it prints its summary to stdout")
    form = form or format_for_file(output)
    config = read_config(as_json=as_json)
    moment = parse_moment_option("--since", since, time.time())
    refuse_own_files(config, output)
    sys.setrecursionlimit(max(DEEP, sys.getrecursionlimit()))
    with open_for_reading(config) as store:
        chosen = select_named_sessions(store, config, name, source, moment)
        shape = make_format(form, output, store, chosen, hides_secrets=redact)
        with open_output(output, overwrite=force) as file, progress() as report:
            written = write_out(
                store,
                chosen,
                shape,
                file,
                hides_secrets=redact,
                # JSON lines are a backup; a document for other readers leaves undone messages out.
                with_undone=with_undone or (form == "jsonl" and not redact),
                report=report,
            )
    if output == STDOUT:
        return
    if as_json:
        item = {"path": output, "format": form, "sessions": written.sessions, "messages": written.messages}
        write_json({"schema": SCHEMA, "item": item | {"redacted": written.secrets if redact else None}})
        return
    write_stdout(printable(f"Exported {plural(written.sessions, 'session')} to {output}."))
    if redact:
        write_stderr(f"{plural(written.secrets, 'secret')} replaced. Check the file before you share it.")
    if store is None:
        write_stderr(no_sessions_message(database_file(config)))


def format_for_file(output: str) -> str:
    """Return the format for the suffix of a file."""
    ending = Path(output).suffix.lower().removeprefix(".")
    return ending if ending in FORMATS else FORMATS[0]


def select_named_sessions(
    store: SessionDBProvider | None, config: Config, name: str | None, source: str | None, since: float | None
) -> list[SelectedSession]:
    """Select the sessions to export: the named one, or all that match."""
    if name is None:
        return [] if store is None else select_sessions(store, source=source, since=since)
    if store is None:
        raise UnknownSession(no_sessions_message(database_file(config)), hint="")
    session_id = find_session(store, name, Purpose.READ)
    return [SelectedSession(session_id, store.message_count(session_id))]


def make_format(
    form: str, output: str, store: SessionDBProvider | None, chosen: Sequence[SelectedSession], *, hides_secrets: bool
) -> Form:
    """Return the writer for a format."""
    if form == "md":
        from hermes.cli.transcripts.markdown import Markdown

        return Markdown()
    if form == "html":
        from hermes.cli.transcripts.html import Html

        return Html(partial(read_headings, store, chosen, hides_secrets=hides_secrets), len(chosen))
    return Lines(for_terminal=output == STDOUT and sys.stdout.isatty())


def read_headings(
    store: SessionDBProvider | None, chosen: Sequence[SelectedSession], *, hides_secrets: bool
) -> Iterator[Row]:
    """Yield the rows of the sessions for a table of contents."""
    for some in chunks([each.id for each in chosen]):
        assert store is not None
        rows = read(store, partial(fetch_sessions, session_ids=some))
        for each in some:
            if each in rows:
                yield redact_names({**rows[each]}) if hides_secrets else {**rows[each]}


def redact_names(row: Row) -> Row:
    """Replace secrets in the title and the preview of a session."""
    from hermes.secrets import redact_value

    return row | {name: redact_value(row[name])[0] for name in ("title", "preview")}


def refuse_own_files(config: Config, output: str) -> None:
    """Raise `InvalidValue` if the output is a file of the database itself."""
    if output == STDOUT or config.sessiondb.provider != "sqlite":
        return
    own = [beside(database_file(config).resolve(), suffix) for suffix in OWN_FILES]
    if Path(output).resolve() in own:
        raise InvalidValue(f"{output} belongs to the session database", hint="choose another file")
