"""What a turn costs at least: claim a lane, read its message and finish the turn with plain drivers.

The tables have the columns that a lease with a fencing token needs and nothing else.
"""

from __future__ import annotations

import time
from pathlib import Path

import apsw
import psycopg

_TABLES = (
    """CREATE TABLE floor_lanes (id integer PRIMARY KEY, ready integer NOT NULL, holder text, token integer NOT NULL,
                                 lease_until double precision NOT NULL)""",
    "CREATE INDEX floor_ready ON floor_lanes (ready) WHERE ready > 0",
    """CREATE TABLE floor_inbox (id integer PRIMARY KEY, lane integer NOT NULL, state text NOT NULL,
                                 payload text NOT NULL)""",
    "CREATE INDEX floor_lane ON floor_inbox (lane)",
    "CREATE TABLE floor_outbox (turn integer PRIMARY KEY, payload text NOT NULL)",
)
_PAYLOAD = "x" * 400


def file_turns_per_s(path: Path, turns: int) -> float:
    """Turns a second with apsw on a file, two transactions each, with an fsync each."""
    db = apsw.Connection(str(path))
    for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", *_TABLES):
        db.execute(statement)
    with db:
        db.executemany("INSERT INTO floor_lanes VALUES (?, ?, NULL, 0, 0)", [(n, n) for n in range(1, turns + 1)])
        db.executemany(
            "INSERT INTO floor_inbox VALUES (?, ?, 'accepted', ?)", [(n, n, _PAYLOAD) for n in range(1, turns + 1)]
        )
    began = time.perf_counter()
    for _ in range(turns):
        db.execute("BEGIN IMMEDIATE")
        found = db.execute("SELECT id, token FROM floor_lanes WHERE ready > 0 ORDER BY ready LIMIT 1").fetchall()
        lane, token = (int(str(value)) for value in found[0])
        db.execute(
            "UPDATE floor_lanes SET ready = 0, holder = 'a', token = token + 1, lease_until = ? WHERE id = ?",
            (time.time() + 30, lane),
        )
        ((message, _),) = db.execute("SELECT id, payload FROM floor_inbox WHERE lane = ?", (lane,)).fetchall()
        db.execute("UPDATE floor_inbox SET state = 'running' WHERE id = ?", (message,))
        db.execute("COMMIT")
        db.execute("BEGIN IMMEDIATE")
        db.execute(
            "UPDATE floor_lanes SET holder = NULL, lease_until = 0 WHERE id = ? AND token = ?", (lane, token + 1)
        )
        db.execute("UPDATE floor_inbox SET state = 'done' WHERE id = ?", (message,))
        db.execute("INSERT INTO floor_outbox VALUES (?, ?)", (message, _PAYLOAD))
        db.execute("COMMIT")
    return turns / (time.perf_counter() - began)


def server_turns_per_s(dsn: str, turns: int) -> float:
    """Turns a second with psycopg on PostgreSQL, from one client."""
    with psycopg.connect(dsn) as db:
        db.execute("DROP TABLE IF EXISTS floor_lanes, floor_inbox, floor_outbox")
        for statement in _TABLES:
            db.execute(statement.encode())
        db.execute("INSERT INTO floor_lanes SELECT n, n, NULL, 0, 0 FROM generate_series(1, %s) n", [turns])
        db.execute(
            "INSERT INTO floor_inbox SELECT n, n, 'accepted', %s FROM generate_series(1, %s) n", [_PAYLOAD, turns]
        )
        db.commit()
        began = time.perf_counter()
        for _ in range(turns):
            row = db.execute(
                """UPDATE floor_lanes SET ready = 0, holder = 'a', token = token + 1,
                       lease_until = extract(epoch FROM clock_timestamp()) + 30
                   WHERE id = (SELECT id FROM floor_lanes WHERE ready > 0 ORDER BY ready LIMIT 1 FOR UPDATE SKIP LOCKED)
                   RETURNING id, token"""
            ).fetchone()
            assert row is not None
            message = db.execute(
                "UPDATE floor_inbox SET state = 'running' WHERE lane = %s RETURNING id, payload", row[:1]
            ).fetchone()
            assert message is not None
            db.commit()
            with db.pipeline():
                db.execute("UPDATE floor_lanes SET holder = NULL, lease_until = 0 WHERE id = %s AND token = %s", row)
                db.execute("UPDATE floor_inbox SET state = 'done' WHERE id = %s", message[:1])
                db.execute("INSERT INTO floor_outbox VALUES (%s, %s)", message)
                db.commit()
        return turns / (time.perf_counter() - began)
