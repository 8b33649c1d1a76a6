"""Sessions as they are exported: each with everything that an import needs, read in pages that fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from hermes.errors import InvalidValue, StoreError
from hermes.state.engine import Columns, Reading, Values
from hermes.state.import_export.message_pages import (
    BEFORE_FIRST,
    group_by_messages,
    read_page,
    read_together,
    rows_by_session,
)
from hermes.state.import_export.session_checks import EXPORT_SCHEMA
from hermes.state.json_text import loads_or_keep
from hermes.state.messages.drafts import JSON_FIELDS
from hermes.state.operations import Operations, fetch_sessions, read
from hermes.state.rows import Row, message_row, session_row
from hermes.state.sessions.lists.listing import Filter
from hermes.state.usage.events import EVENT_COLUMNS

T = TypeVar("T")

GROUP_MESSAGES, GROUP_SESSIONS = 2_000, 200
"""How many messages and sessions are read in one transaction where sessions are short."""

THINKING = tuple(name for name in JSON_FIELDS if name != "tool_calls")
"""The columns of a message that rows have as JSON text."""


class SelectedSession(NamedTuple):
    """A session to export, and about how many messages it has."""

    id: str
    messages: int


class SessionExport(NamedTuple):
    """A session while it is being read."""

    row: Row
    usage: list[Row]
    rewinds: list[Row]
    pages: Iterator[list[Row]]
    """All of its messages, undone ones too, in order; read them once, before the next session."""

    @property
    def head(self) -> Row:
        """All but its messages, in the form that `check_session` takes."""
        return {"schema": EXPORT_SCHEMA, **self.row, "usage": self.usage, "rewinds": self.rewinds}


def select_sessions(
    store: Operations, *, source: str | None = None, since: float | None = None
) -> list[SelectedSession]:
    """Return the sessions to export, the most recently active first; a compressed conversation is selected whole."""
    wanted = Filter()
    if source is not None:
        wanted.add("source = :source", source=source)
    if since is not None:
        wanted.add(
            "(chain_active >= :since OR chain_root IN (SELECT r.id FROM sessions r WHERE r.chain_active >= :since))",
            since=since,
        )
    rows = read(
        store,
        lambda tx: tx.rows(
            f"""SELECT id, message_count FROM sessions WHERE {wanted.where()}
                ORDER BY last_active DESC, started_at DESC, id DESC""",
            **wanted.values,
        ),
    )
    return [SelectedSession(session_id, count or 0) for session_id, count in rows]


def group_sessions(chosen: Sequence[SelectedSession]) -> Iterator[list[SelectedSession]]:
    """Return the sessions in groups that one transaction can read; a long session is a group of its own."""
    return group_by_messages(chosen, lambda each: each.messages, GROUP_MESSAGES, GROUP_SESSIONS)


def read_sessions(store: Operations, session_ids: Sequence[str], take: Callable[[Iterator[SessionExport]], T]) -> T:
    """Call `take` with sessions as they are at one moment and return its result; deleted sessions are left out.

    A retry calls `take` again, so it must be able to start over.
    """
    return read(store, lambda tx: take(_iter_exports(tx, session_ids)))


class StoredMessages:
    """The messages of a session in a store, read again by every loop over them."""

    def __init__(self, store: Operations, session_id: str) -> None:
        self._store = store
        self._session_id = session_id

    def __iter__(self) -> Iterator[Row]:
        after = BEFORE_FIRST
        while page := self._page(after):
            yield from page
            after = page[-1]["id"]

    def _page(self, after: int) -> list[Row]:
        try:
            return read(self._store, partial(_page, session_id=self._session_id, after=after))
        except StoreError as error:
            # The caller writes to another store and must not take this for a failure of that one.
            raise InvalidValue(f"session {self._session_id!r} cannot be read: {error.message}") from error


def _iter_exports(tx: Reading, session_ids: Sequence[str]) -> Iterator[SessionExport]:
    rows = fetch_sessions(tx, session_ids)
    usage = rows_by_session(tx, "SELECT * FROM usage_events", session_ids, session_row)
    trails = rows_by_session(tx, "SELECT * FROM rewinds", session_ids, session_row)
    short = _short_messages(tx, session_ids)
    for session_id in session_ids:
        if session_id in rows:
            yield SessionExport(
                _plain({**rows[session_id]}),
                [{name: event[name] for name in EVENT_COLUMNS} for event in usage.get(session_id, ())],
                [_rewind(tx, each) for each in trails.get(session_id, ())],
                _pages(tx, session_id) if short is None else iter([short.get(session_id, [])]),
            )


def _rewind(tx: Reading, rewind: Row) -> Row:
    """Return a rewind that names its message by uid, since each store numbers messages itself."""
    columns, rows = tx.table(
        "SELECT * FROM messages WHERE id = :id AND session_id = :session",
        id=rewind["target_message_id"],
        session=rewind["session_id"],
    )
    target = message_row(columns, rows[0])["uid"] if rows else None
    return {
        "action": rewind["action"],
        "target_uid": target,
        **{name: rewind[name] for name in ("message_count", "at")},
    }


def _short_messages(tx: Reading, session_ids: Sequence[str]) -> dict[str, list[Row]] | None:
    """Return the messages of short sessions by session, None if they do not fit into memory together."""
    page = read_together(tx, session_ids)
    if page is None:
        return None
    found: dict[str, list[Row]] = {}
    for row in page.rows:
        message = _message(page.columns, row)
        found.setdefault(message["session_id"], []).append(message)
    return found


def _pages(tx: Reading, session_id: str) -> Iterator[list[Row]]:
    after = BEFORE_FIRST
    while page := _page(tx, session_id, after):
        yield page
        after = page[-1]["id"]


def _page(tx: Reading, session_id: str, after: int) -> list[Row]:
    page = read_page(tx, after, session_id=session_id)
    return [_message(page.columns, row) for row in page.rows]


def _message(columns: Columns, values: Values) -> Row:
    """Return a message with its JSON parsed; text that is not JSON stays text."""
    row = message_row(columns, values)
    if row["tool_calls"] is not None and not row["tool_calls"]:
        row["tool_calls"] = loads_or_keep(values[columns.index("tool_calls")]) or None
    for name in THINKING:
        if row[name] is not None:
            row[name] = loads_or_keep(row[name]) or None
    return _plain(row)


def _plain(row: Row) -> Row:
    """Return a row with text instead of bytes, which only an older program stored."""
    if bytes not in map(type, row.values()):
        return row
    return {
        name: value.decode("utf-8", "replace") if isinstance(value, bytes) else value for name, value in row.items()
    }
