"""`hermes sessions export`: sessions taken out, to keep them, to read them or to bring them in elsewhere."""

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
from hermes.cli.options import AS_JSON
from hermes.cli.progress import progress
from hermes.cli.store import database_file, no_sessions_message, open_for_reading, read_config
from hermes.config import Config
from hermes.errors import InvalidValue, UnknownSession
from hermes.interop.exporter import Form, Lines, write_out
from hermes.phrases import counted
from hermes.state.import_export.session_reader import SelectedSession, select_sessions
from hermes.state.operations import chunks, fetch_sessions, read
from hermes.state.provider import SessionDBProvider
from hermes.state.rows import Row
from hermes.state.sessions.lookup import Purpose, find_session
from hermes.state.sqlite.files.names import JOURNAL, LOG, SHARED_MEMORY, beside

SCHEMA = "hermes.exported/1"
FORMATS = ("jsonl", "md", "html")

OWN_FILES = ("", LOG, SHARED_MEMORY, JOURNAL, ".lock", ".gate", ".spool")
"""What belongs to a database file, and must not be written over."""

DEEP = 4_000
"""A message may be nested as deeply as whoever stored it could go; to look through it takes more steps than that."""


@click.command(
    epilog="""\b
Examples:
  hermes sessions export backup.jsonl
  hermes sessions export talk.html --session-id "refactoring auth" --format html --redact
  hermes sessions export - --since 7d | gzip > week.jsonl.gz""",
)
@click.argument("output")
@click.option("--source", metavar="NAME", help="Only sessions from here, such as cli or telegram.")
@click.option("--session-id", "name", metavar="ID|TITLE", help="Only this session.")
@click.option("--since", metavar="WHEN", help=f"Only those in which something was said since then: {MOMENT_FORMS}.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="JSON that can be imported again, or a document to read; default: as OUTPUT ends, else jsonl.",
)
@click.option("--redact", is_flag=True, help="Replace keys, tokens and passwords.")
@click.option(
    "--all",
    "-a",
    "with_undone",
    is_flag=True,
    help="Also what was undone or retried, which documents and redacted exports leave out.",
)
@click.option("--force", is_flag=True, help="Replace OUTPUT if it is there.")
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
    """Take sessions out, with all their messages: one JSON object on each line, or a document to read.

    OUTPUT is a file, or - for stdout. It appears under its name once it is complete, and is readable by you alone.
    `hermes sessions import` brings exported lines back exactly.
    """
    if as_json and output == STDOUT:
        raise click.UsageError("--json tells of a file; there is no room for it beside what goes to stdout")
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
                # Lines are a backup; what is for others to read has only what was meant to be said.
                with_undone=with_undone or (form == "jsonl" and not redact),
                report=report,
            )
    if output == STDOUT:
        return
    if as_json:
        item = {"path": output, "format": form, "sessions": written.sessions, "messages": written.messages}
        write_json({"schema": SCHEMA, "item": item | {"redacted": written.secrets if redact else None}})
        return
    write_stdout(printable(f"Exported {counted(written.sessions, 'session')} to {output}."))
    if redact:
        write_stderr(f"{counted(written.secrets, 'secret')} replaced; read it before you give it away.")
    if store is None:
        write_stderr(no_sessions_message(database_file(config)))


def format_for_file(output: str) -> str:
    """The form that the name of a file asks for."""
    ending = Path(output).suffix.lower().removeprefix(".")
    return ending if ending in FORMATS else FORMATS[0]


def select_named_sessions(
    store: SessionDBProvider | None, config: Config, name: str | None, source: str | None, since: float | None
) -> list[SelectedSession]:
    """The sessions that are meant; one that is named comes alone."""
    if name is None:
        return [] if store is None else select_sessions(store, source=source, since=since)
    if store is None:
        raise UnknownSession(no_sessions_message(database_file(config)), hint="")
    session_id = find_session(store, name, Purpose.READ)
    return [SelectedSession(session_id, store.message_count(session_id))]


def make_format(
    form: str, output: str, store: SessionDBProvider | None, chosen: Sequence[SelectedSession], *, hides_secrets: bool
) -> Form:
    """How the sessions are written."""
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
    """The rows of the sessions, for a list of them."""
    for some in chunks([each.id for each in chosen]):
        assert store is not None
        rows = read(store, partial(fetch_sessions, session_ids=some))
        for each in some:
            if each in rows:
                yield redact_names({**rows[each]}) if hides_secrets else {**rows[each]}


def redact_names(row: Row) -> Row:
    """A session without the secrets that it may be called by."""
    from hermes.interop.secrets import redact_value

    return row | {name: redact_value(row[name])[0] for name in ("title", "preview")}


def refuse_own_files(config: Config, output: str) -> None:
    """Keep a slip of the hand from replacing the store."""
    if output == STDOUT or config.sessiondb.provider != "sqlite":
        return
    own = [beside(database_file(config).resolve(), suffix) for suffix in OWN_FILES]
    if Path(output).resolve() in own:
        raise InvalidValue(f"{output} belongs to the store itself", hint="name another file")
