"""The command `hermes sessions browse`: chooses the full screen, a numbered list or a plain list."""

from __future__ import annotations

import os
import sys

import click

from hermes.cli.display.terminal import write_stderr, write_stdout
from hermes.cli.options import SOURCE
from hermes.cli.sessions.list_ import HIDDEN_SOURCES, list_
from hermes.cli.store import database_file, no_sessions_message, open_for_reading, read_config
from hermes.config import Config
from hermes.state.provider import SessionDBProvider
from hermes.state.sessions.lists.browsing import BrowseFilter


@click.command(
    epilog="""\b
Type to filter the list, press Enter to resume the selected conversation
and F1 to see all keys. A terminal without a full screen gets a numbered
list; if stdin is not a terminal, this is `hermes sessions list`.

\b
Examples:
  hermes sessions browse
  hermes sessions browse --source telegram""",
)
@SOURCE
@click.option("--archived", "archived_only", is_flag=True, help="Only archived sessions.")
@click.pass_context
def browse(context: click.Context, source: str | None, archived_only: bool) -> None:
    """Find, manage and resume conversations in a full-screen list."""
    if not sys.stdin.isatty() or not sys.stderr.isatty():
        context.invoke(list_, source=source, archived_only=archived_only)
        write_stderr("Not a terminal: resume a session with `hermes -r ID`.")
        return
    config = read_config(as_json=False)
    wanted = BrowseFilter(source=source, hidden_sources=() if source else HIDDEN_SOURCES, archived_only=archived_only)
    with open_for_reading(config) as store:
        if store is None:
            write_stderr(no_sessions_message(database_file(config)))
            return
        session_id = _choose_session(config, store, wanted)
    if session_id is not None:
        from hermes.cli.chat.command import chat_command

        context.invoke(chat_command, resumed=session_id)


def _choose_session(config: Config, store: SessionDBProvider, wanted: BrowseFilter) -> str | None:
    """Return the session that the user chose to resume, if any."""
    from hermes.cli.browse.queries import SessionQueries

    queries = SessionQueries(config, store)
    if not sys.stdout.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        from hermes.cli.browse.numbered_list import choose_by_number

        return choose_by_number(queries, wanted)
    # Importing the screen takes longer than everything else.
    from hermes.cli.browse.screen import Browser

    browser = Browser(queries, wanted)
    session_id = browser.run()
    for line in browser.changes:
        write_stdout(line)
    if browser.return_code:
        raise click.exceptions.Exit(browser.return_code)
    return session_id
