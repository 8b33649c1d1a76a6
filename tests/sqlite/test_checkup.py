"""What a checkup finds in a file: each check on a healthy file, and on one with just that defect."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from hermes.state.maintenance.findings import Status
from hermes.state.sqlite.checks import counters, index, integrity, orphans, sizes
from hermes.state.sqlite.disk_usage import PARTS
from hermes.state.sqlite.files import long_read
from hermes_state import SessionDB
from tests.support.checkups import checkup, do, fill, give_time, look, repaired, worse_than_ok
from tests.support.plainsql import change, rows

OK, NOTE, WARNING, ERROR = Status

_HUNDRED = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)"
MANY = (
    f"""{_HUNDRED} INSERT INTO sessions (id, source, started_at, last_active, chain_active, message_count, preview,
                                         parent_session_id, child_kind)
        SELECT 's' || i, 'cli', 5.0, 5.0, 5.0, 1, 'x', 'root', 'branch' FROM n""",
    f"""{_HUNDRED} INSERT INTO messages (session_id, role, content, timestamp, uid)
        SELECT 's' || i, 'user', 'x', 5.0, '~' || i FROM n""",
)
"""A hundred sessions with one message each, as this program stores them."""


@pytest.fixture(autouse=True)
def no_time_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    give_time(monkeypatch)


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed store that was used in every way."""
    path = tmp_path_factory.mktemp("used") / "state.db"
    fill(path)
    return path


@pytest.fixture
def path(used: Path, tmp_path: Path) -> Path:
    """A copy of the used store."""
    return Path(shutil.copy(used, tmp_path / "state.db"))


def overwrite(path: Path, table: str, byte: bytes) -> None:
    """Fill the last page of a table with one byte, like a disk that loses a write."""
    page, size = rows(path, f"SELECT MAX(pageno), pgsize FROM dbstat WHERE name = '{table}'")[0]
    with open(path, "r+b") as file:
        file.seek((page - 1) * size)
        file.write(byte * size)


@pytest.mark.parametrize("deep", [False, True], ids=["briefly", "deeply"])
class TestAsAWhole:
    def test_used_store_is_healthy(self, path: Path, deep: bool) -> None:
        assert worse_than_ok(path, deep=deep) == {}

    def test_empty_store_is_healthy(self, tmp_path: Path, deep: bool) -> None:
        SessionDB(tmp_path / "new.db").close()
        assert worse_than_ok(tmp_path / "new.db", deep=deep) == {}

    def test_open_store_is_healthy(self, path: Path, deep: bool) -> None:
        with SessionDB(path) as db:
            db.append_message("tip", "user", "not in the database file yet")
            assert worse_than_ok(path, deep=deep) == {}
            assert checkup(path, deep=deep)["counters"].values["sessions_checked"] == 6

    def test_checkup_changes_neither_the_store_nor_its_directory(self, path: Path, deep: bool) -> None:
        before = {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in path.parent.iterdir()}
        checkup(path, deep=deep)
        assert {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in path.parent.iterdir()} == before

    def test_checkup_runs_again_if_a_process_opens_the_store_meanwhile(self, path: Path, deep: bool) -> None:
        stored: list[str] = []

        def store_in_the_middle(name: str, _done: int, _total: int) -> None:
            if name == "usage" and not stored:
                with SessionDB(path) as db:
                    stored.append(db.create_session("late", "cli"))

        found = checkup(path, deep=deep, report=store_in_the_middle)
        assert found["counters"].values["sessions"] == 7


