"""What all groups of operations share: an engine, a clock, and a few phrases of SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

from hermes.clock import Clock
from hermes.errors import InvalidValue, UnknownSession
from hermes.state.engine import Engine, Reading, Transaction
from hermes.state.rows import count, optional_integer, session_row

if TYPE_CHECKING:
    from hermes.state.rowtypes import SessionRow

T = TypeVar("T")

UNLIMITED = 2**62
LIKE_ESCAPES = str.maketrans({"!": "!!", "%": "!%", "_": "!_"})
"""With which a text stands for itself in a LIKE that says `ESCAPE '!'`."""
CHUNK = 400
"""How many values one statement lists; far below any engine's limit."""


NO_LIMIT = -1
"""What SQLite calls no limit, as a caller may."""


def row_limit(limit: int | None) -> int:
    """How many rows a caller wants: None or -1 stands for all of them, 0 for none."""
    number = optional_integer(limit, "limit")
    if number is None or number == NO_LIMIT:
        return UNLIMITED
    if number < 0:
        raise InvalidValue(f"limit must not be {limit}", hint="pass None (or -1) for no limit, 0 for nothing")
    return min(number, UNLIMITED)


def row_offset(offset: int) -> int:
    """How many rows a caller wants to skip; less than none is none."""
    return min(max(0, count(offset, "offset")), UNLIMITED)


class Operations:
    """A group of operations on a session store."""

    _engine: Engine
    _clock: Clock


def read(store: Operations, work: Callable[[Reading], T]) -> T:
    """Run a reading on a store, for modules that build on its operations without being one of them."""
    return store._engine.read(work)


def placeholders(name: str, values: Sequence[Any]) -> tuple[str, dict[str, Any]]:
    """`:name0, :name1` and the values for them; nothing can match an empty list."""
    if not values:
        return "NULL", {}
    return ", ".join(f":{name}{i}" for i in range(len(values))), {f"{name}{i}": value for i, value in enumerate(values)}


@cache
def insert_into(table: str, columns: tuple[str, ...]) -> str:
    """An INSERT of one row with just these columns: each one costs time."""
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(f':{name}' for name in columns)})"


def chunks(values: Sequence[T], size: int = CHUNK) -> Iterator[Sequence[T]]:
    """The values in slices that fit into one statement."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


def fetch_session(tx: Reading, session_id: str, owner: str | None = None) -> SessionRow | None:
    """A session's row, if it exists and the owner may see it."""
    columns, rows = tx.table("SELECT * FROM sessions WHERE id = :id", id=session_id)
    if not rows:
        return None
    row = cast("SessionRow", session_row(columns, rows[0]))
    return row if owner is None or row["owner"] == owner else None


def fetch_sessions(tx: Reading, session_ids: Sequence[str]) -> dict[str, SessionRow]:
    """Sessions by id."""
    found: dict[str, SessionRow] = {}
    for some in chunks(session_ids):
        listed, values = placeholders("id", some)
        columns, rows = tx.table(f"SELECT * FROM sessions WHERE id IN ({listed})", **values)
        for row in rows:
            session = cast("SessionRow", session_row(columns, row))
            found[session["id"]] = session
    return found


def hold_sessions(tx: Transaction, session_ids: Sequence[str]) -> None:
    """Keep others from changing sessions between a look at them and a change, where the engine has several writers."""
    if not tx.dialect.for_update:
        return
    for some in chunks(sorted(session_ids)):
        _, values = placeholders("id", some)
        tx.rows(f"SELECT id {tx.dialect.among('sessions', 'id', values)} ORDER BY id {tx.dialect.for_update}", **values)


def may_see(tx: Reading, session_id: str, owner: str | None) -> bool:
    """Whether an asker may see a session; None asks for everybody."""
    if owner is None:
        return True
    return tx.value("SELECT 1 FROM sessions WHERE id = :id AND owner = :owner", id=session_id, owner=owner) is not None


def unknown_session(session_id: str) -> UnknownSession:
    """The error for a session that is not there."""
    return UnknownSession(f"there is no session {session_id!r}")
