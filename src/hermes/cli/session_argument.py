"""The session argument that many commands take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import click

from hermes.cli.store import database_file, no_sessions_message, open_for_change, open_for_reading
from hermes.config import Config
from hermes.errors import UnknownSession
from hermes.state.provider import SessionDBProvider
from hermes.state.rows import AnyRow
from hermes.state.sessions.lookup import Purpose, find_session

SESSION = click.argument("name", metavar="ID|TITLE")


class NamedSession(NamedTuple):
    """A session and its open store."""

    store: SessionDBProvider
    id: str
    row: AnyRow


@contextmanager
def open_named_session(config: Config, name: str, *, for_change: bool = False) -> Iterator[NamedSession]:
    """Open the store and yield the session that the user named by its id or title."""
    with (open_for_change if for_change else open_for_reading)(config) as store:
        if store is None:
            raise UnknownSession(no_sessions_message(database_file(config)), hint="")
        session_id = find_session(store, name, Purpose.CHANGE if for_change else Purpose.READ)
        row = store.get_session(session_id)
        if row is None:
            raise UnknownSession(f"session {session_id!r} was just deleted")
        yield NamedSession(store, session_id, row)
