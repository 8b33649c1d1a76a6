"""The pages and trees of a file, compared with what SQLite itself reads."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from hermes.state.sqlite.repair.fileformat.btrees import Span, Trees, free_pages
from hermes.state.sqlite.repair.fileformat.pages import Pages, header_of
from hermes.state.sqlite.repair.fileformat.records import Value
from tests.support.plainsql import rows

FRAME_HEADER = 24
LOG_HEADER = 32


def row(key: int) -> tuple[int, str, bytes, float | None, Value, int]:
    """Return a row with values of many types and lengths."""
    chance = random.Random(key)
    return (
        key,
        "é" * chance.choice([0, 1, 10, 300, 2_000]),
        chance.randbytes(chance.choice([0, 3, 50, 3_000])),
        chance.choice([1.5, -1e300, None]),
        chance.choice([None, 0, 1, -5, 127, 128, -32_769, 2**31, 2**40, -(2**63), "x"]),
        key % 3,
    )


@contextmanager
def database(path: Path, *, page_size: int = 1_024, auto_vacuum: int = 0) -> Iterator[apsw.Connection]:
    """Create a database with rows, an index and a table without row ids, open and with a log."""
    connection = apsw.Connection(str(path))
    for pragma in (f"page_size = {page_size}", f"auto_vacuum = {auto_vacuum}", "journal_mode = wal"):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    for pragma in ("wal_autocheckpoint = 0", "synchronous = off"):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b BLOB, c REAL, d, e INTEGER)").fetchall()
    connection.execute("CREATE INDEX i ON t (a, c)").fetchall()
    connection.execute("CREATE TABLE w (k TEXT, n INTEGER, v TEXT, PRIMARY KEY (n, k)) WITHOUT ROWID").fetchall()
    try:
        add(connection, -20, 120)
        with connection:
            pairs = [(f"k{n}", n % 7, "v" * (n % 700)) for n in range(200)]
            connection.executemany("INSERT INTO w VALUES (?, ?, ?)", pairs).fetchall()
        connection.execute("PRAGMA wal_checkpoint").fetchall()
        yield connection
    finally:
        connection.close()


def add(connection: apsw.Connection, first: int, last: int) -> None:
    with connection:
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", map(row, range(first, last))).fetchall()


@contextmanager
def pages_of(path: Path) -> Iterator[Pages]:
    pages = Pages(path)
    try:
        yield pages
    finally:
        pages.close()


def read(path: Path) -> list[Any]:
    """Return the rows of the table by our reader, if it finds no damage."""
    with pages_of(path) as pages:
        return read_from(Trees(pages))


def read_from(trees: Trees) -> list[Any]:
    lost: list[Span] = []
    found = [
        (cell.key, *cell.values[1:])
        for span in trees.table(root_of(trees.pages, "t"), lost)
        for cell in trees.rows(span.number)
        if span.low < cell.key <= span.high and not cell.is_truncated
    ]
    assert lost == []
    assert trees.damaged_pages == set()
    return found


def root_of(pages: Pages, name: str) -> int:
    trees = Trees(pages)
    cells = [cell.values for span in trees.table(1, []) for cell in trees.rows(span.number)]
    (root,) = [values[3] for values in cells if values[1] == name]
    assert isinstance(root, int)
    return root


def copied(path: Path, target: Path) -> Path:
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", f"{target}{suffix}")
    return target


@pytest.mark.parametrize("auto_vacuum", [0, 1])
@pytest.mark.parametrize("page_size", [512, 1_024, 4_096, 65_536])
def test_every_row_and_entry_is_read_as_sqlite_reads_it(tmp_path: Path, page_size: int, auto_vacuum: int) -> None:
    path = tmp_path / "x.db"
    with database(path, page_size=page_size, auto_vacuum=auto_vacuum) as connection:
        with connection:
            connection.execute("DELETE FROM t WHERE id % 5 = 2").fetchall()
        add(connection, 120, 160)
        with pages_of(path) as pages:
            assert read_from(Trees(pages)) == connection.execute("SELECT * FROM t ORDER BY id").fetchall()
            entries = [tuple(values) for values in Trees(pages).index(root_of(pages, "i"))]
            assert sorted(entries, key=str) == sorted(connection.execute("SELECT a, c, id FROM t"), key=str)
            pairs = [tuple(values) for values in Trees(pages).index(root_of(pages, "w"))]
            assert sorted(pairs, key=str) == sorted(connection.execute("SELECT n, k, v FROM w"), key=str)


def test_free_pages_are_recognized(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with database(path) as connection:
        with connection:
            connection.execute("DELETE FROM t WHERE id > 50").fetchall()
        with pages_of(path) as pages:
            free, is_whole = free_pages(pages)
            trees = Trees(pages)
            read_from(trees)
        assert is_whole
        assert sum(free) == connection.execute("PRAGMA freelist_count").fetchall()[0][0]
        assert not [number for number in range(len(free)) if free[number] and trees.has_reached(number)]


class TestLog:
    def test_only_committed_frames_count(self, tmp_path: Path) -> None:
        path = tmp_path / "x.db"
        with database(path) as connection:
            add(connection, 120, 130)
            connection.execute("PRAGMA cache_size = 1").fetchall()
            connection.execute("BEGIN").fetchall()
            connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", map(row, range(130, 160))).fetchall()
            assert [each[0] for each in read(path)] == list(range(-20, 130))

    def test_a_log_cut_anywhere_is_read_as_sqlite_reads_it(self, tmp_path: Path) -> None:
        path, copy = tmp_path / "x.db", tmp_path / "copy.db"
        with database(path) as connection:
            for first in range(120, 132, 4):
                add(connection, first, first + 4)
            frames = (os.stat(f"{path}-wal").st_size - LOG_HEADER) // (1_024 + FRAME_HEADER)
            for kept in [0, 1, frames // 3, frames // 2, frames - 1, frames]:
                copied(path, copy)
                os.truncate(f"{copy}-wal", LOG_HEADER + kept * (1_024 + FRAME_HEADER) + 500)
                assert read(copy) == rows(copy, "SELECT * FROM t ORDER BY id")
                copy.unlink()

    def test_frames_of_an_earlier_log_do_not_count(self, tmp_path: Path) -> None:
        path = tmp_path / "x.db"
        with database(path) as connection:
            add(connection, 120, 150)
            connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
            with connection:
                connection.execute("DELETE FROM t WHERE id > 100").fetchall()
            with pages_of(path) as pages:
                assert read_from(Trees(pages)) == connection.execute("SELECT * FROM t ORDER BY id").fetchall()
                assert pages.pages_after_damage == []

    @pytest.mark.parametrize("at", [1_000, 8])
    def test_commits_after_damage_are_kept_apart(self, tmp_path: Path, at: int) -> None:
        """Flip a bit of a page, or of the header of a frame."""
        path, copy = tmp_path / "x.db", tmp_path / "copy.db"
        with database(path) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            add(connection, 120, 121)
            middle = os.stat(f"{path}-wal").st_size
            add(connection, 121, 122)
            add(connection, 122, 123)
            copied(path, copy)
        with open(f"{copy}-wal", "r+b") as log:
            log.seek(middle + at)
            byte = log.read(1)[0]
            log.seek(middle + at)
            log.write(bytes([byte ^ 1]))
        with pages_of(copy) as pages:
            trees = Trees(pages)
            found = read_from(trees)
            behind = [trees.rows_of(pages.page_after_damage(number), number) for number in pages.pages_after_damage]
        assert found == rows(copied(copy, tmp_path / "second.db"), "SELECT * FROM t ORDER BY id")
        assert found[-1][0] == 120
        assert 122 in {cell.key for cells in behind for cell in cells}

    def test_a_log_without_its_header_counts_as_damaged(self, tmp_path: Path) -> None:
        path, copy = tmp_path / "x.db", tmp_path / "copy.db"
        with database(path) as connection:
            connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
            add(connection, 120, 123)
            copied(path, copy)
        with open(f"{copy}-wal", "r+b") as log:
            log.write(bytes(LOG_HEADER))
        with pages_of(copy) as pages:
            assert read_from(Trees(pages))[-1][0] == 119
            assert pages.pages_after_damage


class TestWithoutHeader:
    @pytest.mark.parametrize("page_size", [512, 4_096, 8_192, 65_536])
    def test_the_page_size_is_found_without_a_header(self, tmp_path: Path, page_size: int) -> None:
        path = tmp_path / "x.db"
        with database(path, page_size=page_size) as connection:
            expected = connection.execute("SELECT * FROM t ORDER BY id").fetchall()
            with pages_of(path) as pages:
                root = root_of(pages, "t")
        with path.open("r+b") as file:
            file.write(bytes(100))
        with pages_of(path) as pages:
            assert (pages.size, pages.header.is_sound) == (page_size, False)
            trees = Trees(pages)
            found = [cell.key for span in trees.table(root, []) for cell in trees.rows(span.number)]
        assert found == [each[0] for each in expected]

    def test_the_page_size_is_found_in_the_log(self, tmp_path: Path) -> None:
        path, copy = tmp_path / "x.db", tmp_path / "copy.db"
        with database(path, page_size=2_048) as connection:
            add(connection, 120, 121)
            copied(path, copy)
        copy.write_bytes(b"")
        with pages_of(copy) as pages:
            assert pages.size == 2_048


@pytest.mark.parametrize(
    "data", [b"", b"SQLite format 3\0", bytes(range(155, 255)), bytes(100), b"SQLite format 3\0" * 7]
)
def test_a_header_that_makes_no_sense_is_not_sound(data: bytes) -> None:
    assert not header_of(data).is_sound


def test_a_file_that_was_cut_off_lacks_pages(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with database(path) as connection:
        (count,) = connection.execute("PRAGMA page_count").fetchall()[0]
        assert isinstance(count, int)
    os.truncate(path, (count - 10) * 1_024 - 300)
    with pages_of(path) as pages:
        assert (pages.count, pages.expected) == (count - 10, count)
        assert len(pages.page(count - 10)) == 1_024
