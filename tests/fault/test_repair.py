"""Damage to every kind of page: all other rows are saved, and the search finds them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.state.sqlite.repair.repair import FileCondition, check, repair
from hermes_state import SessionDB
from tests.fault.damaged import SIZE, IntactStore, assert_saved, make_intact_store
from tests.support.pagemap import overwrite
from tests.support.plainsql import change, plain, rows

Write = Callable[[bytes], bytes]

DAMAGES: dict[str, Write] = {
    "zeros": lambda data: bytes(len(data)),
    "noise": lambda data: os.urandom(len(data)),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> IntactStore:
    return make_intact_store(tmp_path_factory.mktemp("whole") / "state.db")


@pytest.fixture
def path(whole: IntactStore, tmp_path: Path) -> Path:
    return whole.copy(tmp_path / "state.db")


def pages_of(path: Path, name: str, kind: str) -> list[int]:
    found = rows(path, "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = ? ORDER BY pageno", name, kind)
    return [number for (number,) in found]


def root_of(path: Path, name: str) -> int:
    return int(rows(path, "SELECT rootpage FROM sqlite_schema WHERE name = ?", name)[0][0])


def damage(path: Path, number: int, write: Write) -> None:
    with path.open("rb") as file:
        file.seek((number - 1) * SIZE)
        data = file.read(SIZE)
    overwrite(path, number, write(data), size=SIZE)


def test_the_trees_have_several_levels(whole: IntactStore) -> None:
    assert len(pages_of(whole.path, "messages", "internal")) > 2
    assert len(pages_of(whole.path, "sqlite_schema", "leaf")) > 2


class TestData:
    @pytest.mark.parametrize("write", DAMAGES.values(), ids=DAMAGES)
    def test_damaged_page_with_messages(self, path: Path, whole: IntactStore, write: Write) -> None:
        number = whole.message_pages.pages("leaf")[40]
        damage(path, number, write)
        outcome = repair(path)
        assert (outcome.condition, outcome.damage) == (FileCondition.REPAIRED, ("data",))
        assert outcome.salvaged is not None
        lost = len(whole.message_pages.keys[number])
        assert outcome.salvaged.lost_messages == lost > 0
        assert outcome.salvaged.pages_damaged == 1
        assert_saved(path, whole, [number], lost=lost)

    @pytest.mark.parametrize("write", DAMAGES.values(), ids=DAMAGES)
    def test_damaged_interior_page_of_messages(self, path: Path, whole: IntactStore, write: Write) -> None:
        root = root_of(path, "messages")
        number = next(each for each in whole.message_pages.pages("internal") if each != root)
        damage(path, number, write)
        outcome = repair(path)
        assert outcome.salvaged is not None
        assert outcome.salvaged.rows["messages"].unreachable > 100
        assert outcome.salvaged.lost_messages == 0
        assert_saved(path, whole, [number], lost=0)

    def test_damaged_root_page_of_messages(self, path: Path, whole: IntactStore) -> None:
        number = root_of(path, "messages")
        damage(path, number, DAMAGES["noise"])
        outcome = repair(path)
        assert outcome.salvaged is not None
        assert outcome.salvaged.rows["messages"].from_table == 0
        assert_saved(path, whole, [number], lost=0)

    def test_text_before_a_damaged_overflow_page_is_saved(self, path: Path, whole: IntactStore) -> None:
        number = whole.message_pages.pages("overflow")[7]
        (key,) = whole.message_pages.keys[number]
        damage(path, number, DAMAGES["noise"])
        repair(path)
        assert_saved(path, whole, [number], lost=0)
        (content,) = rows(path, "SELECT content FROM messages WHERE id = ?", key)[0]
        assert str(content).startswith("axolotl word")

    def test_damaged_page_with_sessions(self, path: Path, whole: IntactStore) -> None:
        number = whole.session_pages.pages("leaf")[1]
        gone = {
            rows(path, "SELECT id FROM sessions WHERE rowid = ?", key)[0][0] for key in whole.session_pages.keys[number]
        }
        damage(path, number, DAMAGES["zeros"])
        outcome = repair(path)
        assert outcome.salvaged is not None
        assert outcome.salvaged.sessions_rebuilt == len(gone) > 0
        assert_saved(path, whole, [number], lost=0)
        with SessionDB(path) as db:
            for name in gone:
                found, before = db.get_session(name), whole.sessions[name]
                assert found is not None
                assert (found["source"], found["owner"], found["title"]) == ("telegram", before[3], before[6])
                assert (found["parent_session_id"], found["input_tokens"]) == (before[4], 7)
                assert found["message_count"] == len(db.get_messages(name)) > 0

    @pytest.mark.parametrize("write", DAMAGES.values(), ids=DAMAGES)
    def test_damaged_first_page_of_the_file(self, path: Path, whole: IntactStore, write: Write) -> None:
        damage(path, 1, write)
        outcome = repair(path)
        assert {"header", "schema"} <= set(outcome.damage)
        assert_saved(path, whole, [1], lost=0)

    def test_damaged_page_of_the_schema(self, path: Path, whole: IntactStore) -> None:
        for number in pages_of(path, "sqlite_schema", "leaf"):
            whole.copy(path)
            damage(path, number, DAMAGES["zeros"])
            outcome = check(path)
            assert "schema" in outcome.damage
            assert outcome.salvaged is not None
            assert outcome.salvaged.messages == len(whole.messages)
            assert outcome.salvaged.sessions == len(whole.sessions)
        repair(path)
        assert_saved(path, whole, [], lost=0)


class TestIndexes:
    @pytest.mark.parametrize(
        "name",
        ["idx_messages_session", "sqlite_autoindex_sessions_1", "idx_sessions_list_active", "messages_fts_data"],
    )
    def test_flipped_bits_in_an_index_lose_nothing(self, path: Path, whole: IntactStore, name: str) -> None:
        """All messages can be read and found again, and none is reported as lost."""
        numbers = pages_of(path, name, "leaf")
        for number in numbers[:: max(1, len(numbers) // 5)]:
            damage(path, number, flip_bits)
        outcome = repair(path)
        assert (outcome.condition, outcome.damage) == (FileCondition.REPAIRED, ("index",))
        assert outcome.salvaged is not None
        assert outcome.salvaged.lost_messages == outcome.salvaged.sessions_rebuilt == 0
        assert_saved(path, whole, [], lost=0)

    def test_missing_search_index_is_rebuilt(self, path: Path, whole: IntactStore) -> None:
        change(path, "DROP TABLE messages_fts", "DROP TABLE messages_fts_trigram")
        damage(path, pages_of(path, "idx_messages_session", "leaf")[0], flip_bits)
        repair(path)
        assert_saved(path, whole, [], lost=0)

    @pytest.mark.parametrize(
        ("statement", "damage"),
        [
            ("UPDATE sessions SET message_count = 99, preview = 'wrong' WHERE id = 's003'", "counts"),
            ("DELETE FROM messages_fts WHERE rowid BETWEEN 100 AND 120", "index"),
        ],
    )
    def test_values_that_contradict_the_messages_are_fixed(
        self, path: Path, whole: IntactStore, statement: str, damage: str
    ) -> None:
        """Also if every page can be read."""
        change(path, statement)
        assert repair(path).damage == (damage,)
        assert_saved(path, whole, [], lost=0)
        assert check(path).condition is FileCondition.HEALTHY

    def test_unused_rows_are_no_damage(self, path: Path) -> None:
        with plain(path) as connection:
            connection.execute("CREATE TABLE pairs (id TEXT REFERENCES sessions(id))").fetchall()
            connection.execute("INSERT INTO pairs VALUES ('unknown')").fetchall()
        SessionDB(path).close()
        assert check(path).condition is FileCondition.HEALTHY


def flip_bits(data: bytes) -> bytes:
    """Flip a bit in every eighth byte after the header of a page."""
    return bytes(byte ^ 4 if at > 20 and at % 8 == 0 else byte for at, byte in enumerate(data))


def test_row_with_a_flipped_key_keeps_its_position(path: Path, whole: IntactStore) -> None:
    number = whole.message_pages.pages("leaf")[60]
    _, key, *_ = sorted(whole.message_pages.keys[number])
    stored = bytes([key >> 7 | 0x80, key & 0x7F])

    def renumber(data: bytes) -> bytes:
        at = data.index(stored, 20) + 1
        return data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :]

    damage(path, number, renumber)
    outcome = repair(path)
    assert "data" in outcome.damage
    assert_saved(path, whole, [], lost=0)


def test_swapped_pages_are_repaired(path: Path, whole: IntactStore) -> None:
    """The root page of the messages is where a page of the search index should be, and the reverse."""
    root, other = root_of(path, "messages"), pages_of(path, "messages_fts_data", "leaf")[3]
    data = path.read_bytes()
    contents = {number: data[(number - 1) * SIZE : number * SIZE] for number in (root, other)}
    overwrite(path, root, contents[other], size=SIZE)
    overwrite(path, other, contents[root], size=SIZE)
    repair(path)
    assert_saved(path, whole, [root], lost=0)


def test_deleted_rows_do_not_come_back(path: Path, whole: IntactStore) -> None:
    """Their pages are free, but still contain them."""
    # Without triggers SQLite frees the pages of a table at once, without reading them.
    triggers = [name for (name,) in rows(path, "SELECT name FROM sqlite_schema WHERE type = 'trigger'")]
    change(
        path,
        *(f"DROP TRIGGER {name}" for name in triggers),
        "CREATE TABLE kept AS SELECT * FROM messages WHERE id < 300",
        "DELETE FROM messages",
        "INSERT INTO messages SELECT * FROM kept",
        "DROP TABLE kept",
    )
    left = rows(path, "SELECT count(*) FROM messages")
    assert b"word1400 " in path.read_bytes()
    damage(path, root_of(path, "messages"), DAMAGES["noise"])
    repair(path)
    assert rows(path, "SELECT count(*) FROM messages") == left
    assert rows(path, "SELECT MAX(id) FROM messages") == [(299,)]


def test_truncated_message_is_kept_and_counted(path: Path, whole: IntactStore) -> None:
    number = whole.message_pages.pages("overflow")[0]
    (key,) = whole.message_pages.keys[number]
    damage(path, number, DAMAGES["zeros"])
    outcome = repair(path)
    assert outcome.salvaged is not None
    assert outcome.salvaged.rows["messages"].truncated == 1
    (content,) = rows(path, "SELECT content FROM messages WHERE id = ?", key)[0]
    assert str(content).startswith("axolotl word")
    assert str(content).endswith("\ufffd")


def test_metadata_usage_and_undos_are_saved(path: Path) -> None:
    damage(path, root_of(path, "messages"), DAMAGES["zeros"])
    repair(path)
    with SessionDB(path) as db:
        assert db.get_meta("note") == "kept"
        assert [event["input_tokens"] for event in db.list_usage_events("s005")] == [7]
        assert len(db.list_rewinds("s002")) == 1
        newest = max(message["id"] for message in db.get_messages("s039"))
        assert db.append_message("s039", "user", "one more") == newest + 1


def test_tables_columns_and_indexes_of_other_programs_are_saved(path: Path) -> None:
    change(
        path,
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, said TEXT)",
        "CREATE INDEX notes_said ON notes (said)",
        "CREATE TABLE pairs (k TEXT, n INTEGER, v, PRIMARY KEY (k, n)) WITHOUT ROWID",
        "INSERT INTO notes VALUES (7, 'seven')",
        "INSERT INTO pairs VALUES ('a', 1, 2.5), ('b', 1, NULL)",
        "ALTER TABLE sessions ADD COLUMN mood TEXT",
        "UPDATE sessions SET mood = 'good' WHERE id = 's003'",
    )
    damage(path, root_of(path, "messages"), DAMAGES["zeros"])
    repair(path)
    assert rows(path, "SELECT * FROM notes") == [(7, "seven")]
    assert rows(path, "SELECT k, n, v FROM pairs") == [("a", 1, 2.5), ("b", 1, None)]
    assert rows(path, "SELECT 1 FROM sqlite_schema WHERE name = 'notes_said'") == [(1,)]
    assert rows(path, "SELECT id FROM sessions WHERE mood = 'good'") == [("s003",)]
