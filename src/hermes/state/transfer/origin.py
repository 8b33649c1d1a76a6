"""A store while it is read for being carried: sessions at one moment, and messages in the order of their ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

from hermes.state.engine import Reading, Values
from hermes.state.operations import Operations, chunks, placeholders, read
from hermes.state.rows import Row, derived_uid
from hermes.state.transfer import legacy_rows
from hermes.state.transfer.canonical_rows import (
    MESSAGE,
    Message,
    canonical_message,
    canonical_session,
    canonical_usage_event,
    count_tools,
)
from hermes.state.transfer.session_bundle import Rewind, SessionBundle, grouped
from hermes.state.usage.events import EVENT_COLUMNS

PAGE_MESSAGES, PAGE_BYTES = 2_000, 8 << 20
"""How much is in memory at a time, but for a message that is longer than that alone."""
PAGE_SESSIONS = 200

_SIZE = " + ".join(
    f"COALESCE(octet_length({name}), 0)" for name in ("content", "tool_calls", "reasoning", "reasoning_details")
)
# All columns that there are: a store that is only read may lack a later one.
_SESSION = "s.*, (SELECT p.id FROM sessions p WHERE p.id = s.parent_session_id) AS known_parent"


class StoreReader:
    """A store as it is read for being carried, or for being compared with what was."""

    def __init__(self, store: Operations) -> None:
        self._store = store
        self._legacy = read(store, legacy_rows.find_legacy_rows)

    def totals(self) -> tuple[int, int]:
        """How many sessions and messages there are."""
        return read(self._store, lambda tx: (_count(tx, "sessions"), _count(tx, "messages")))

    def families(self) -> dict[str, str | None]:
        """Every session with its parent."""
        rows = read(self._store, lambda tx: tx.rows("SELECT id, parent_session_id FROM sessions"))
        return {**dict.fromkeys(sorted(self._legacy.orphans)), **dict(rows)}

    def bundles(self, session_ids: Sequence[str]) -> list[SessionBundle]:
        """Sessions as they are at one moment; one that is not there is passed over."""
        return read(self._store, lambda tx: self._bundles(tx, session_ids)) if session_ids else []

    def messages_after(self, message_id: int) -> list[Message]:
        """The next messages of all sessions, as many as fit into memory."""
        return read(self._store, partial(_page, condition="1 = 1", after=message_id))

    def messages_of(self, session_id: str) -> Iterator[list[Message]]:
        """The messages of a session, page by page."""
        after = -(2**63)
        while page := read(self._store, partial(_page, condition="session_id = :id", after=after, id=session_id)):
            yield page
            after = page[-1].id

    def uids(self, session_ids: Sequence[str]) -> dict[str, set[str]]:
        """The uids of the messages of sessions."""
        listed, values = placeholders("id", session_ids)
        # Only those without a uid are known by what they say.
        sql = f"""SELECT session_id, uid, id, timestamp, role, CASE WHEN uid IS NULL THEN content END FROM messages
                  WHERE session_id IN ({listed})"""
        found: dict[str, set[str]] = {}
        for session_id, uid, *known in read(self._store, lambda tx: tx.rows(sql, **values)):
            found.setdefault(session_id, set()).add(derived_uid(*known) if uid is None else uid)
        return found

    def digests(self, bundles: Sequence[SessionBundle]) -> dict[str, str]:
        """A hash of each session: of all that is carried of it, and of its messages."""
        found: dict[str, str] = {}
        for some in grouped(bundles):
            hashes = {each.id: sha256(repr(each.comparable).encode(errors="surrogatepass")) for each in some}
            for page in self._messages_of_all(list(hashes)):
                for session_id, messages in groupby(page, key=attrgetter("session_id")):
                    text = "".join([repr(each.without_id) for each in messages])
                    hashes[session_id].update(text.encode(errors="surrogatepass"))
            found.update((session_id, each.hexdigest()) for session_id, each in hashes.items())
        return found

    def _messages_of_all(self, session_ids: Sequence[str]) -> Iterator[list[Message]]:
        """The messages of sessions, one session after the other, together where they are short."""
        if len(session_ids) > 1:
            short = read(self._store, lambda tx: _short_messages(tx, session_ids))
            if short is not None:
                yield short
                return
        for session_id in session_ids:
            yield from self.messages_of(session_id)

    def _bundles(self, tx: Reading, session_ids: Sequence[str]) -> list[SessionBundle]:
        listed, values = placeholders("id", session_ids)
        rows = self._rows(tx, session_ids)
        usage = _by_session(tx, f"SELECT session_id, {', '.join(EVENT_COLUMNS)} FROM usage_events", listed, values)
        rewinds = _by_session(
            tx,
            """SELECT r.session_id, r.action, r.target_message_id, m.uid, r.message_count, r.at FROM rewinds r
               LEFT JOIN messages m ON m.id = r.target_message_id AND m.session_id = r.session_id""",
            listed,
            values,
            "r.session_id",
            "r.id",
        )
        links = "SELECT session_id, parent_session_id, child_kind FROM pending_links"
        pending_parent = _by_session(tx, links, listed, values, order="session_id")
        tools = self._tools(tx, listed, values)
        counts: dict[str, int] = dict(
            tx.rows(
                f"SELECT session_id, count(*) FROM messages WHERE session_id IN ({listed}) GROUP BY session_id",
                **values,
            )
        )
        return [
            SessionBundle(
                row=rows[each],
                usage=legacy_rows.usage_or_opening(
                    rows[each], [canonical_usage_event(event) for event in usage.get(each, ())]
                ),
                rewinds=[Rewind(*rewind) for rewind in rewinds.get(each, ())],
                tools=sorted(tools.get(each, ())),
                pending_parent=next(((parent, kind) for parent, kind in pending_parent.get(each, ())), None),
                messages=counts.get(each, 0),
            )
            for each in session_ids
            if each in rows
        ]

    def _rows(self, tx: Reading, session_ids: Sequence[str]) -> dict[str, Row]:
        listed, values = placeholders("id", session_ids)
        found = {}
        columns, rows = tx.table(f"SELECT {_SESSION} FROM sessions s WHERE s.id IN ({listed})", **values)
        for row in rows:
            stored = dict(zip(columns, row, strict=True))
            # A parent that is not there is none.
            canonical = canonical_session({**stored, "parent_session_id": stored["known_parent"]})
            canonical["title"] = self._legacy.titles.get(canonical["id"], canonical["title"])
            is_counted = canonical["id"] not in self._legacy.uncounted
            found[canonical["id"]] = canonical if is_counted else legacy_rows.with_recount(tx, canonical)
        for session_id in self._legacy.orphans.intersection(session_ids) - found.keys():
            if (made_up := legacy_rows.session_of_orphans(tx, session_id)) is not None:
                found[session_id] = made_up
        return found

    def _tools(self, tx: Reading, listed: str, values: dict[str, str]) -> Mapping[str, Sequence[tuple[str, int]]]:
        if not self._legacy.counts_no_tools:
            rows = tx.rows(
                f"SELECT session_id, tool_name, calls FROM session_tools WHERE session_id IN ({listed})", **values
            )
            return {session_id: [(name, calls) for _, name, calls in some] for session_id, some in _sorted_groups(rows)}
        rows = tx.rows(
            f"""SELECT session_id, tool_calls FROM messages
                WHERE session_id IN ({listed}) AND active = 1 AND tool_calls IS NOT NULL""",
            **values,
        )
        return {
            session_id: list(count_tools(calls for _, calls in some).items())
            for session_id, some in _sorted_groups(rows)
        }


def pages_of(session_ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """Sessions, as many at a time as are looked at together."""
    return chunks(session_ids, PAGE_SESSIONS)


def _short_messages(tx: Reading, session_ids: Sequence[str]) -> list[Message] | None:
    """The messages of sessions, or None if together they are long."""
    listed, values = placeholders("id", session_ids)
    size = tx.value(f"SELECT SUM({_SIZE}) FROM messages WHERE session_id IN ({listed})", **values)
    if (size or 0) > PAGE_BYTES:
        return None
    rows = tx.rows(
        f"SELECT {', '.join(MESSAGE)} FROM messages WHERE session_id IN ({listed}) ORDER BY session_id, id", **values
    )
    return [canonical_message(row) for row in rows]


def _page(tx: Reading, condition: str, after: int, **values: Any) -> list[Message]:
    sizes = tx.rows(
        f"SELECT id, {_SIZE} FROM messages WHERE {condition} AND id > :after ORDER BY id LIMIT :limit",
        after=after,
        limit=PAGE_MESSAGES,
        **values,
    )
    if not sizes:
        return []
    rows = tx.rows(
        f"SELECT {', '.join(MESSAGE)} FROM messages WHERE {condition} AND id > :after AND id <= :last ORDER BY id",
        after=after,
        last=_last_that_fits(sizes),
        **values,
    )
    return [canonical_message(row) for row in rows]


def _last_that_fits(sizes: Sequence[Values]) -> int:
    """The last message up to which all are short enough together; the first one always is."""
    last, room = sizes[0][0], PAGE_BYTES - sizes[0][1]
    for message_id, size in sizes[1:]:
        room -= size
        if room < 0:
            break
        last = message_id
    return int(last)


def _by_session(
    tx: Reading, query: str, listed: str, values: dict[str, str], key: str = "session_id", order: str = "id"
) -> dict[str, list[Values]]:
    rows = tx.rows(f"{query} WHERE {key} IN ({listed}) ORDER BY {key}, {order}", **values)
    return {session_id: [row[1:] for row in some] for session_id, some in groupby(rows, key=itemgetter(0))}


def _sorted_groups(rows: list[Values]) -> Iterator[tuple[str, Iterator[Values]]]:
    return groupby(sorted(rows, key=itemgetter(0)), key=itemgetter(0))


def _count(tx: Reading, table: str) -> int:
    return int(tx.value(f"SELECT count(*) FROM {table}"))
