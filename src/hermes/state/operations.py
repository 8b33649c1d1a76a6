"""Shared by all groups of operations: an engine, a clock, and SQL helpers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

from hermes.clock import Clock
from hermes.errors import InvalidValue, UnknownSession
from hermes.state.engine import Engine, Reading, Transaction
from hermes.state.owner import EVERYBODY, Asker, Owner, OwnerName, parse_asker
from hermes.state.rows import Row, optional_integer, require_integer, session_row

if TYPE_CHECKING:
    from hermes.state.row_types import SessionRow

T = TypeVar("T")

UNLIMITED = 2**62
LIKE_ESCAPES = str.maketrans({"!": "!!", "%": "!%", "_": "!_"})
"""Escapes a text for a LIKE with `ESCAPE '!'`."""
CHUNK = 400
"""How many values one statement lists; far below every engine's limit."""

LINKS = ("parent_session_id", "chain_root")
"""The columns of a session that refer to another session."""


NO_LIMIT = -1
"""SQLite's value for no limit; callers may use it too."""


def row_limit(limit: int | None) -> int:
    """Return how many rows to read: all for None or -1, none for 0."""
    number = optional_integer(limit, "limit")
    if number is None or number == NO_LIMIT:
        return UNLIMITED
    if number < 0:
        raise InvalidValue(f"limit must not be {limit}", hint="pass None (or -1) for no limit, 0 for nothing")
    return min(number, UNLIMITED)


def row_offset(offset: int) -> int:
    """Return how many rows to skip; a negative offset counts as 0."""
    return min(max(0, require_integer(offset, "offset")), UNLIMITED)


class Operations:
    """A group of operations on a session store."""

    _engine: Engine
    _clock: Clock
    _asker: Asker = EVERYBODY
    """The asker for whom every operation of this object reads and writes."""

    def _asker_for(self, owner: OwnerName) -> Asker:
        """Return the asker of a call: the owner it names, or this object's asker; a view can name no other owner."""
        requested = parse_asker(owner)
        if self._asker is EVERYBODY:
            return requested
        if owner is not None and requested != self._asker:
            raise InvalidValue("this view cannot read the sessions of another owner", hint="leave out owner")
        return self._asker


def read(store: Operations, work: Callable[[Reading], T]) -> T:
    """Run `work` on the sessions of all owners, for modules that are not operations of the store.

    Raise InvalidValue for a view of one owner: such code calls `read_for`, which passes on the asker.
    """
    if store._asker is not EVERYBODY:
        raise InvalidValue("this reads the sessions of all owners, so a view of one owner cannot run it")
    return store._engine.read(work)


def read_for(store: Operations, owner: OwnerName, work: Callable[[Reading, Asker], T]) -> T:
    """Run `work` on the sessions that a call may see; `work` receives the asker."""
    asker = store._asker_for(owner)
    return store._engine.read(lambda tx: work(tx, asker))


def owner_condition(asker: Asker, column: str = "owner") -> str:
    """Return a condition that limits a statement to the asker's sessions; bind `:whose` to `asker.stored`."""
    if asker is EVERYBODY:
        return ""
    return f"AND {column} IS NULL" if asker.stored is None else f"AND {column} = :whose"


def session_owner_condition(asker: Asker) -> str:
    """Return a condition that is false unless the asker may see the session `:id`."""
    if asker is EVERYBODY:
        return ""
    return f"AND EXISTS (SELECT 1 FROM sessions w WHERE w.id = :id {owner_condition(asker, 'w.owner')})"


def can_see_owner(asker: Asker, owner: str | None) -> bool:
    """Whether the asker may see a session with this `owner` column."""
    return not isinstance(asker, Owner) or asker.stored == owner


def placeholders(name: str, values: Sequence[Any]) -> tuple[str, dict[str, Any]]:
    """Return `:name0, :name1` and their values; `NULL`, which matches nothing, for an empty list."""
    if not values:
        return "NULL", {}
    return ", ".join(f":{name}{i}" for i in range(len(values))), {f"{name}{i}": value for i, value in enumerate(values)}


@cache
def insert_into(table: str, columns: tuple[str, ...]) -> str:
    """Return an INSERT of one row with only these columns, because each one costs time."""
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(f':{name}' for name in columns)})"


def chunks(values: Sequence[T], size: int = CHUNK) -> Iterator[Sequence[T]]:
    """Yield the values in slices that fit into one statement."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


def fetch_session(tx: Reading, session_id: str, asker: Asker) -> SessionRow | None:
    """Return a session's row, if it exists and the asker may see it."""
    columns, rows = tx.table(
        f"SELECT * FROM sessions WHERE id = :id {owner_condition(asker)}", id=session_id, whose=asker.stored
    )
    found = hide_foreign_links(tx, [session_row(columns, rows[0])], asker) if rows else [None]
    return cast("SessionRow | None", found[0])


def fetch_sessions(tx: Reading, session_ids: Sequence[str], columns: str = "*") -> dict[str, SessionRow]:
    """Return sessions by id, with all columns or some."""
    found: dict[str, SessionRow] = {}
    for some in chunks(session_ids):
        listed, values = placeholders("id", some)
        names, rows = tx.table(f"SELECT {columns} FROM sessions WHERE id IN ({listed})", **values)
        for row in rows:
            session = cast("SessionRow", session_row(names, row))
            found[session["id"]] = session
    return found


def lock_sessions(tx: Transaction, session_ids: Sequence[str]) -> None:
    """Lock sessions between reading and changing them, if the engine allows several writers."""
    if not tx.dialect.for_update:
        return
    for some in chunks(sorted(session_ids)):
        _, values = placeholders("id", some)
        tx.rows(
            f"SELECT id {tx.dialect.from_where_in('sessions', 'id', values)} ORDER BY id {tx.dialect.for_update}",
            **values,
        )


def hide_foreign_links(tx: Reading, rows: list[Row], asker: Asker) -> list[Row]:
    """Clear the links from the asker's sessions to other owners' sessions: the parent and the root of the chain."""
    if asker is EVERYBODY:
        return rows
    own = {row["id"] for row in rows}
    linked = {row[name] for row in rows for name in LINKS if row[name] is not None}
    for some in chunks(sorted(linked - own)):
        listed, values = placeholders("id", some)
        found = tx.rows(
            f"SELECT id FROM sessions WHERE id IN ({listed}) {owner_condition(asker)}", whose=asker.stored, **values
        )
        own.update(row[0] for row in found)
    for row in rows:
        row.update({name: None for name in LINKS if row[name] not in own})
    return rows


def may_see(tx: Reading, session_id: str, asker: Asker) -> bool:
    """Whether an asker may see a session; EVERYBODY may, also one that does not exist."""
    return asker is EVERYBODY or has_session(tx, session_id, asker)


def has_session(tx: Reading, session_id: str, asker: Asker) -> bool:
    """Whether the session exists and the asker may see it."""
    found = tx.value(
        f"SELECT 1 FROM sessions WHERE id = :id {owner_condition(asker)}", id=session_id, whose=asker.stored
    )
    return found is not None


def unknown_session(session_id: str) -> UnknownSession:
    """Return the error for a session that does not exist."""
    return UnknownSession(f"there is no session {session_id!r}")


def has_messages(tx: Reading, session_id: str) -> bool:
    """Whether a session has any message, including undone ones."""
    return tx.value("SELECT 1 FROM messages WHERE session_id = :id LIMIT 1", id=session_id) is not None
