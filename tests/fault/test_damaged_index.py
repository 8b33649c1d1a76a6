"""A damaged or missing search index, while the messages are undamaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.state.engine import Coverage
from hermes_state import SessionDB
from tests.fault.child import SESSION
from tests.support.plainsql import change
from tests.support.stores import engine_of
from tests.support.waiting import wait_until

MESSAGES = 1_200
REBUILD_S = 60.0
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


def fill(db: SessionDB) -> None:
    db.append_messages(SESSION, [{"role": "user", "content": f"axolotl number{i}"} for i in range(MESSAGES)])


def is_whole(db: SessionDB) -> bool:
    found = db.search_messages("axolotl", limit=10 * MESSAGES)
    parts = db.search_messages("*xolot*", limit=10 * MESSAGES)
    return not found.degraded and not parts.degraded and len(found) == len(parts) == db.message_count()


@pytest.mark.parametrize("statements", DAMAGES.values(), ids=DAMAGES)
class TestWhileTheStoreIsOpen:
    def test_messages_are_stored_and_found_and_the_index_is_rebuilt(
        self, db: SessionDB, path: Path, statements: list[str]
    ) -> None:
        fill(db)
        change(path, *statements)
        added = db.append_message(SESSION, "user", "axolotl last")
        for query in ("axolotl", "*xolot*"):
            found = db.search_messages(query, limit=10 * MESSAGES)
            assert len(found) == MESSAGES + 1
        assert [hit["id"] for hit in db.search_messages("last")] == [added]
        wait_until(lambda: is_whole(db), "the index to come back", REBUILD_S)
        with SessionDB(path) as again:
            assert is_whole(again)

    def test_messages_are_deleted_despite_a_damaged_index(
        self, db: SessionDB, path: Path, statements: list[str]
    ) -> None:
        fill(db)
        db.create_session("other", "cli")
        db.append_message("other", "user", "a newt")
        change(path, *statements)
        db.append_messages("other", [{"role": "user", "content": "a second newt"}])
        assert db.delete_session(SESSION)
        assert db.message_count() == 2
        wait_until(
            lambda: [len(db.search_messages(word)) for word in ("axolotl", "newt")] == [0, 2],
            "both to be so",
            REBUILD_S,
        )
        wait_until(lambda: not db.search_messages("newt").degraded, "the index to come back", REBUILD_S)

    def test_read_only_store_still_searches(self, db: SessionDB, path: Path, statements: list[str]) -> None:
        fill(db)
        with SessionDB(path, read_only=True) as reader:
            change(path, *statements)
            assert len(reader.search_messages("axolotl", limit=10 * MESSAGES)) == MESSAGES


@pytest.mark.parametrize("statements", DAMAGES.values(), ids=DAMAGES)
def test_index_damaged_while_the_store_is_closed_is_rebuilt(path: Path, statements: list[str]) -> None:
    with SessionDB(path) as db:
        fill(db)
    change(path, *statements)
    with SessionDB(path) as db:
        assert len(db.search_messages("axolotl", limit=10 * MESSAGES)) == MESSAGES
        db.append_message(SESSION, "user", "axolotl last")
        wait_until(lambda: is_whole(db), "the index to come back", REBUILD_S)


def test_search_without_an_index_is_marked_as_degraded(db: SessionDB, path: Path) -> None:
    fill(db)
    change(path, *DAMAGES["the structure is noise"])
    found = db.search_messages("number1199")
    assert (found.degraded, found.path, found.complete, len(found)) == (True, "scan", True, 1)


def test_undamaged_index_is_not_rebuilt(db: SessionDB) -> None:
    fill(db)
    engine = engine_of(db)

    def coverage() -> Coverage:
        return engine.read(lambda tx: engine.index.coverage(tx, 1))

    before = coverage()
    engine.heal_index(before.epoch - 1)
    wait_until(lambda: coverage().upto == MESSAGES, "the index to catch up", REBUILD_S)
    assert coverage().epoch == before.epoch
