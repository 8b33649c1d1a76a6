"""Making salvaged rows consistent again, with the help of the entries in the indexes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import apsw

from hermes.state.sqlite.repair.fileformat.records import Value
from hermes.state.sqlite.repair.fileformat.table_layouts import SchemaModel

BATCH = 2_000
WITNESSES = 2
"""A row in only one index may be a mistake of that index."""
HIGHEST_KEY = 1 << 53
"""Above any key that a table reaches by counting."""

Entry = tuple[Sequence[str | None], Sequence[Value]]
"""The columns of an index and the values of one of its entries; the last value is the key of the row."""


class ConsistencyRepair:
    """Repairs the tables of a new file that has no indexes and no triggers yet."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        for table in (
            "stray (id INTEGER PRIMARY KEY)",
            "entry (id INTEGER PRIMARY KEY, session_id TEXT, seen INTEGER)",
            "made (id TEXT PRIMARY KEY)",
        ):
            self._run(f"CREATE TEMP TABLE {table}")

    def note_unreachable(self, ids: Iterable[int]) -> None:
        """Remember which messages that are not in the new file yet come from pages that no tree leads to."""
        self._run_many(
            "INSERT OR IGNORE INTO stray SELECT ?1 WHERE NOT EXISTS (SELECT 1 FROM messages WHERE id = ?1)",
            ((each,) for each in ids),
        )

    def note_entries(self, entries: Iterable[Entry]) -> None:
        """Remember which messages belonged to which sessions, according to the indexes."""
        keyed = ((columns.index("session_id"), values) for columns, values in entries if "session_id" in columns)
        self._run_many(
            "INSERT INTO entry VALUES (?, ?, 1) ON CONFLICT (id) DO UPDATE SET seen = seen + 1",
            ((values[-1], values[at]) for at, values in keyed if isinstance(values[at], str)),
        )

    def rebuild_sessions(self, entries: Iterable[Entry], known: Sequence[str]) -> int:
        """Rebuild sessions whose rows are lost, from the entries of the indexes; return how many.

        A session whose row has a different id than its index entries gets that id back.
        """
        found: dict[Value, dict[str | None, Value]] = {}
        witnesses: Counter[Value] = Counter()
        for columns, values in entries:
            key = values[-1]
            fields = {name: value for name, value in zip(columns, values, strict=True) if name in known}
            row = self._rows("SELECT id FROM sessions WHERE rowid = ?", key)
            if not row or fields.get("id", row[0][0]) != row[0][0]:
                found.setdefault(key, {}).update(fields)
                witnesses[key] += 1
        return sum(self._rebuild(key, fields) for key, fields in found.items() if witnesses[key] >= WITNESSES)

    def _rebuild(self, key: Value, fields: Mapping[str | None, Value]) -> int:
        session_id = fields.get("id")
        if not isinstance(session_id, str):
            return 0
        if self._run("UPDATE OR IGNORE sessions SET id = ? WHERE rowid = ?", session_id, key):
            return 0
        row: dict[str, Value] = {"source": "unknown", "started_at": 0.0, "child_kind": "?"}
        row |= {name: value for name, value in fields.items() if name is not None and value is not None}
        self._run("INSERT OR IGNORE INTO made VALUES (?)", session_id)
        slots = ", ".join("?" * len(row))
        return self._run(f"INSERT OR IGNORE INTO sessions ({', '.join(row)}) VALUES ({slots})", *row.values())

    def return_to_sessions(self) -> None:
        """Move messages of unknown sessions back to the sessions that the indexes name."""
        self._run(f"""
            UPDATE messages SET session_id = (SELECT e.session_id FROM entry e WHERE e.id = messages.id)
            WHERE {_WITHOUT_SESSION} AND EXISTS (
                SELECT 1 FROM entry e JOIN sessions s ON s.id = e.session_id WHERE e.id = messages.id)""")

    def drop_duplicates(self) -> None:
        """Keep one message for each uid of a session: the one that its table leads to, or the newest."""
        self._run("""
            DELETE FROM messages WHERE id IN (
                SELECT id FROM (
                    SELECT id, row_number() OVER (
                        PARTITION BY session_id, uid ORDER BY id IN (SELECT id FROM stray), id DESC) AS place
                    FROM messages WHERE uid NOT GLOB '~*')
                WHERE place > 1)""")

    def make_sessions(self, own: SchemaModel) -> int:
        """Create a session for rows without one, and drop rows that need one; return how many sessions were created."""
        self._run(f"""
            INSERT OR IGNORE INTO made
            SELECT session_id FROM messages WHERE {_WITHOUT_SESSION}
            UNION SELECT session_id FROM usage_events WHERE {_WITHOUT_SESSION.replace("messages", "usage_events")}""")
        made = self._run("""
            INSERT OR IGNORE INTO sessions (id, source, started_at, child_kind)
            SELECT session_id, 'unknown', MIN(moment), '?'
            FROM (SELECT session_id, timestamp AS moment FROM messages
                  UNION ALL SELECT session_id, at FROM usage_events)
            WHERE session_id IN (SELECT id FROM made) GROUP BY session_id""")
        self._sum_usage(own)
        topics = self._rows("SELECT name FROM sqlite_schema WHERE name = 'telegram_dm_topic_bindings'")
        for table in ("rewinds", "pending_links", "lanes", "approvals", *(str(name) for (name,) in topics)):
            self._run(f"DELETE FROM {table} WHERE session_id NOT IN (SELECT id FROM sessions)")
        self._rebuild_queues()
        return made

    def _rebuild_queues(self) -> None:
        """Create the queues of lanes whose rows are lost, and count what waits in every lane."""
        self._run("""
            INSERT OR IGNORE INTO lane_queues (lane_id, session_key, lease_token)
            SELECT lane_id, MIN(session_key), CAST(unixepoch('subsec') * 1000 AS INTEGER) FROM inbox
            WHERE is_open = 1 GROUP BY lane_id""")
        self._run("""
            UPDATE inbox SET state = 'accepted', turn_id = NULL WHERE state = 'running' AND NOT EXISTS (
                SELECT 1 FROM lane_queues q WHERE q.lane_id = inbox.lane_id AND q.turn_id = inbox.turn_id)""")
        self._run("""
            UPDATE lane_queues SET (waiting_count, waiting_id) = (
                SELECT COUNT(*), COALESCE(MIN(id), 0) FROM inbox
                WHERE inbox.lane_id = lane_queues.lane_id AND is_open = 1 AND state = 'accepted')""")
        self._run("UPDATE lane_queues SET ready_id = CASE WHEN lease_until = 0 THEN waiting_id ELSE 0 END")

    def lost_messages(self, most: int, *, is_torn: bool) -> dict[str, int]:
        """How many messages are known to be missing, by session; `is_torn` if the file is known to have gaps.

        `most` is the highest number of messages there ever was.
        """
        found: dict[str, int] = dict(
            self._rows(
                """SELECT session_id, count(*) FROM entry
                   WHERE seen >= ? AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = entry.id)
                   GROUP BY session_id""",
                1 if is_torn else WITNESSES,
            )
        )
        if is_torn:
            # The indexes may have gaps too; the counters of the sessions leave out undone messages only.
            counted = self._rows(
                """SELECT s.id, s.message_count - COALESCE(m.there, 0) FROM sessions s
                   LEFT JOIN (SELECT session_id, sum(active) AS there FROM messages GROUP BY session_id) m
                   ON m.session_id = s.id WHERE s.message_count > COALESCE(m.there, 0) AND s.message_count <= ?""",
                most,
            )
            for session_id, lost in counted:
                found[session_id] = max(lost, found.get(session_id, 0))
        return found

    def count_doubled_titles(self) -> int:
        """How many sessions have the same title as an earlier one."""
        (found,) = self._rows("SELECT count(title) - count(DISTINCT title) FROM sessions")
        return int(found[0])

    def forget_kinds(self) -> None:
        """Mark every session's kind as unknown, so that it is determined again."""
        self._run("UPDATE sessions SET child_kind = '?'")

    def mark_all_stale(self) -> None:
        """Mark every session to be counted again."""
        self._run("INSERT OR IGNORE INTO stale_sessions SELECT id FROM sessions")

    def raise_sequences(self, highest: Mapping[str, int]) -> None:
        """Make sure that no key is used a second time."""
        for name, key in highest.items():
            if 0 < key < HIGHEST_KEY and not self._run(
                "UPDATE sqlite_sequence SET seq = MAX(seq, ?) WHERE name = ?", key, name
            ):
                self._run("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", name, key)

    def count(self, table: str) -> int:
        """How many rows a table has."""
        return int(self._rows(f"SELECT count(*) FROM {table}")[0][0])

    def count_unreachable(self) -> int:
        """How many of the messages come from pages that no tree leads to."""
        return int(self._rows("SELECT count(*) FROM stray JOIN messages USING (id)")[0][0])

    def _sum_usage(self, own: SchemaModel) -> None:
        """Set the counters of rebuilt sessions to the sums of their usage events."""
        events, sessions = own.table("usage_events"), own.table("sessions")
        assert events is not None
        assert sessions is not None
        for column in events.columns:
            if column.name == "id" or column.name not in sessions.names:
                continue
            booked = f"SELECT SUM({column.name}) FROM usage_events e WHERE e.session_id = sessions.id"
            if column.affinity == "text":
                booked = booked.replace(f"SUM({column.name})", column.name) + " ORDER BY e.id DESC LIMIT 1"
            self._run(f"""
                UPDATE sessions SET {column.name} = ({booked})
                WHERE id IN (SELECT id FROM made) AND id IN (SELECT session_id FROM usage_events)""")

    def _rows(self, sql: str, *values: Value) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, values).fetchall()

    def _run(self, sql: str, *values: Value) -> int:
        self._connection.execute(sql, values).fetchall()
        return self._connection.changes()

    def _run_many(self, sql: str, many: Iterable[tuple[Value, ...]]) -> None:
        rows = iter(many)
        while part := list(islice(rows, BATCH)):
            self._connection.executemany(sql, part).fetchall()


_WITHOUT_SESSION = "NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = messages.session_id)"
