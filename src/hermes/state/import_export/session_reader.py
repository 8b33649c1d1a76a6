"""Sessions on their way out: each with everything that is needed to bring it back, read without being held whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from hermes.errors import InvalidValue, StoreError
from hermes.state import json_text
from hermes.state.engine import Columns, Reading, Values
from hermes.state.import_export.session_checks import EXPORT_SCHEMA
from hermes.state.messages.drafts import JSON_FIELDS
from hermes.state.operations import Operations, chunks, fetch_sessions, placeholders, read
from hermes.state.rows import Row, message_row, session_row
from hermes.state.sessions.listing import Filter
from hermes.state.usage.events import EVENT_COLUMNS

T = TypeVar("T")

GROUP_MESSAGES, GROUP_SESSIONS = 2_000, 200
"""How much is read at one moment of the store where sessions are short."""
PAGE_MESSAGES, PAGE_BYTES = 1_000, 8 << 20
"""How much is in memory at a time, but for a message that is longer than that alone."""

_SIZE = " + ".join(f"COALESCE(octet_length({name}), 0)" for name in ("content", "tool_calls", "reasoning"))

THINKING = tuple(name for name in JSON_FIELDS if name != "tool_calls")
"""The columns of a message that are read as the JSON text they are."""


class SelectedSession(NamedTuple):
    """A session that is to go out, and about how long it is."""

    id: str
    messages: int


class SessionExport(NamedTuple):
    """A session while it is being read."""

    row: Row
    usage: list[Row]
    rewinds: list[Row]
    pages: Iterator[list[Row]]
    """All of its messages, hidden ones too, in order; to be gone through once, before the next session."""

    @property
    def head(self) -> Row:
        """All but its messages, as `check_session` takes it back."""
        return {"schema": EXPORT_SCHEMA, **self.row, "usage": self.usage, "rewinds": self.rewinds}


def select_sessions(
    store: Operations, *, source: str | None = None, since: float | None = None
) -> list[SelectedSession]:
    """The sessions to export, the most recently active first; a compressed conversation is chosen whole."""
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
    """The sessions in groups that are short enough to be read at one moment, one by one where they are long."""
    group: list[SelectedSession] = []
    messages = 0
    for each in chosen:
        if group and (messages + each.messages > GROUP_MESSAGES or len(group) == GROUP_SESSIONS):
            yield group
            group, messages = [], 0
        group.append(each)
        messages += each.messages
    if group:
        yield group


def read_sessions(store: Operations, session_ids: Sequence[str], take: Callable[[Iterator[SessionExport]], T]) -> T:
    """Hand sessions to `take`, all as they are at one moment; one that was deleted meanwhile is passed over.

    `take` may be called again (another attempt), so it must be able to start over.
    """
    return read(store, lambda tx: take(_iter_exports(tx, session_ids)))


class StoredMessages:
    """The messages of a session in a store, read whenever they are gone through."""

    def __init__(self, store: Operations, session_id: str) -> None:
        self._store = store
        self._session_id = session_id

    def __iter__(self) -> Iterator[Row]:
        after = -1
        while page := self._page(after):
            yield from page
            after = page[-1]["id"]

    def _page(self, after: int) -> list[Row]:
        try:
            return read(self._store, partial(_page, session_id=self._session_id, after=after))
        except StoreError as error:
            # Whoever puts them into another store must not take it for a failure of that one.
            raise InvalidValue(f"session {self._session_id!r} cannot be read: {error.message}") from error


def _iter_exports(tx: Reading, session_ids: Sequence[str]) -> Iterator[SessionExport]:
    rows = fetch_sessions(tx, session_ids)
    usage = _by_session(tx, "usage_events", session_ids)
    trails = _by_session(tx, "rewinds", session_ids)
    short = _short_messages(tx, session_ids)
    for session_id in session_ids:
        if session_id in rows:
            yield SessionExport(
                _plain({**rows[session_id]}),
                [{name: event[name] for name in EVENT_COLUMNS} for event in usage.get(session_id, ())],
                [_rewind(tx, each) for each in trails.get(session_id, ())],
                _pages(tx, session_id) if short is None else iter([short.get(session_id, [])]),
            )


def _by_session(tx: Reading, table: str, session_ids: Sequence[str]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for some in chunks(session_ids):
        listed, values = placeholders("id", some)
        columns, rows = tx.table(f"SELECT * FROM {table} WHERE session_id IN ({listed}) ORDER BY id", **values)
        for row in rows:
            event = session_row(columns, row)
            found.setdefault(event["session_id"], []).append(event)
    return found


def _rewind(tx: Reading, rewind: Row) -> Row:
    """A rewind that names its message by uid, for ids are another store's own."""
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
    """The messages of sessions that are short, by session, or None if together they are long."""
    listed, values = placeholders("id", session_ids)
    count, size = tx.rows(f"SELECT count(*), SUM({_SIZE}) FROM messages WHERE session_id IN ({listed})", **values)[0]
    if count > 2 * GROUP_MESSAGES or (size or 0) > PAGE_BYTES:
        return None
    columns, rows = tx.table(f"SELECT * FROM messages WHERE session_id IN ({listed}) ORDER BY session_id, id", **values)
    found: dict[str, list[Row]] = {}
    for row in rows:
        message = _message(columns, row)
        found.setdefault(message["session_id"], []).append(message)
    return found


def _pages(tx: Reading, session_id: str) -> Iterator[list[Row]]:
    after = -1
    while page := _page(tx, session_id, after):
        yield page
        after = page[-1]["id"]


def _page(tx: Reading, session_id: str, after: int) -> list[Row]:
    sizes = tx.rows(
        f"""SELECT id, {_SIZE} FROM {tx.dialect.by_key("messages")}
            WHERE session_id = :id AND id > :after ORDER BY id LIMIT :limit""",
        id=session_id,
        after=after,
        limit=PAGE_MESSAGES,
    )
    columns, rows = tx.table(
        f"""SELECT * FROM {tx.dialect.by_key("messages")}
            WHERE session_id = :id AND id > :after AND id <= :last ORDER BY id""",
        id=session_id,
        after=after,
        last=_last_that_fits(sizes),
    )
    return [_message(columns, row) for row in rows]


def _last_that_fits(sizes: Sequence[Values]) -> int:
    """The last message up to which all are short enough together; the first one always is."""
    last, room = -1, PAGE_BYTES
    for message_id, size in sizes:
        room -= size
        if room < 0 <= last:
            break
        last = message_id
    return last


def _message(columns: Columns, values: Values) -> Row:
    """A message with its JSON as what it stands for; what cannot be parsed goes out as the text it is."""
    row = message_row(columns, values)
    if row["tool_calls"] is not None and not row["tool_calls"]:
        row["tool_calls"] = _parsed(values[columns.index("tool_calls")]) or None
    for name in THINKING:
        if row[name] is not None:
            row[name] = _parsed(row[name]) or None
    return _plain(row)


def _parsed(text: Any) -> Any:
    try:
        return json_text.loads(text)
    except (TypeError, ValueError, RecursionError):
        return text


def _plain(row: Row) -> Row:
    """A row with text in the place of bytes, which only an older program stored."""
    if bytes not in map(type, row.values()):
        return row
    return {
        name: value.decode("utf-8", "replace") if isinstance(value, bytes) else value for name, value in row.items()
    }
