"""Rows that another program replaces with INSERT OR REPLACE, which fires no delete trigger."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.state.sqlite.checks.checkup import examine
from hermes.state.sqlite.checks.verify import DefectKind, verify
from hermes.state.sqlite.repair.repair import FileCondition, repair
from hermes_state import SessionDB
from tests.support.plainsql import change, rows

REPLACE_FIRST = """INSERT OR REPLACE INTO messages (id, session_id, role, uid, timestamp, content)
                   SELECT id, session_id, role, uid, timestamp, 'narwhal' FROM messages WHERE content = 'walrus'"""
REPLACE_LAST = REPLACE_FIRST.replace("walrus", "tern")
GIVE_AWAY = """INSERT OR REPLACE INTO sessions (id, source, owner, started_at, last_active, chain_active)
               SELECT id, source, 'telegram:7', started_at, last_active, chain_active FROM sessions"""
TRIGGERS = ("messages_replaced", "sessions_replaced")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with two messages, both of them in the index."""
    path = tmp_path / "state.db"
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        db.append_messages("s", [{"role": "user", "content": "walrus"}, {"role": "user", "content": "tern"}])
    return path


def found(db: SessionDB, *words: str) -> list[int]:
    """How many messages each of the words finds."""
    return [len(db.search_messages(word)) for word in words]


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("statement", [REPLACE_FIRST, REPLACE_LAST], ids=["oldest", "newest"])
def test_replaced_message_is_found_by_its_new_text(path: Path, statement: str, read_only: bool) -> None:
    gone, kept = ("walrus", "tern") if statement is REPLACE_FIRST else ("tern", "walrus")
    change(path, statement)
    with SessionDB(path, read_only=read_only) as db:
        assert found(db, "narwhal", gone, kept) == [1, 0, 1]


def test_open_store_finds_a_replaced_message(path: Path) -> None:
    with SessionDB(path) as db:
        change(path, REPLACE_FIRST)
        assert found(db, "narwhal", "walrus") == [1, 0]


def test_preview_and_counters_are_correct_after_the_next_open(path: Path) -> None:
    change(path, REPLACE_FIRST)
    with SessionDB(path) as db:
        row = db.get_session("s")
        assert row is not None
        assert row["preview"] == "narwhal"
    assert verify(path).defects == ()


def test_message_put_into_a_gap_is_found(path: Path) -> None:
    with SessionDB(path) as db:
        db.append_message("s", "user", "heron")
    change(path, "DELETE FROM messages WHERE id = 2")
    SessionDB(path).close()
    change(
        path,
        """INSERT INTO messages (id, session_id, role, uid, timestamp, content)
           VALUES (2, 's', 'user', 'given', 5.0, 'narwhal')""",
    )
    with SessionDB(path) as db:
        assert found(db, "narwhal", "heron") == [1, 1]
        assert db.message_count("s") == 3


def test_replaced_session_is_found_under_its_new_owner_alone(path: Path) -> None:
    change(path, GIVE_AWAY)
    SessionDB(path).close()
    assert rows(path, "SELECT count(*) FROM stale_index") == [(0,)]
    assert verify(path).defects == ()


class TestEarlierFile:
    """A file from before the triggers existed."""

    @pytest.fixture
    def earlier(self, path: Path) -> Path:
        """A store of the previous version."""
        change(
            path,
            *(f"DROP TRIGGER {name}" for name in TRIGGERS),
            "DELETE FROM hermes_ledger WHERE name = '0006_replaced'",
        )
        return path

    def test_opening_adds_the_triggers_and_keeps_the_index(self, earlier: Path) -> None:
        epoch = "SELECT value FROM state_meta WHERE key = 'index_epoch'"
        before = rows(earlier, epoch)
        SessionDB(earlier).close()
        made = rows(earlier, "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND name LIKE '%replaced'")
        assert sorted(name for (name,) in made) == sorted(TRIGGERS)
        assert rows(earlier, epoch) == before

    def test_verify_reports_messages_replaced_before_the_triggers(self, earlier: Path) -> None:
        change(earlier, REPLACE_FIRST)
        SessionDB(earlier).close()
        drift = [each for each in verify(earlier).defects if each.kind is DefectKind.DRIFT and each.code == "index"]
        assert drift
        assert all("searches may miss some" in each.hint for each in drift)

    def test_doctor_claims_no_agreement_of_texts_that_only_verify_compares(self, earlier: Path) -> None:
        change(earlier, REPLACE_FIRST)
        SessionDB(earlier).close()
        (found,) = (each for each in examine(earlier, backups=earlier.parent, now=0.0) if each.name == "index-parity")
        assert "agree" not in found.summary
        assert "`hermes sessions verify` compares their text" in found.summary

    def test_repair_indexes_messages_replaced_before_the_triggers(self, earlier: Path) -> None:
        change(earlier, REPLACE_FIRST)
        SessionDB(earlier).close()
        assert repair(earlier).condition is FileCondition.REPAIRED
        with SessionDB(earlier) as db:
            assert found(db, "narwhal", "walrus") == [1, 0]