def test_deep_checkup_ends_before_the_log_of_a_busy_store_fills_the_disk(
    monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    monkeypatch.setattr(long_read, "LOG_LIMIT_BYTES", -1)
    change(path, *MANY)
    found = checkup(path, deep=True)
    assert found["integrity"].status == NOTE
    assert found["integrity"].summary.startswith("not checked")
    assert found["disk"].status == OK


class TestSizes:
    def test_parts_add_up_to_the_file(self, path: Path) -> None:
        values = look(path, "size").values
        parts = values["parts"]
        assert isinstance(parts, dict)
        assert set(parts) == set(PARTS)
        assert sum(parts.values()) == values["bytes"] == path.stat().st_size

    def test_parts_are_not_measured_if_that_takes_too_long(self, monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
        monkeypatch.setattr(sizes, "MEASURING_S", -1.0)
        found = look(path, "size")
        assert (found.status, found.values["parts"]) == (NOTE, None)
        assert "--deep" in found.remedy
        assert look(path, "size", deep=True).status == OK

    def test_hint_for_free_pages_shrinks_the_file(self, path: Path) -> None:
        change(path, "CREATE TABLE large (x)", "INSERT INTO large VALUES (zeroblob(3000000))", "DROP TABLE large")
        found = look(path, "free-pages")
        assert found.status == NOTE
        assert "`hermes sessions optimize`" in found.remedy
        do("hermes sessions optimize", path.parent)
        assert look(path, "free-pages").status == OK

    def test_few_free_pages_are_ok(self, path: Path) -> None:
        change(path, "CREATE TABLE large (x)", "INSERT INTO large VALUES (zeroblob(300000))", "DROP TABLE large")
        found = look(path, "free-pages")
        assert (found.status, found.values["share"]) == (OK, pytest.approx(0.5, abs=0.3))

    def test_hint_for_a_large_log_empties_it(self, path: Path) -> None:
        with open(f"{path}-wal", "wb") as log:
            log.truncate(sizes.LOG_LIMIT_BYTES + 1)
        found = look(path, "wal")
        assert found.status == WARNING
        assert "`hermes sessions optimize --no-vacuum`" in found.remedy
        do("hermes sessions optimize --no-vacuum", path.parent)
        assert look(path, "wal").status == OK

    @pytest.mark.parametrize(
        ("free", "status"),
        [(None, NOTE), (50 << 20, ERROR), (150 << 20, WARNING), (10 << 30, OK)],
    )
    def test_status_depends_on_free_disk_space(
        self, monkeypatch: pytest.MonkeyPatch, path: Path, free: int | None, status: Status
    ) -> None:
        monkeypatch.setattr(sizes, "free_bytes", lambda _: free)
        os.truncate(path, 100 << 20)
        assert look(path, "disk").status == status

    def test_disk_of_a_future_store_is_checked(self, tmp_path: Path) -> None:
        found = look(tmp_path / "not" / "yet" / "state.db", "disk")
        assert (found.status, found.values["wanted_bytes"]) == (OK, 0)


class TestIntegrity:
    @pytest.mark.parametrize("deep", [False, True], ids=["briefly", "deeply"])
    @pytest.mark.parametrize("table", ["messages", "sessions", "idx_messages_session", "usage_events"])
    def test_a_damaged_table_is_an_error(self, path: Path, table: str, deep: bool) -> None:
        overwrite(path, table, b"\x5a")
        found = look(path, "integrity", deep=deep)
        assert found.status == ERROR
        assert "hermes sessions repair" in found.remedy

    def test_hint_for_a_damaged_table_repairs_it(self, path: Path) -> None:
        overwrite(path, "messages", b"\x5a")
        assert repaired(look(path, "integrity"), path) == {}

    @pytest.mark.parametrize("deep", [False, True], ids=["briefly", "deeply"])
    def test_a_damaged_search_index_harms_no_message(self, path: Path, deep: bool) -> None:
        change(path, "UPDATE messages_fts_data SET block = randomblob(length(block)) WHERE id > 10")
        found = look(path, "integrity", deep=deep)
        assert found.status == WARNING
        assert repaired(found, path) == {}

    def test_a_file_that_ends_inside_of_a_page_is_damaged(self, path: Path) -> None:
        change(path, "CREATE TABLE zeros (x)", "INSERT INTO zeros VALUES (zeroblob(10000))")
        os.truncate(path, path.stat().st_size - 1)
        found = look(path, "integrity")
        assert (found.status, found.values["flaws"]) == (ERROR, {"end": "the last page is not complete"})

    def test_incomplete_integrity_check_is_a_note(self, monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
        monkeypatch.setattr(integrity, "READING_S", -1.0)
        found = look(path, "integrity")
        assert found.status == NOTE
        assert found.values["tables_checked"] != found.values["tables"]
        assert look(path, "integrity", deep=True).status == OK

    def test_damage_found_by_another_check_is_an_error(self, monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
        monkeypatch.setattr(integrity, "READING_S", -1.0)
        overwrite(path, "messages", b"\0")
        found = checkup(path)
        assert found["counters"].status == ERROR
        assert found["disk"].status == OK


class TestOrphans:
    def test_hint_for_orphan_messages_gives_them_a_session(self, path: Path) -> None:
        change(path, "DELETE FROM sessions WHERE id = 'replaced'")
        found = look(path, "orphan-messages")
        assert (found.status, found.values["missing_sessions"]) == (WARNING, ["replaced"])
        assert repaired(found, path) == {}
        with SessionDB(path, read_only=True) as db:
            assert db.message_count("replaced") == 2

    def test_hint_for_a_missing_parent_makes_sessions_independent(self, path: Path) -> None:
        change(path, "DELETE FROM messages WHERE session_id = 'root'", "DELETE FROM sessions WHERE id = 'root'")
        found = look(path, "orphan-sessions")
        assert (found.status, found.values["cut_off"]) == (WARNING, ["tip"])
        assert repaired(found, path) == {}

    def test_hint_for_orphan_delegates_deletes_them(self, path: Path) -> None:
        change(path, "UPDATE sessions SET parent_session_id = NULL WHERE id = 'helper'")
        found = look(path, "orphan-sessions")
        assert (found.status, found.values["delegates"]) == (NOTE, ["helper"])
        do(f"{found.remedy} --yes", path.parent)
        assert worse_than_ok(path, deep=True) == {}

    def test_an_imported_session_waits_for_its_parent(self, path: Path) -> None:
        child = {"id": "child", "source": "cli", "parent_session_id": "later", "child_kind": "branch"}
        with SessionDB(path) as db:
            db.import_session(child)
        found = look(path, "pending-links")
        assert (found.status, found.values["parents"]) == (NOTE, ["later"])
        with SessionDB(path) as db:
            db.import_session({"id": "later", "source": "cli"})
        assert worse_than_ok(path, deep=True) == {}

    @pytest.mark.parametrize("sql", [orphans._PARENT_MISSING, orphans._DELEGATES_ALONE, orphans._NAMED_BY_MESSAGES])
    def test_orphan_queries_use_an_index(self, path: Path, sql: str) -> None:
        plan = [str(row[3]) for row in rows(path, f"EXPLAIN QUERY PLAN {sql}")]
        assert [step for step in plan if step.startswith("SCAN") and step != "SCAN named"] == []

    @pytest.mark.parametrize("name", ["orphan-messages", "orphan-sessions"])
    def test_incomplete_orphan_check_is_a_note(self, monkeypatch: pytest.MonkeyPatch, path: Path, name: str) -> None:
        change(path, *MANY)
        monkeypatch.setattr(orphans, "LOOKING_S", -1.0)
        assert look(path, name).status == NOTE
        assert look(path, name, deep=True).status == OK


class TestCounters:
    @pytest.mark.parametrize(
        ("changed", "wrong"),
        [
            ("UPDATE sessions SET message_count = 99 WHERE id = 'root'", "message_count"),
            ("UPDATE messages SET active = 0 WHERE session_id = 'root' AND id > 2", "message_count"),
            ("UPDATE sessions SET last_active = 1.5 WHERE id = 'root'", "last_active"),
            ("UPDATE sessions SET preview = 'what?' WHERE id = 'root'", "preview"),
            ("UPDATE sessions SET preview = NULL WHERE id = 'root'", "preview"),
        ],
    )
    def test_hint_for_wrong_counters_fixes_them(self, path: Path, changed: str, wrong: str) -> None:
        change(path, changed)
        found = look(path, "counters")
        assert (found.status, found.values["wrong"]) == (WARNING, {wrong: 1})
        assert repaired(found, path) == {}

    @pytest.mark.parametrize(
        "changed",
        ["UPDATE sessions SET input_tokens = 70 WHERE id = 'root'", "DELETE FROM usage_events WHERE input_tokens = 4"],
    )
    def test_hint_for_wrong_usage_fixes_it(self, path: Path, changed: str) -> None:
        change(path, changed)
        found = look(path, "usage")
        assert found.status == WARNING
        assert "input_tokens (1)" in found.summary
        do(found.remedy, path.parent)
        assert worse_than_ok(path, deep=True) == {}

    @pytest.mark.parametrize("name", ["counters", "usage"])
    def test_incomplete_counter_check_is_a_note(self, monkeypatch: pytest.MonkeyPatch, path: Path, name: str) -> None:
        change(path, *MANY)
        monkeypatch.setattr(counters, "COUNTING_S", -1.0)
        found = look(path, name)
        assert found.status == NOTE
        assert found.values["sessions_checked"] != found.values["sessions"] == 106
        assert look(path, name, deep=True).status == OK

    def test_hint_for_foreign_changes_counts_them(self, path: Path) -> None:
        change(path, "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('tip', 'user', 'hi', 9.0)")
        found = checkup(path)
        assert (found["changed-elsewhere"].status, found["changed-elsewhere"].values["sessions"]) == (NOTE, 1)
        assert found["counters"].status == OK
        assert "`hermes sessions optimize`" in found["changed-elsewhere"].remedy
        do("hermes sessions optimize", path.parent)
        assert worse_than_ok(path, deep=True) == {}

    def test_text_that_is_not_unicode_is_compared(self, path: Path) -> None:
        change(path, "UPDATE messages SET content = CAST(x'ff41' AS TEXT) WHERE id = 1")
        assert "preview" in look(path, "counters").summary


class TestSearchIndex:
    def test_few_unindexed_messages_are_ok(self, path: Path) -> None:
        with SessionDB(path) as db:
            db.append_message("tip", "user", "just now")
            found = look(path, "index")
            assert (found.status, found.values["waiting"]) == (OK, 1)

    def test_hint_for_many_unindexed_messages_indexes_them(self, monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
        monkeypatch.setattr(index, "MANY", 5)
        with SessionDB(path) as db:
            db.append_messages("tip", [{"role": "user", "content": "x"}] * 6)
            assert look(path, "index").status == NOTE
        assert look(path, "index").status == OK

    @pytest.mark.parametrize("deep", [False, True], ids=["briefly", "deeply"])
    @pytest.mark.parametrize(
        ("changed", "status"),
        [
            ("DELETE FROM messages_fts WHERE rowid = 2", ERROR),
            ("DELETE FROM messages_fts_trigram WHERE rowid = 2", ERROR),
            ("INSERT INTO messages_fts(rowid, content) VALUES (999, 'x')", WARNING),
            ("INSERT INTO messages_fts(rowid, content) VALUES (-5, 'x')", WARNING),
        ],
    )
    def test_hint_for_missing_or_surplus_entries_rebuilds_the_index(
        self, path: Path, changed: str, status: Status, deep: bool
    ) -> None:
        change(path, changed)
        found = look(path, "index-parity", deep=deep)
        assert found.status == status
        assert repaired(found, path) == {}

    def test_hint_for_a_missing_index_rebuilds_it(self, path: Path) -> None:
        change(path, "DROP TABLE messages_fts_trigram")
        found = look(path, "index-parity")
        assert found.status == WARNING
        assert "`hermes sessions optimize`" in found.remedy
        do("hermes sessions optimize", path.parent)
        assert worse_than_ok(path, deep=True) == {}

    def test_sample_of_the_index_is_a_note(self, monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
        monkeypatch.setattr(index, "SPAN", 2)
        monkeypatch.setattr(index, "SPANS", 3)
        found = look(path, "index-parity")
        assert (found.status, found.values["ids_checked"]) == (NOTE, 6)
        assert look(path, "index-parity", deep=True).status == OK
        change(path, "DELETE FROM messages_fts WHERE rowid = (SELECT MAX(id) FROM messages)")
        assert look(path, "index-parity").status == ERROR
