"""The store that a migration copies from: sessions at one moment, and messages in the order of their ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from itertools import groupby
from operator import attrgetter, itemgetter

from hermes.state.engine import Columns, Reading, Values
from hermes.state.import_export.message_pages import BEFORE_FIRST, read_page, read_together, rows_by_session
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
from hermes.state.transfer.session_bundle import Rewind, SessionBundle, group_bundles
from hermes.state.usage.events import EVENT_COLUMNS

PAGE_SESSIONS = 200

_MESSAGE = ", ".join(MESSAGE)
# With `*`, since a store that is only read may lack later columns.
_SESSION = "s.*, (SELECT p.id FROM sessions p WHERE p.id = s.parent_session_id) AS known_parent"


class StoreReader:
    """A store that is read to copy it, or to compare it with its copy."""

    def __init__(self, store: Operations) -> None:
        self._store = store
        self._legacy = read(store, legacy_rows.find_legacy_rows)

    def totals(self) -> tuple[int, int]:
        """Return the number of sessions and of messages."""
        return read(self._store, lambda tx: (_count(tx, "sessions"), _count(tx, "messages")))

    def families(self) -> dict[str, str | None]:
        """Return every session with its parent."""
        rows = read(self._store, lambda tx: tx.rows("SELECT id, parent_session_id FROM sessions"))
        return {**dict.fromkeys(sorted(self._legacy.orphans)), **dict(rows)}

    def bundles(self, session_ids: Sequence[str]) -> list[SessionBundle]:
        """Return sessions as they are at one moment; a session that does not exist is left out."""
        return read(self._store, lambda tx: self._bundles(tx, session_ids)) if session_ids else []

    def messages_after(self, message_id: int) -> list[Message]:
        """Return the next messages of all sessions, as many as fit into memory."""
        return read(self._store, partial(_page, after=message_id))

    def messages_of(self, session_id: str) -> Iterator[list[Message]]:
        """Yield the messages of a session, page by page."""
        after = BEFORE_FIRST
        while page := read(self._store, partial(_page, after=after, session_id=session_id)):
            yield page
            after = page[-1].id

    def uids(self, session_ids: Sequence[str]) -> dict[str, set[str]]:
        """Return the uids of the messages of sessions."""
        listed, values = placeholders("id", session_ids)
        # Only a message without a uid needs its content: its uid is derived from it.
        sql = f"""SELECT session_id, uid, id, timestamp, role, CASE WHEN uid IS NULL THEN content END FROM messages
                  WHERE session_id IN ({listed})"""
        found: dict[str, set[str]] = {}
        for session_id, uid, *known in read(self._store, lambda tx: tx.rows(sql, **values)):
            found.setdefault(session_id, set()).add(derived_uid(*known) if uid is None else uid)
        return found

    def digests(self, bundles: Sequence[SessionBundle]) -> dict[str, str]:
        """Return a hash of each session: of everything that is copied of it, and of its messages."""
        found: dict[str, str] = {}
        for some in group_bundles(bundles):
            hashes = {each.id: sha256(repr(each.comparable).encode(errors="surrogatepass")) for each in some}
            for page in self._messages_of_all(list(hashes)):
                for session_id, messages in groupby(page, key=attrgetter("session_id")):
                    text = "".join([repr(each.without_id) for each in messages])
                    hashes[session_id].update(text.encode(errors="surrogatepass"))
            found.update((session_id, each.hexdigest()) for session_id, each in hashes.items())
        return found

    def _messages_of_all(self, session_ids: Sequence[str]) -> Iterator[list[Message]]:
        """Yield the messages of sessions, one session after the other; short ones come together."""
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
        events = f"SELECT session_id, {', '.join(EVENT_COLUMNS)} FROM usage_events"
        usage = rows_by_session(tx, events, session_ids, _without_session)
        rewinds = rows_by_session(
            tx,
            """SELECT r.session_id, r.action, r.target_message_id, m.uid, r.message_count, r.at FROM rewinds r
               LEFT JOIN messages m ON m.id = r.target_message_id AND m.session_id = r.session_id""",
            session_ids,
            _without_session,
            key="r.session_id",
            order="r.id",
        )
        links = "SELECT session_id, parent_session_id, child_kind FROM pending_links"
        pending_parent = rows_by_session(tx, links, session_ids, _without_session, order="session_id")
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
            # A parent that does not exist counts as none.
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
    """Yield sessions in slices that are read together."""
    return chunks(session_ids, PAGE_SESSIONS)


def _page(tx: Reading, after: int, session_id: str | None = None) -> list[Message]:
    page = read_page(tx, after, session_id=session_id, columns=_MESSAGE)
    return [canonical_message(row) for row in page.rows]


def _short_messages(tx: Reading, session_ids: Sequence[str]) -> list[Message] | None:
    """Return the messages of sessions, None if they do not fit into memory together."""
    page = read_together(tx, session_ids, _MESSAGE)
    return None if page is None else [canonical_message(row) for row in page.rows]


def _without_session(_: Columns, row: Values) -> Values:
    return row[1:]


def _sorted_groups(rows: list[Values]) -> Iterator[tuple[str, Iterator[Values]]]:
    return groupby(sorted(rows, key=itemgetter(0)), key=itemgetter(0))


def _count(tx: Reading, table: str) -> int:
    return int(tx.value(f"SELECT count(*) FROM {table}"))
