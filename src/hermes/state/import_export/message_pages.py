"""Pages of messages that fit into memory, for everything that reads whole sessions: exports, imports, migrations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from hermes.state.engine import Columns, Reading, Values
from hermes.state.operations import chunks, placeholders

T = TypeVar("T")

PAGE_MESSAGES, PAGE_BYTES = 2_000, 8 << 20
"""The limits of a page; a message that is longer alone is a page of its own."""
BEFORE_FIRST = -(2**63)
"""A number below every message id."""

_LONG_COLUMNS = ("content", "tool_calls", "reasoning", "reasoning_details")
_SIZE = " + ".join(f"COALESCE(octet_length({name}), 0)" for name in _LONG_COLUMNS)


class MessagePage(NamedTuple):
    """Some rows of the table of messages, and the names of their columns."""

    columns: Columns
    rows: list[Values]


def read_page(tx: Reading, after: int, *, session_id: str | None = None, columns: str = "*") -> MessagePage:
    """Return the next messages after an id, of one session or of all, as many as fit into memory."""
    table, condition, given = "messages", "", {}
    if session_id is not None:
        table, condition, given = tx.dialect.by_key("messages"), "session_id = :id AND", {"id": session_id}
    sizes = tx.rows(
        f"SELECT id, {_SIZE} FROM {table} WHERE {condition} id > :after ORDER BY id LIMIT :limit",
        after=after,
        limit=PAGE_MESSAGES,
        **given,
    )
    if not sizes:
        return MessagePage((), [])
    names, rows = tx.table(
        f"SELECT {columns} FROM {table} WHERE {condition} id > :after AND id <= :last ORDER BY id",
        after=after,
        last=_last_that_fits(sizes),
        **given,
    )
    return MessagePage(names, rows)


def read_together(tx: Reading, session_ids: Sequence[str], columns: str = "*") -> MessagePage | None:
    """Return all messages of sessions, one session after the other; None if they do not fit into memory together."""
    listed, values = placeholders("id", session_ids)
    count, size = tx.rows(f"SELECT count(*), SUM({_SIZE}) FROM messages WHERE session_id IN ({listed})", **values)[0]
    if count > 2 * PAGE_MESSAGES or (size or 0) > PAGE_BYTES:
        return None
    names, rows = tx.table(
        f"SELECT {columns} FROM messages WHERE session_id IN ({listed}) ORDER BY session_id, id", **values
    )
    return MessagePage(names, rows)


def rows_by_session(
    tx: Reading,
    query: str,
    session_ids: Sequence[str],
    parse: Callable[[Columns, Values], T],
    *,
    key: str = "session_id",
    order: str = "id",
) -> dict[str, list[T]]:
    """Return the rows of a query that belong to these sessions, by their column `session_id`."""
    found: dict[str, list[T]] = {}
    for some in chunks(session_ids):
        listed, values = placeholders("id", some)
        columns, rows = tx.table(f"{query} WHERE {key} IN ({listed}) ORDER BY {key}, {order}", **values)
        place = columns.index("session_id") if rows else 0
        for row in rows:
            found.setdefault(row[place], []).append(parse(columns, row))
    return found


def group_by_messages(
    sessions: Iterable[T], messages_of: Callable[[T], int], most_messages: int, most_sessions: int | None = None
) -> Iterator[list[T]]:
    """Yield groups of sessions that have at most so many messages together; a longer session is a group of its own.

    A group that is full is yielded before the next session is read.
    """
    group: list[T] = []
    messages = 0
    for each in sessions:
        count = messages_of(each)
        if group and messages + count > most_messages:
            yield group
            group, messages = [], 0
        group.append(each)
        messages += count
        if messages >= most_messages or len(group) == most_sessions:
            yield group
            group, messages = [], 0
    if group:
        yield group


def _last_that_fits(sizes: Sequence[Values]) -> int:
    """The last message up to which all fit into a page together; the first one always does."""
    last, left = sizes[0][0], PAGE_BYTES - sizes[0][1]
    for message_id, size in sizes[1:]:
        left -= size
        if left < 0:
            break
        last = message_id
    return int(last)
