"""The verdict on files that are undamaged, damaged, cut off, changed, or of another program."""

from __future__ import annotations

import gzip
import hashlib
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.errors import NotFound, StoreBusy
from hermes.state.sqlite.backup.backup import back_up
from hermes.state.sqlite.checks import verify as verification
from hermes.state.sqlite.checks.verify import DefectKind, Depth, Verdict, verify
from hermes.state.sqlite.files import long_read
from hermes.state.sqlite.files.checksum import matches_checksum
from hermes_state import SessionDB
from tests.fault.child import SESSION
from tests.fault.processes import Child
from tests.support.plainsql import change, plain, rows
from tests.upgrade.build_files import build

MESSAGES = 600
UPSTREAM = Path(__file__).parents[1] / "upgrade" / "files" / "v22.db.gz"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with some indexed and some unindexed messages, which no test changes."""
    path = tmp_path_factory.mktemp("whole") / "state.db"
    with SessionDB(path) as db:
        db.create_session(SESSION, "cli")
        db.create_session("child", "cli", parent_session_id=SESSION, child_kind="branch")
        db.append_messages(SESSION, [{"role": "user", "content": f"axolotl {n} " + "x" * 300} for n in range(MESSAGES)])
        db.append_message("child", "user", "on its own")
        db.update_token_counts("child", input_tokens=5)
    return path


@pytest.fixture
def store(whole: Path, tmp_path: Path) -> Path:
    """A copy of the store that a test may change."""
    return Path(shutil.copy(whole, tmp_path / "state.db"))


@pytest.fixture
def backup(whole: Path, tmp_path: Path) -> Path:
    """A backup of the store that a test may change."""
    return back_up(whole, tmp_path / "backup.db").path


def codes(verdict: Verdict) -> set[str]:
    return {each.code for each in verdict.defects}


def kinds(verdict: Verdict) -> set[DefectKind]:
    return {each.kind for each in verdict.defects}


def overwrite(path: Path, table: str, at: int, data: bytes) -> None:
    """Change bytes of the last page of a table."""
    (page,) = rows(path, "SELECT max(pageno) FROM dbstat WHERE name = ?", table)[0]
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096 + at)
        file.write(data)


@pytest.mark.parametrize("depth", Depth)
def test_a_whole_store_and_its_backup_are_good(store: Path, backup: Path, depth: Depth) -> None:
    for verdict in (verify(store, depth), verify(backup, depth, is_backup=True)):
        assert verdict.defects == ()
        assert verdict.contents is not None
        assert verdict.contents[:2] == (2, MESSAGES + 1)
        assert verdict.inspection is not None
        assert verdict.inspection.version == 11


class TestDamage:
    @pytest.mark.parametrize("table", ["messages", "sessions", "idx_messages_session", "sqlite_schema"])
    @pytest.mark.parametrize("depth", Depth)
    def test_a_destroyed_page_is_damage(self, store: Path, table: str, depth: Depth) -> None:
        overwrite(store, table, 0, b"\xff" * 100)
        verdict = verify(store, depth)
        assert kinds(verdict) == {DefectKind.DAMAGE}
        assert all("hermes sessions repair" in each.hint for each in verdict.defects)

    def test_the_damaged_table_is_named(self, store: Path) -> None:
        overwrite(store, "idx_messages_session", 0, b"\xff" * 100)
        (finding,) = verify(store).defects
        assert finding.message.startswith("messages is damaged: ")

    def test_index_that_contradicts_its_table_is_damage_that_a_quick_check_misses(self, store: Path) -> None:
        with plain(store) as connection:
            connection.execute("PRAGMA writable_schema = ON").fetchall()
            connection.execute("UPDATE sqlite_schema SET sql = sql || ' WHERE 0' WHERE name = 'idx_usage_events_at'")
        with plain(store) as connection:
            connection.execute("UPDATE usage_events SET at = 1").fetchall()
            connection.execute("PRAGMA writable_schema = ON").fetchall()
            connection.execute(
                "UPDATE sqlite_schema SET sql = replace(sql, ' WHERE 0', '') WHERE name = 'idx_usage_events_at'"
            ).fetchall()
        assert kinds(verify(store, Depth.QUICK)) == set()
        assert kinds(verify(store, Depth.DAMAGE)) == {DefectKind.DAMAGE}

    @pytest.mark.parametrize("left", [0.0, 0.02, 0.5, 0.97, 0.9995])
    def test_a_file_that_was_cut_off_is_damaged(self, store: Path, backup: Path, left: float) -> None:
        Path(f"{backup}.sha256").unlink()
        for path in (store, backup):
            os.truncate(path, int(path.stat().st_size * left))
            assert kinds(verify(path)) == {DefectKind.DAMAGE}

    def test_verifying_an_emptied_file_keeps_its_log(self, store: Path) -> None:
        store.write_bytes(b"")
        Path(f"{store}-wal").write_bytes(b"what was in the log")
        assert codes(verify(store)) == {"damaged"}
        assert Path(f"{store}-wal").read_bytes() == b"what was in the log"

    def test_every_changed_bit_of_a_backup_is_noticed(self, backup: Path) -> None:
        data, chance = backup.read_bytes(), random.Random(7)
        for _ in range(25):
            changed = bytearray(data)
            changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            backup.write_bytes(changed)
            assert verify(backup, Depth.QUICK, is_backup=True).has(DefectKind.DAMAGE, DefectKind.FOREIGN)
        backup.write_bytes(data)
        assert verify(backup, is_backup=True).defects == ()

    def test_backup_without_a_checksum_is_verified_without_it(self, backup: Path) -> None:
        Path(f"{backup}.sha256").unlink()
        assert verify(backup, is_backup=True).defects == ()
        overwrite(backup, "messages", 0, b"\xff" * 100)
        assert codes(verify(backup, is_backup=True)) == {"damaged"}


class TestSearchIndex:
    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE messages_fts_data SET block = randomblob(length(block)) WHERE id = 10",
            "UPDATE messages_fts_trigram_data SET block = randomblob(length(block)) WHERE id > 10",
            "DELETE FROM messages_fts_config",
            "DELETE FROM messages_fts_trigram_data WHERE id > 10",
        ],
    )
    def test_damage_inside_the_index_is_found(self, store: Path, statement: str) -> None:
        change(store, statement)
        verdict = verify(store)
        assert codes(verdict) == {"index"}
        assert kinds(verdict) == {DefectKind.DRIFT}

    def test_destroyed_page_of_the_index_is_no_damage_of_messages(self, store: Path) -> None:
        overwrite(store, "messages_fts_data", 0, b"\xff" * 100)
        for depth in Depth:
            assert kinds(verify(store, depth)) == {DefectKind.DRIFT}

    @pytest.mark.parametrize("table", ["messages_fts", "messages_fts_trigram"])
    def test_message_missing_from_the_index_is_reported(self, store: Path, table: str) -> None:
        change(store, f"DELETE FROM {table} WHERE rowid = 7")
        assert codes(verify(store)) == {"index_parity"}


class TestDerivedValues:
    @pytest.mark.parametrize(
        ("statement", "code"),
        [
            ("UPDATE sessions SET message_count = 5 WHERE id = 's'", "counters"),
            ("DELETE FROM sessions WHERE id = 'child'", "orphan_messages"),
            ("UPDATE sessions SET parent_session_id = 'unknown' WHERE id = 'child'", "orphan_sessions"),
            ("UPDATE usage_events SET session_id = 'unknown'", "orphan_rows"),
        ],
    )
    def test_wrong_derived_value_is_reported(self, store: Path, statement: str, code: str) -> None:
        change(store, statement)
        verdict = verify(store)
        assert code in codes(verdict)
        assert kinds(verdict) == {DefectKind.DRIFT}
        assert verify(store, Depth.DAMAGE).defects == ()

    def test_changes_of_another_program_are_no_defect(self, store: Path) -> None:
        change(store, "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s', 'user', 'x', 1)")
        assert verify(store).defects == ()


class TestForeignFiles:
    @pytest.mark.parametrize("content", [b"\0" * 20_000, b"\xff\xd8\xff\xe0" * 5_000, b"no database at all " * 500])
    def test_other_file_is_not_a_database(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "file"
        path.write_bytes(content)
        assert codes(verify(path)) == {"not_a_database"}
        assert path.read_bytes() == content

    def test_empty_file_is_damage(self, tmp_path: Path) -> None:
        path = tmp_path / "file"
        path.touch()
        assert codes(verify(path)) == {"empty"}

    def test_database_without_sessions_is_foreign(self, tmp_path: Path) -> None:
        change(tmp_path / "file", "CREATE TABLE t (a)")
        assert codes(verify(tmp_path / "file")) == {"not_a_database"}

    def test_later_version_of_another_program_is_foreign(self, tmp_path: Path) -> None:
        path = tmp_path / "file"
        path.write_bytes(gzip.decompress(UPSTREAM.read_bytes()))
        (finding,) = verify(path).defects
        assert (finding.kind, finding.code) == (DefectKind.FOREIGN, "foreign")
        assert "hermes sessions import" in finding.hint

    def test_newer_version_of_this_program_is_too_new(self, store: Path) -> None:
        change(store, "UPDATE state_meta SET value = '99' WHERE key = 'min_reader'")
        assert codes(verify(store)) == {"too_new"}

    @pytest.mark.parametrize("version", [1, 7, 11])
    def test_an_older_version_is_good(self, tmp_path: Path, version: int) -> None:
        build(version, tmp_path / "old.db")
        verdict = verify(tmp_path / "old.db")
        assert verdict.defects == ()
        assert verdict.inspection is not None
        assert verdict.inspection.version == version

    @pytest.mark.parametrize("kind", ["pipe", "link"])
    def test_checksum_that_is_no_plain_file_is_not_read(self, backup: Path, tmp_path: Path, kind: str) -> None:
        checksum = Path(f"{backup}.sha256")
        checksum.unlink()
        if kind == "pipe":
            os.mkfifo(checksum)
        else:
            (tmp_path / "other").write_text("0" * 64)
            checksum.symlink_to(tmp_path / "other")
        assert matches_checksum(backup) is None
        assert verify(backup, is_backup=True).defects == ()

    def test_missing_file_and_directory_are_errors(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        for path in (tmp_path, tmp_path / "pipe"):
            assert codes(verify(path)) == {"not_a_database"}
        with pytest.raises(NotFound):
            verify(tmp_path / "missing")


class TestReadOnly:
    def test_backup_and_its_directory_are_unchanged(self, backup: Path) -> None:
        def everything() -> dict[str, str]:
            return {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in backup.parent.iterdir()}

        before = everything()
        assert verify(backup, is_backup=True).defects == ()
        assert everything() == before

    def test_store_is_verified_while_others_write(self, store: Path) -> None:
        with Child("append", store, "writer", "forever") as writer:
            assert writer.line() == "ready"
            writer.send()
            for _ in range(3):
                assert verify(store).defects == ()
                assert writer.line()

    def test_read_only_file_in_a_read_only_directory_is_verified(self, backup: Path, tmp_path: Path) -> None:
        place = tmp_path / "readonly"
        place.mkdir()
        for name in ("backup.db", "backup.db.sha256"):
            shutil.copy(tmp_path / name, place)
            (place / name).chmod(0o400)
        shutil.copy(backup, place / "log.db")
        with plain(place / "log.db") as connection:
            connection.execute("PRAGMA journal_mode = wal").fetchall()
        place.chmod(0o500)
        try:
            for name in ("backup.db", "log.db"):
                done = as_guest(place / name)
                assert done == "[]", done
        finally:
            place.chmod(0o700)

    def test_verification_ends_if_the_log_grows_too_large(self, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(long_read, "LOG_LIMIT_BYTES", 100_000)
        monkeypatch.setattr(verification, "STEPS_BETWEEN_LOOKS", 100)
        with SessionDB(store) as db:

            def write_on(*_: object) -> None:
                db.append_message(SESSION, "user", "x" * 50_000)

            with pytest.raises(StoreBusy, match="its log grew"):
                verify(store, report=write_on)


def as_guest(path: Path) -> str:
    """The output of `verify` for a user without write permission."""
    if os.geteuid() == 0:
        for place in (path, *path.parents):
            if place != Path("/") and place.owner() == "root":
                place.chmod(place.stat().st_mode | (0o044 if place.is_file() else 0o055))
    code = f"""
import os, tempfile
from pathlib import Path
from hermes.state.sqlite.checks.verify import verify
from hermes_state import SessionDB
with tempfile.TemporaryDirectory() as scratch:
    # Where the program lies, the guest may not look: what it needs is loaded before.
    SessionDB(Path(scratch) / "state.db").close()
    verify(Path(scratch) / "state.db")
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
print([each.message for each in verify(Path({str(path)!r})).defects])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    return (done.stdout + done.stderr).strip()
