"""A search index that is damaged or gone, while the messages are whole."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from hermes.state.engine import Coverage
from hermes_state import SessionDB
from tests.fault.child import SESSION

MESSAGES = 1_200
DAMAGES = {
    "the words are gone": ["DROP TABLE messages_fts"],
    "the trigrams are gone": ["DROP TABLE messages_fts_trigram"],
    "both are gone": ["DROP TABLE messages_fts", "DROP TABLE messages_fts_trigram"],
    "the pages of words are noise": [
        "UPDATE messages_fts_data SET block = randomblob(length(block)) WHERE id > 10",
        "UPDATE messages_fts_trigram_data SET block = randomblob(length(block)) WHERE id > 10",
    ],
    "the structure is noise": [
        "UPDATE messages_fts_data SET block = randomblob(length(block)) WHERE id = 10",
        "UPDATE messages_fts_trigram_data SET block = randomblob(length(block)) WHERE id = 10",
    ],
    "pages are missing": [
        "DELETE FROM messages_fts_data WHERE id > 10",
        "DELETE FROM messages_fts_trigram_data WHERE id > 10",
    ],
    "the configuration is gone": ["DELETE FROM messages_fts_config", "DELETE FROM messages_fts_trigram_config"],
}


def damage(path: Path, statements: list[str]) -> None:
    connection = apsw.Connection(str(path))
    try:
        for statement in statements:
            connection.execute(statement).fetchall()
    finally:
        connection.close()


def fill(db: SessionDB) -> None:
    db.append_messages(SESSION, [{"role": "user", "content": f"axolotl number{i}"} for i in range(MESSAGES)])


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not happen within a minute"
        time.sleep(0.02)


def is_whole(db: SessionDB) -> bool:
    found = db.search_messages("axolotl", limit=10 * MESSAGES)
    parts = db.search_messages("*xolot*", limit=10 * MESSAGES)
    return not found.degraded and not parts.degraded and len(found) == len(parts) == db.message_count()


@pytest.mark.parametrize("statements", DAMAGES.values(), ids=DAMAGES)
class TestWhileTheStoreIsOpen:
    def test_messages_are_stored_and_found_and_the_index_comes_back(
        self, db: SessionDB, path: Path, statements: list[str]
    ) -> None:
        fill(db)
        damage(path, statements)
        added = db.append_message(SESSION, "user", "axolotl last")
        for query in ("axolotl", "*xolot*"):
            found = db.search_messages(query, limit=10 * MESSAGES)
            assert len(found) == MESSAGES + 1
        assert [hit["id"] for hit in db.search_messages("last")] == [added]
        until(lambda: is_whole(db))
        with SessionDB(path) as again:
            assert is_whole(again)

    def test_messages_are_deleted(self, db: SessionDB, path: Path, statements: list[str]) -> None:
        fill(db)
        db.create_session("other", "cli")
        db.append_message("other", "user", "a newt")
        damage(path, statements)
        db.append_messages("other", [{"role": "user", "content": "a second newt"}])
        assert db.delete_session(SESSION)
        assert db.message_count() == 2
        until(lambda: [len(db.search_messages(word)) for word in ("axolotl", "newt")] == [0, 2])
        until(lambda: not db.search_messages("newt").degraded)

    def test_an_open_store_of_another_kind_only_reads_on(
        self, db: SessionDB, path: Path, statements: list[str]
    ) -> None:
        fill(db)
        with SessionDB(path, read_only=True) as reader:
            damage(path, statements)
            assert len(reader.search_messages("axolotl", limit=10 * MESSAGES)) == MESSAGES


@pytest.mark.parametrize("statements", DAMAGES.values(), ids=DAMAGES)
def test_while_the_store_is_closed(path: Path, statements: list[str]) -> None:
    with SessionDB(path) as db:
        fill(db)
    damage(path, statements)
    with SessionDB(path) as db:
        assert len(db.search_messages("axolotl", limit=10 * MESSAGES)) == MESSAGES
        db.append_message(SESSION, "user", "axolotl last")
        until(lambda: is_whole(db))


def test_a_degraded_search_says_so(db: SessionDB, path: Path) -> None:
    fill(db)
    damage(path, DAMAGES["the structure is noise"])
    found = db.search_messages("number1199")
    assert (found.degraded, found.path, found.complete, len(found)) == (True, "scan", True, 1)


def test_an_index_that_is_whole_is_not_made_anew(db: SessionDB) -> None:
    fill(db)
    engine = db._engine

    def coverage() -> Coverage:
        return engine.read(lambda tx: engine.index.coverage(tx, 1))

    before = coverage()
    engine.heal_index(before.epoch - 1)
    until(lambda: coverage().upto == MESSAGES)
    assert coverage().epoch == before.epoch
