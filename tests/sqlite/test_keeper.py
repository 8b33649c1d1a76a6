"""Maintenance of a file: deleted text is gone from its bytes, unused space is given back, other processes go on."""

from __future__ import annotations

import subprocess
from pathlib import Path

import apsw
import pytest

from hermes.errors import StoreBusy, StoreFull
from hermes.state.sqlite import maintenance
from hermes_state import SessionDB
from tests.fault.processes import Child, assert_sound
from tests.support.waiting import LIMIT_S

WORD = "xyzzyplugh"
FILLER = "lorem ipsum dolor sit amet " * 12


def occurrences(directory: Path) -> int:
    """How often the word is in any file, read by a process that has none of them open."""
    files = [str(path) for path in directory.iterdir()]
    done = subprocess.run(["cat", *files], capture_output=True, check=True, timeout=LIMIT_S)
    return done.stdout.count(WORD.encode())


@pytest.fixture
def db(tmp_path: Path) -> SessionDB:
    """A store of many messages, some of which contain the word."""
    db = SessionDB(tmp_path / "state.db")
    for number in range(12):
        word = WORD if number == 3 else "nothing"
        db.create_session(f"s{number}", "cli")
        calls = [{"id": "c", "function": {"name": word, "arguments": f'{{"path": "/{word}"}}'}}]
        messages = [{"role": "user", "content": f"{word} {each} {FILLER}"} for each in range(60)]
        db.append_messages(f"s{number}", [*messages, {"role": "assistant", "content": word, "tool_calls": calls}])
    db.set_session_title("s3", f"about {WORD}")
    return db


class TestErasing:
    def test_leaves_no_byte_of_a_deleted_session(self, db: SessionDB, tmp_path: Path) -> None:
        assert occurrences(tmp_path) > 60
        receipt = db.delete_with_receipt(["s3"], secure=True)
        assert (receipt.is_erased, occurrences(tmp_path)) == (True, 0)
        db.close()
        assert occurrences(tmp_path) == 0
        assert_sound(tmp_path / "state.db")

    def test_erasing_is_not_done_without_request(self, db: SessionDB, tmp_path: Path) -> None:
        assert not db.delete_with_receipt(["s3"]).is_erased
        assert occurrences(tmp_path) > 0
        db.close()

    def test_vacuum_erases_sessions_deleted_before(self, db: SessionDB, tmp_path: Path) -> None:
        db.delete_session("s3")
        db.vacuum()
        assert occurrences(tmp_path) == 0
        db.close()

    def test_erasing_keeps_other_sessions_searchable(self, db: SessionDB) -> None:
        db.delete_with_receipt(["s3"], secure=True)
        assert not db.search_messages(WORD)
        assert len(db.search_messages("nothing", limit=1000)) == 11 * 61
        assert len(db.search_messages("*nothin*", limit=1000)) == 11 * 61
        db.close()

    def test_error_names_the_process_that_keeps_the_log(
        self, db: SessionDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(maintenance, "TRUNCATE_TIMEOUT_S", 0.2)
        reader = apsw.Connection(str(tmp_path / "state.db"))
        reader.execute("BEGIN").fetchall()
        reader.execute("SELECT COUNT(*) FROM sessions").fetchall()
        with pytest.raises(StoreBusy, match="while other processes read it"):
            db.delete_with_receipt(["s3"], secure=True)
        reader.close()
        assert db.get_session("s3") is None
        db.optimize_fts()
        db.close()


class TestCompacting:
    def test_compacting_gives_space_back(self, db: SessionDB, tmp_path: Path) -> None:
        db.delete_sessions([f"s{number}" for number in range(11)])
        db.optimize_fts()
        size = (tmp_path / "state.db-wal").stat().st_size
        db.vacuum()
        assert (tmp_path / "state.db").stat().st_size < size / 3
        assert (tmp_path / "state.db-wal").stat().st_size == 0
        db.close()

    def test_compacted_file_opens_without_a_repair(
        self, db: SessionDB, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        db.vacuum()
        db.close()
        SessionDB(tmp_path / "state.db").close()
        assert caplog.records == []
        assert not list(tmp_path.glob("*.pre-*"))

    def test_other_processes_write_after_a_compaction(self, db: SessionDB, tmp_path: Path) -> None:
        db.create_session("s", "cli")
        with Child("append", tmp_path / "state.db", "name", 150) as child:
            child.line()
            child.send()
            for _ in range(3):
                db.vacuum()
            assert len(child.lines()) == 150
        assert db.message_count("s") == 150
        db.close()
        assert_sound(tmp_path / "state.db")

    def test_compacting_a_full_disk_is_refused(
        self, db: SessionDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(maintenance, "free_bytes", lambda _: 1000)
        with pytest.raises(StoreFull, match="1000"):
            db.vacuum()
        db.close()
        assert_sound(tmp_path / "state.db")


def test_store_that_is_only_read_is_not_pruned(tmp_path: Path) -> None:
    SessionDB(tmp_path / "state.db").close()
    with SessionDB(tmp_path / "state.db", read_only=True) as db:
        assert db.maybe_auto_prune_and_vacuum() == {"skipped": True, "pruned": 0, "vacuumed": False}
