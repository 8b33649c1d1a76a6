"""Damage to whole files: cut off, emptied, overwritten, with a log; and files that a repair must not touch."""

from __future__ import annotations

import errno
import gzip
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from hermes.errors import HermesError, NotADatabase, NotFound, StoreCorrupt, StoreFull, StoreTooNew
from hermes.state.sqlite.files.byte_copy import BLOCK_BYTES, copy_bytes
from hermes.state.sqlite.repair import working_copy
from hermes.state.sqlite.repair.repair import FileCondition, check, repair
from hermes_state import MessageSpooled, SessionDB
from tests.fault.damaged import SIZE, IntactStore, assert_saved, assert_searchable, make_intact_store
from tests.support.pagemap import overwrite, page_map
from tests.support.plainsql import change, plain, rows
from tests.upgrade.build_files import build
from tests.upgrade.checks import assert_nothing_lost, digest
from tests.upgrade.corpus import FILES
from tests.upgrade.oldfiles import real

NEW = [f"axolotl word{number}" for number in range(90_000, 90_006)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> IntactStore:
    return make_intact_store(tmp_path_factory.mktemp("whole") / "state.db", sessions=20, messages=30)


@pytest.fixture
def path(whole: IntactStore, tmp_path: Path) -> Path:
    place = tmp_path / "home"
    place.mkdir()
    return whole.copy(place / "state.db")


def listing(path: Path) -> dict[str, str]:
    """Every file next to a database with its checksum; lock files are empty."""
    files = [each for each in path.parent.iterdir() if each.is_file() and each.suffix not in (".lock", ".gate")]
    return {each.name: digest(each) for each in files}


def zero(path: Path, number: int) -> None:
    overwrite(path, number, bytes(SIZE), size=SIZE)


def with_log(whole: IntactStore, target: Path) -> Path:
    """A copy of a store with messages that are only in its log, one transaction each."""
    source = whole.copy(target.with_name("source.db"))
    with SessionDB(source) as db:
        for text in NEW:
            db.append_message("s003", "user", text)
        for suffix in ("", "-wal"):
            shutil.copy(f"{source}{suffix}", f"{target}{suffix}")
    return target


def contents(path: Path) -> list[str]:
    return [
        str(text) for (text,) in rows(path, "SELECT content FROM messages WHERE content LIKE '%word9000%' ORDER BY id")
    ]


class TestHealthy:
    def test_healthy_file_is_not_changed(self, path: Path) -> None:
        before = listing(path)
        for outcome in (check(path), repair(path)):
            assert (outcome.condition, outcome.damage, outcome.salvaged) == (FileCondition.HEALTHY, (), None)
        assert listing(path) == before

    def test_healthy_file_with_a_log_is_not_changed(self, whole: IntactStore, tmp_path: Path) -> None:
        path = with_log(whole, tmp_path / "state.db")
        before = listing(path)
        assert check(path).condition is FileCondition.HEALTHY
        assert listing(path) == before

    def test_healthy_file_with_an_unfinished_write_is_not_changed(self, path: Path, tmp_path: Path) -> None:
        copy = tmp_path / "state.db"
        with plain(path) as connection:
            for pragma in ("journal_mode = delete", "cache_size = 1"):
                connection.execute(f"PRAGMA {pragma}").fetchall()
            connection.execute("BEGIN").fetchall()
            connection.execute("UPDATE sessions SET system_prompt = hex(zeroblob(3000))").fetchall()
            for suffix in ("", "-journal"):
                shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
            connection.execute("ROLLBACK").fetchall()
        before = listing(copy)
        assert check(copy).condition is FileCondition.HEALTHY
        assert listing(copy) == before

    @pytest.mark.parametrize("version", [1, 11])
    def test_old_file_is_left_to_the_next_open(self, tmp_path: Path, version: int) -> None:
        path = tmp_path / "state.db"
        build(version, path)
        before = listing(path)
        assert repair(path).condition is FileCondition.HEALTHY
        assert listing(path) == before

    @pytest.mark.parametrize("statements", [(), ("CREATE TABLE t (a)", "DROP TABLE t")])
    def test_empty_file_is_reported_as_empty(self, tmp_path: Path, statements: tuple[str, ...]) -> None:
        path = tmp_path / "state.db"
        path.touch()
        if statements:
            change(path, *statements)
        before = listing(path)
        assert repair(path).condition is FileCondition.EMPTY
        assert listing(path) == before


class TestCutOff:
    @pytest.mark.parametrize("more", [0, 333])
    def test_first_half_of_a_file_is_saved(self, path: Path, whole: IntactStore, more: int) -> None:
        pages = path.stat().st_size // SIZE
        os.truncate(path, pages // 2 * SIZE + more)
        outcome = repair(path)
        assert outcome.salvaged is not None
        assert "data" in outcome.damage
        assert outcome.salvaged.lost_messages > 0
        assert_saved(path, whole, range(pages // 2 + 1, pages + 1))

    def test_file_cut_off_inside_the_last_page_is_saved(self, path: Path, whole: IntactStore) -> None:
        pages = path.stat().st_size // SIZE
        os.truncate(path, pages * SIZE - 100)
        assert repair(path).condition is FileCondition.REPAIRED
        assert_saved(path, whole, [pages])


class TestLog:
    def test_messages_that_are_only_in_the_log_are_saved(self, whole: IntactStore, tmp_path: Path) -> None:
        path = with_log(whole, tmp_path / "state.db")
        number = whole.message_pages.pages("leaf")[30]
        zero(path, number)
        before = [digest(Path(f"{path}{suffix}")) for suffix in ("", "-wal")]
        outcome = repair(path)
        assert outcome.salvaged is not None
        assert outcome.salvaged.lost_messages == len(whole.message_pages.keys[number])
        assert contents(path) == NEW
        assert_searchable(path, [key for (key,) in rows(path, "SELECT id FROM messages")])
        assert [digest(Path(f"{outcome.kept_as}{suffix}")) for suffix in ("", "-wal")] == before

    def test_pages_in_the_log_of_an_emptied_file_are_saved(self, whole: IntactStore, tmp_path: Path) -> None:
        path = with_log(whole, tmp_path / "state.db")
        path.write_bytes(b"")
        outcome = repair(path)
        assert {"header", "data"} & set(outcome.damage)
        assert contents(path) == NEW

    def test_log_is_read_beyond_damage(self, whole: IntactStore, tmp_path: Path) -> None:
        path = with_log(whole, tmp_path / "state.db")
        frame = SIZE + 24
        with open(f"{path}-wal", "r+b") as log:
            log.seek(32 + 2 * frame + 300)
            log.write(b"\xff\xff")
        assert NEW[-1] not in contents(whole.copy(tmp_path / "without.db"))
        outcome = repair(path)
        assert "log" in outcome.damage
        assert contents(path)[-1] == NEW[-1]


def test_spooled_messages_are_stored_after_the_repair(path: Path, whole: IntactStore) -> None:
    zero(path, whole.message_pages.pages("internal")[0])
    with SessionDB(path) as db, pytest.raises(MessageSpooled):
        db.append_message("s003", "user", NEW[0])
    assert repair(path).spooled == 1
    with SessionDB(path) as db:
        assert db.get_messages("s003")[-1]["content"] == NEW[0]


def test_damaged_file_is_kept_unchanged_and_the_new_one_has_the_same_owner(path: Path, whole: IntactStore) -> None:
    path.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(path, 65_534, 65_534)
    zero(path, whole.message_pages.pages("leaf")[3])
    before, owner = digest(path), path.stat().st_uid
    kept = repair(path).kept_as
    assert kept is not None
    assert digest(kept) == before
    for each in (path, kept):
        assert (each.stat().st_uid, each.stat().st_mode & 0o777) == (owner, 0o600)
    assert sorted(each.name for each in path.parent.iterdir() if each.suffix not in (".lock", ".gate")) == [
        path.name,
        kept.name,
    ]


@pytest.mark.parametrize("name", ["100% of it?.db", "a b#c.db", "[x]*.db"])
def test_any_file_name_works_and_a_link_stays_a_link(path: Path, whole: IntactStore, name: str) -> None:
    zero(path, whole.message_pages.pages("leaf")[3])
    file = path.rename(path.with_name(name))
    path.symlink_to(file)
    kept = repair(path).kept_as
    assert path.is_symlink()
    assert kept is not None
    assert kept.name.startswith(f"{name}.damaged-")
    assert check(path).condition is FileCondition.HEALTHY


def test_unreadable_bytes_are_reported(path: Path, whole: IntactStore, monkeypatch: pytest.MonkeyPatch) -> None:
    number = whole.message_pages.pages("leaf")[3]
    at = (number - 1) * SIZE // BLOCK_BYTES * BLOCK_BYTES

    def read(file: int, size: int, start: int) -> bytes:
        if start <= at < start + size:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return os.pread(file, size, start)

    monkeypatch.setattr(working_copy, "copy_bytes", partial(copy_bytes, read=read))
    outcome = repair(path)
    assert "the disk cannot read 4096 bytes of it" in outcome.problems
    first = at // SIZE + 1
    assert_saved(path, whole, range(first, first + BLOCK_BYTES // SIZE))


class TestOldFiles:
    def test_damaged_old_file_is_repaired_and_upgraded(self, tmp_path: Path) -> None:
        path = tmp_path / "state.db"
        expected = real(11, path)
        (number,) = rows(path, "SELECT rootpage FROM sqlite_schema WHERE name = 'idx_messages_session'")[0]
        overwrite(path, number, bytes(4_096))
        assert repair(path).condition is FileCondition.REPAIRED
        assert_nothing_lost(path, expected)
        assert rows(path, "SELECT count(*) FROM telegram_dm_topic_bindings") == [(1,)]

    def test_columns_that_were_added_are_known_without_a_schema(self, tmp_path: Path) -> None:
        """The columns of an upgraded file are in another order than those of a new one."""
        path, source = tmp_path / "state.db", tmp_path / "source.db"
        expected = real(11, source)
        SessionDB(source).close()
        pages = rows(source, "SELECT pageno FROM dbstat WHERE name = 'sqlite_schema' AND pagetype = 'leaf'")
        for (number,) in pages:
            shutil.copy(source, path)
            overwrite(path, number, bytes(4_096))
            assert repair(path).condition is FileCondition.REPAIRED
            assert_nothing_lost(path, expected)


class TestNotTouched:
    @pytest.fixture
    def refused(self, tmp_path: Path) -> Callable[[bytes, type[HermesError]], HermesError]:
        """Try to repair a file with these bytes."""

        def attempt(data: bytes, kind: type[HermesError]) -> HermesError:
            path = tmp_path / "state.db"
            path.write_bytes(data)
            before = listing(path)
            with pytest.raises(kind):
                check(path)
            with pytest.raises(kind) as caught:
                repair(path)
            assert listing(path) == before
            return caught.value

        return attempt

    def test_file_of_zeros_is_refused(self, refused: Callable[..., HermesError]) -> None:
        assert "nothing but zeros" in refused(bytes(3 << 20), StoreCorrupt).message

    def test_file_with_only_a_header_is_refused(self, refused: Callable[..., HermesError], whole: IntactStore) -> None:
        assert "nothing can be read" in refused(whole.path.read_bytes()[:100] + bytes(200_000), StoreCorrupt).message

    @pytest.mark.parametrize("data", [b"\xff\xd8\xff\xe0" + os.urandom(200_000), b"hello\n", b"\r" * 9_999])
    def test_repair_refuses_a_file_that_is_no_database(self, refused: Callable[..., HermesError], data: bytes) -> None:
        assert "not a session database" in refused(data, NotADatabase).message

    @pytest.mark.parametrize("byte", [0, 3_000, 5_000])
    def test_database_without_sessions_is_refused(
        self, refused: Callable[..., HermesError], tmp_path: Path, byte: int
    ) -> None:
        """Undamaged, or with a wrong byte in its header, its schema or its rows."""
        other = tmp_path / "other.db"
        change(other, "CREATE TABLE sessions (id, data)", "CREATE TABLE t (a)", "INSERT INTO t VALUES (zeroblob(9999))")
        data = bytearray(other.read_bytes())
        other.unlink()
        data[byte] ^= 1
        assert refused(bytes(data), NotADatabase).code == "not_a_database"

    @pytest.mark.parametrize("is_damaged", [False, True])
    def test_file_of_another_program_is_refused(self, refused: Callable[..., HermesError], is_damaged: bool) -> None:
        data = bytearray(gzip.decompress((FILES / "v22.db.gz").read_bytes()))
        if is_damaged:
            data[20 * 4_096 : 21 * 4_096] = bytes(4_096)
        error = refused(bytes(data), NotADatabase)
        assert "hermes sessions import" in error.hint

    @pytest.mark.parametrize(
        "statement",
        [
            "INSERT INTO hermes_ledger VALUES ('9999_later', '', 0)",
            "UPDATE state_meta SET value = '99' WHERE key = 'min_writer'",
        ],
    )
    def test_file_of_a_newer_version_is_refused(
        self, refused: Callable[..., HermesError], path: Path, whole: IntactStore, statement: str
    ) -> None:
        change(path, statement)
        zero(path, page_map(path, "messages").pages("leaf")[3])
        assert "newer version" in refused(path.read_bytes(), StoreTooNew).message

    def test_missing_file_and_directory_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(NotFound):
            repair(tmp_path / "nothing.db")
        with pytest.raises(NotADatabase):
            repair(tmp_path)

    def test_repair_on_a_full_disk_is_refused(
        self, path: Path, whole: IntactStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        zero(path, whole.message_pages.pages("leaf")[3])
        monkeypatch.setattr(working_copy, "free_bytes", lambda _: 1 << 20)
        before = listing(path)
        with pytest.raises(StoreFull):
            repair(path)
        assert listing(path) == before
