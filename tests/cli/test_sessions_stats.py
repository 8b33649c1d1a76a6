"""`hermes sessions stats`."""

from __future__ import annotations

import gzip
from pathlib import Path

from hermes_state import SCHEMA_VERSION, SessionDB
from tests.cli.conftest import Hermes

OLD_FILES = Path(__file__).parents[1] / "upgrade" / "files"


def test_stats_prints_text(hermes: Hermes) -> None:
    hermes.store(("a", "cli", None, "hello"), ("b", "cli", None, "hello"), ("c", "telegram", None, "hello"))
    done = hermes("sessions", "stats")
    assert done.stdout.splitlines() == [
        "Total sessions: 3",
        "Total messages: 3",
        "  cli: 2 sessions",
        "  telegram: 1 session",
        f"Database size: {hermes.database.stat().st_size / 1024 / 1024:.1f} MB",
        f"Database path: {hermes.database}",
        f"Schema version: {SCHEMA_VERSION}",
    ]
    assert (done.returncode, done.stderr) == (0, "")


def test_stats_prints_json(hermes: Hermes) -> None:
    hermes.store(("a", "cli", None, "hello"), ("b", "telegram", None, "hello"))
    assert hermes.json("sessions", "stats") == {
        "schema": "hermes.stats/1",
        "item": {
            "sessions": 2,
            "messages": 2,
            "sources": {"cli": 1, "telegram": 1},
            "path": str(hermes.database),
            "size_bytes": hermes.database.stat().st_size,
            "wal_bytes": 0,
            "schema_version": SCHEMA_VERSION,
        },
    }


def test_stats_counts_sessions_of_every_source(hermes: Hermes) -> None:
    hermes.store(("a", "cli", None, "x"), ("b", "tool", None, "x"), ("c", "a source of my own", None, "x"))
    with SessionDB(hermes.database) as db:
        db.set_session_archived("a", True)
        db.create_session("d", "cli", parent_session_id="a", child_kind="delegate")
    item = hermes.json("sessions", "stats")["item"]
    assert item["sources"] == {"cli": 2, "a source of my own": 1, "tool": 1}
    assert item["sessions"] == 4


def test_stats_size_includes_the_write_ahead_log(hermes: Hermes) -> None:
    with SessionDB(hermes.database) as db:
        db.create_session("a", "cli")
        db.append_message("a", "user", "long " * 100_000)
        item = hermes.json("sessions", "stats")["item"]
        assert item["wal_bytes"] == Path(f"{hermes.database}-wal").stat().st_size > 400_000
        assert "of it in the write-ahead log)" in hermes("sessions", "stats").stdout


def test_stats_without_a_database_are_zero(hermes: Hermes) -> None:
    assert hermes.json("sessions", "stats")["item"] == {
        "sessions": 0,
        "messages": 0,
        "sources": {},
        "path": str(hermes.database),
        "size_bytes": 0,
        "wal_bytes": 0,
        "schema_version": None,
    }
    assert not hermes.home.exists()


def test_stats_show_the_version_of_a_foreign_file(hermes: Hermes) -> None:
    hermes.home.mkdir()
    hermes.database.write_bytes(gzip.decompress((OLD_FILES / "v22.db.gz").read_bytes()))
    assert hermes.json("sessions", "stats")["item"]["schema_version"] == 22


class TestVerbose:
    def test_verbose_shows_the_size_of_each_part(self, hermes: Hermes) -> None:
        hermes.store(("a", "cli", None, "long " * 100_000))
        lines = hermes("sessions", "stats", "--verbose").stdout.splitlines()
        names = [line.partition(":")[0] for line in lines]
        assert names[3:10] == [
            "Database size",
            "  messages",
            "  search index",
            "  other indexes",
            "  sessions and other data",
            "  unused",
            "  write-ahead log",
        ]
        assert lines[4] == "  messages: 0.5 MB"

    def test_json_parts_add_up_to_the_total(self, hermes: Hermes) -> None:
        hermes.store(("a", "cli", None, "hello"))
        item = hermes.json("sessions", "stats", "-v")["item"]
        assert sum(item["parts"].values()) == item["size_bytes"] == hermes.database.stat().st_size
        assert item["parts"].keys() == {"text_bytes", "search_bytes", "indexes_bytes", "other_bytes", "free_bytes"}

    def test_deleted_messages_leave_free_space(self, hermes: Hermes) -> None:
        hermes.store(("a", "cli", None, "long " * 100_000), ("b", "cli", None, "hello"))
        hermes("sessions", "delete", "a", "--yes")
        assert hermes.json("sessions", "stats", "-v")["item"]["parts"]["free_bytes"] > 400_000

    def test_without_a_database_there_are_no_parts(self, hermes: Hermes) -> None:
        assert hermes.json("sessions", "stats", "-v")["item"]["parts"] is None
        assert not hermes.home.exists()
