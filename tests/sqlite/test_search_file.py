"""A search sees what other processes and handles do to the file of a store."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.state.sqlite.store import indexer
from hermes_state import SessionDB
from tests.support.conversations import ids, say, start
from tests.support.plainsql import change, rows
from tests.support.stores import engine_of
from tests.support.waiting import LIMIT_S
from tests.upgrade.checks import environment

PATIENCE_S = 10.0
EVERYTHING = 100_000
BATCH = 512


def found_in(store: SessionDB, query: str, **filters: Any) -> list[int]:
    """The ids of all messages that match, sorted."""
    results = store.search_messages(query, limit=EVERYTHING, budget_s=PATIENCE_S, **filters)
    assert (results.complete, results.degraded) == (True, False)
    return sorted(ids(results))


def fill(store: SessionDB, session_id: str, count: int) -> list[int]:
    """Append `count` messages, each with its own number."""
    return store.append_messages(
        session_id, [{"role": "user", "content": f"filler number{number}"} for number in range(count)]
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of the test's store."""
    return tmp_path / "main.db"


@pytest.fixture
def store(path: Path) -> Iterator[SessionDB]:
    """An empty store."""
    with SessionDB(path) as opened:
        yield opened


@pytest.fixture(params=["unindexed", "indexed", "more of both"])
def indexed_store(request: pytest.FixtureRequest, path: Path) -> Iterator[SessionDB]:
    """A store with the sessions `s` and `t`, its index in one of several states."""
    store = SessionDB(path)
    start(store, "s", "t")
    say(store, "s", "docker one", "docker two", "podman three")
    say(store, "t", "docker four")
    if request.param != "unindexed":
        store.close()
        store = SessionDB(path)
    if request.param == "more of both":
        fill(store, "t", BATCH + 100)
    with store:
        yield store


def test_message_of_another_process_is_found(indexed_store: SessionDB, path: Path) -> None:
    before = found_in(indexed_store, "docker")
    run(path, "db.append_message('s', 'user', 'docker from elsewhere')")
    assert len(found_in(indexed_store, "docker")) == len(before) + 1
    assert len(found_in(indexed_store, "elsewhere")) == 1


def test_search_works_while_another_process_indexes(indexed_store: SessionDB, path: Path) -> None:
    run(path, f"db.append_messages('s', [dict(role='user', content='docker elsewhere')] * {2 * BATCH})")
    assert len(found_in(indexed_store, "elsewhere")) == 2 * BATCH
    found = say(indexed_store, "s", "docker here")
    assert found_in(indexed_store, "here") == found


def test_another_process_finds_a_message_of_this_one(indexed_store: SessionDB, path: Path) -> None:
    say(indexed_store, "s", "docker here")
    assert run(path, "print(len(db.search_messages('docker here')))") == "1\n"


@pytest.mark.parametrize("column", ["content", "tool_name", "tool_calls"])
def test_text_is_edited_by_plain_sql(indexed_store: SessionDB, path: Path, column: str) -> None:
    first, *_ = found_in(indexed_store, "one")
    change(path, f"UPDATE messages SET content = NULL, {column} = '\"compose\"' WHERE id = {first}")
    assert found_in(indexed_store, "compose") == [first]
    assert found_in(indexed_store, "one") == []
    assert found_in(indexed_store, "*ompos*") == [first]
    assert first not in found_in(indexed_store, "docker")


def test_rows_are_inserted_by_plain_sql(indexed_store: SessionDB, path: Path) -> None:
    insert = "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s', 'user', 'compose', 1.0)"
    change(path, insert, insert)
    assert len(found_in(indexed_store, "compose")) == 2
    assert len(found_in(indexed_store, "compose", until=1.0)) == 2


def test_rows_are_deleted_by_plain_sql(indexed_store: SessionDB, path: Path) -> None:
    first, *_ = found_in(indexed_store, "one")
    change(path, f"DELETE FROM messages WHERE id = {first}")
    assert first not in found_in(indexed_store, "docker")
    assert found_in(indexed_store, "one") == []


def test_role_and_session_are_edited_by_plain_sql(indexed_store: SessionDB, path: Path) -> None:
    first, *_ = found_in(indexed_store, "one")
    change(path, f"UPDATE messages SET role = 'system', session_id = 't' WHERE id = {first}")
    assert found_in(indexed_store, "docker", role_filter=["system"]) == [first]
    assert first in found_in(indexed_store, "docker", session_ids=["t"])
    assert first not in found_in(indexed_store, "docker", session_ids=["s"])


def test_source_and_owner_are_edited_by_plain_sql(indexed_store: SessionDB, path: Path) -> None:
    change(path, "UPDATE sessions SET source = 'web', owner = 'web:1' WHERE id = 's'")
    assert len(found_in(indexed_store, "docker", source_filter=["web"])) == 2
    assert len(found_in(indexed_store, "docker", owner="web:1")) == 2
    assert len(found_in(indexed_store, "docker", exclude_sources=["web"])) == 1


def test_times_are_edited_by_plain_sql(indexed_store: SessionDB, path: Path) -> None:
    first, *_ = found_in(indexed_store, "one")
    change(path, f"UPDATE messages SET timestamp = 5.0 WHERE id = {first}")
    assert found_in(indexed_store, "docker", until=5.0) == [first]
    assert ids(indexed_store.search_messages("docker", sort="oldest"))[0] == first


def test_edits_stay_visible_once_they_are_indexed(path: Path, store: SessionDB) -> None:
    found = fill(store, start(store, "s"), BATCH)
    change(path, f"UPDATE messages SET content = 'compose' WHERE id = {found[3]}")
    fill(store, "s", BATCH + 1)
    assert found_in(store, "compose") == [found[3]]
    store.close()
    with SessionDB(path) as again:
        assert found_in(again, "compose") == [found[3]]
        assert found[3] not in found_in(again, "filler")


def test_undo_does_not_change_the_index(path: Path, store: SessionDB, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexer, "PAUSE_S", LIMIT_S)  # nothing is indexed or merged in the background
    found = fill(store, start(store, "s"), BATCH)
    engine_of(store).catch_up()  # type: ignore[attr-defined]
    before = index_pages(path)
    store.rewind_to_message("s", found[5])
    store.restore_rewound("s", found[100])
    assert index_pages(path) == before
    assert rows(path, "SELECT COUNT(*) FROM stale_index") == [(0,)]


def test_words_of_deleted_messages_are_removed_from_the_index(path: Path, store: SessionDB) -> None:
    start(store, "s", "t")
    fill(store, "s", BATCH)
    store.delete_session("s")
    for table in ("messages_fts", "messages_fts_trigram"):
        assert rows(path, f"SELECT COUNT(*) FROM {table}_docsize") == [(0,)]


def index_pages(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All pages of the two indexes on disk."""
    tables = [
        f"{index}_{shadow}"
        for index in ("messages_fts", "messages_fts_trigram")
        for shadow in ("data", "idx", "docsize", "config")
    ]
    return {table: rows(path, f"SELECT * FROM {table}") for table in tables}


def run(path: Path, statement: str) -> str:
    """Run one statement in another process, and return its output."""
    program = f"from hermes_state import SessionDB\nwith SessionDB({str(path)!r}) as db:\n    {statement}"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30, env=environment()
    )
    return done.stdout
