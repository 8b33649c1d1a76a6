"""The full-text index on PostgreSQL: it has every message, and no words of deleted ones."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from typing import Any

import psycopg
import pytest

from hermes.config import SessionDBConfig
from hermes.state.postgres.engine import PostgresEngine
from hermes.state.postgres.provider import PostgreSQLSessionDBProvider
from hermes.state.postgres.search import indexing
from hermes.state.postgres.search.index_query import _ONE
from hermes.state.postgres.search.indexing import BATCH, DUE
from tests.support.conversations import ids, say, start
from tests.support.stores import engine_of
from tests.support.waiting import wait_until

PATIENCE_S = 10.0
EVERYTHING = 100_000
SMALL = {"BATCH": 4, "BULK": 8, "BACKLOG": 10}
KILLED = """
import os, signal, sys
from hermes.config import SessionDBConfig
from hermes.state.postgres.provider import PostgreSQLSessionDBProvider
from hermes.state.postgres.search import indexing

dsn, schema, sizes = sys.argv[1:]
for name, size in eval(sizes).items():
    setattr(indexing, name, size)
analyze_ahead = indexing.Indexer._analyze_ahead
batches = []

def kill_in_the_second_batch(self, rows):
    batches.append(rows)
    if len(batches) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    analyze_ahead(self, rows)

indexing.Indexer._analyze_ahead = kill_in_the_second_batch
settings = SessionDBConfig(provider="postgresql", schema=schema)
PostgreSQLSessionDBProvider(dsn, settings=settings)._engine.catch_up()
"""
"""A process that is killed while the server adds its second batch to the index."""


@pytest.fixture
def plain(connection: psycopg.Connection[Any], schema: str) -> psycopg.Connection[Any]:
    """A connection like that of another program, in the schema of the test."""
    connection.execute(f"SET search_path TO {schema}".encode())
    return connection


def postgres_engine(store: PostgreSQLSessionDBProvider) -> PostgresEngine:
    """The engine under a store."""
    engine = engine_of(store)
    assert isinstance(engine, PostgresEngine)
    return engine


def found_in(store: PostgreSQLSessionDBProvider, query: str, **filters: Any) -> list[int]:
    """The ids of all messages that match, sorted."""
    results = store.search_messages(query, limit=EVERYTHING, budget_s=PATIENCE_S, **filters)
    assert (results.complete, results.degraded) == (True, False)
    return sorted(ids(results))


def fill(store: PostgreSQLSessionDBProvider, session_id: str, count: int) -> list[int]:
    """Append `count` messages, each with its own number."""
    return store.append_messages(
        session_id, [{"role": "user", "content": f"filler number{number}"} for number in range(count)]
    )


def one(connection: psycopg.Connection[Any], query: str) -> Any:
    """The only value of a query."""
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def mark_of(connection: psycopg.Connection[Any]) -> int:
    """The id up to which messages are indexed."""
    return int(one(connection, "SELECT value FROM state_meta WHERE key = 'indexed_upto'"))


class TestFollowing:
    def test_messages_are_indexed_in_the_background(
        self, store: PostgreSQLSessionDBProvider, plain: psycopg.Connection[Any]
    ) -> None:
        found = fill(store, start(store, "s"), DUE + BATCH + 3)
        wait_until(lambda: mark_of(plain) >= found[-1] - DUE, "the index to follow")
        assert found_in(store, "filler") == found

    def test_messages_are_indexed_when_the_store_is_closed(
        self, dsn: str, settings: SessionDBConfig, plain: psycopg.Connection[Any]
    ) -> None:
        with PostgreSQLSessionDBProvider(dsn, settings=settings) as store:
            found = say(store, start(store, "s"), "docker", "podman")
        assert mark_of(plain) == found[-1]

    def test_only_one_process_indexes_at_a_time(
        self, store: PostgreSQLSessionDBProvider, plain: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found = fill(store, start(store, "s"), DUE - 1)
        monkeypatch.setattr(postgres_engine(store), "_write_timeout_s", 0.2)
        with plain.transaction():
            plain.execute(
                """SELECT pg_advisory_xact_lock(
                       (1212501325::bigint << 32) + 'message_words'::regclass::oid::bigint)"""
            )
            postgres_engine(store).catch_up()
            assert mark_of(plain) == 0
        postgres_engine(store).catch_up()
        assert mark_of(plain) == found[-1]

    def test_mark_does_not_pass_an_id_that_may_still_be_committed(
        self, store: PostgreSQLSessionDBProvider, plain: psycopg.Connection[Any], dsn: str, schema: str
    ) -> None:
        start(store, "s", "t")
        with psycopg.connect(dsn) as slow:
            slow.execute(f"SET LOCAL search_path TO {schema}".encode())
            slow.execute(
                """INSERT INTO messages (session_id, role, uid, timestamp, content)
                   VALUES ('t', 'user', 'slow', 1.0, 'lantern')"""
            )
            later = fill(store, "s", 10)
            postgres_engine(store).catch_up()
            assert mark_of(plain) == 0
            slow.commit()
        postgres_engine(store).catch_up()
        assert mark_of(plain) == later[-1]
        assert found_in(store, "lantern") == [later[0] - 1]

    def test_message_that_is_being_deleted_is_left_for_later(
        self, store: PostgreSQLSessionDBProvider, plain: psycopg.Connection[Any], dsn: str, schema: str
    ) -> None:
        found = say(store, start(store, "s"), "docker", "podman")
        with psycopg.connect(dsn) as slow:
            slow.execute(f"SET LOCAL search_path TO {schema}".encode())
            slow.execute("SELECT 1 FROM messages WHERE id = %s FOR UPDATE", [found[0]])
            postgres_engine(store).catch_up()
            assert mark_of(plain) == found[-1]
            assert found_in(store, "docker") == found[:1]
            slow.execute("DELETE FROM messages WHERE id = %s", [found[0]])
            slow.commit()
        postgres_engine(store).catch_up()
        assert found_in(store, "docker OR podman") == found[1:]
        assert one(plain, "SELECT count(*) FROM stale_index") == 0
        assert one(plain, "SELECT count(*) FROM message_words") == 1


class TestBacklog:
    """Many waiting messages are indexed in larger batches, and the next ones are analyzed meanwhile."""

    @pytest.fixture(autouse=True)
    def small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Sizes with which a few messages are a backlog."""
        for name, size in SMALL.items():
            monkeypatch.setattr(indexing, name, size)

    @pytest.fixture
    def waiting(self, store: PostgreSQLSessionDBProvider) -> list[int]:
        """The ids of some messages that are not indexed."""
        return fill(store, start(store, "s"), 40)

    def test_all_messages_of_a_backlog_are_found(
        self, store: PostgreSQLSessionDBProvider, plain: psycopg.Connection[Any], waiting: list[int]
    ) -> None:
        postgres_engine(store).catch_up()
        assert mark_of(plain) == waiting[-1]
        assert found_in(store, "filler") == found_in(store, "fill*") == waiting
        assert all(found_in(store, f"number{number}") == [each] for number, each in enumerate(waiting))

    def test_backlog_is_indexed_in_larger_batches_than_a_few_messages(
        self, store: PostgreSQLSessionDBProvider, waiting: list[int]
    ) -> None:
        engine = postgres_engine(store)
        assert [engine._index_batch().messages for _ in range(6)] == [8, 8, 8, 8, 8, 0]
        fill(store, "s", SMALL["BACKLOG"])
        assert [engine._index_batch().messages for _ in range(4)] == [4, 4, 2, 0]

    def test_message_changed_after_its_analysis_is_indexed_as_it_is(
        self, store: PostgreSQLSessionDBProvider, plain: psycopg.Connection[Any], waiting: list[int]
    ) -> None:
        engine = postgres_engine(store)
        assert engine._index_batch().upto == waiting[SMALL["BULK"] - 1]
        changed, moved, deleted = waiting[SMALL["BULK"] :][:3]
        plain.execute("UPDATE messages SET content = 'lantern' WHERE id = %s", [changed])
        plain.execute("DELETE FROM messages WHERE id = %s", [deleted])
        start(store, "t")
        plain.execute("UPDATE messages SET session_id = 't' WHERE id = %s", [moved])
        engine.catch_up()
        assert found_in(store, "lantern") == [changed]
        assert found_in(store, "filler", session_ids=["t"]) == [moved]
        assert found_in(store, "filler") == [each for each in waiting if each not in (changed, deleted)]
        assert one(plain, "SELECT count(*) FROM stale_index") == 0

    def test_process_killed_in_a_batch_leaves_a_consistent_index(
        self, store: PostgreSQLSessionDBProvider, plain: psycopg.Connection[Any], dsn: str, schema: str
    ) -> None:
        found = fill(store, start(store, "s"), 40)
        killed = subprocess.run([sys.executable, "-c", KILLED, dsn, schema, repr(SMALL)], timeout=60)
        assert killed.returncode == -signal.SIGKILL
        assert mark_of(plain) == found[SMALL["BULK"] - 1]
        assert one(plain, "SELECT count(*) FROM message_words") == SMALL["BULK"]
        assert found_in(store, "filler") == found
        wait_until(lambda: postgres_engine(store)._index_batch().upto is not None, "the lock of the killed process")
        postgres_engine(store).catch_up()
        assert mark_of(plain) == found[-1]
        assert found_in(store, "filler") == found


class TestForgetting:
    @pytest.fixture
    def secret(self, store: PostgreSQLSessionDBProvider) -> PostgreSQLSessionDBProvider:
        """An indexed store whose session `s` has a unique word."""
        start(store, "s", "t")
        say(store, "s", "the password is xyzzy12345")
        say(store, "t", "the password is secret")
        postgres_engine(store).catch_up()
        return store

    def test_words_of_a_deleted_session_are_forgotten(
        self, secret: PostgreSQLSessionDBProvider, plain: psycopg.Connection[Any]
    ) -> None:
        assert one(plain, "SELECT count(*) FROM known_words WHERE word LIKE 'xyzzy%'") > 0
        secret.delete_session("s")
        postgres_engine(secret).catch_up()
        assert one(plain, "SELECT count(*) FROM known_words WHERE word LIKE 'xyzzy%'") == 0
        assert one(plain, "SELECT count(*) FROM forgotten_words") == 0
        assert one(plain, "SELECT count(*) FROM message_words") == 1

    def test_words_of_other_messages_stay(self, secret: PostgreSQLSessionDBProvider) -> None:
        secret.delete_session("s")
        postgres_engine(secret).catch_up()
        assert len(found_in(secret, "passw*")) == 1
        assert len(found_in(secret, "*asswor*")) == 1

    def test_forgotten_word_is_known_again_when_it_is_used(
        self, secret: PostgreSQLSessionDBProvider, dsn: str, settings: SessionDBConfig
    ) -> None:
        with PostgreSQLSessionDBProvider(dsn, settings=settings) as other:
            other.delete_session("s")
            postgres_engine(other).catch_up()
        found = say(secret, "t", "again xyzzy12345")
        postgres_engine(secret).catch_up()
        assert found_in(secret, "xyzz*") == found

    def test_nothing_is_left_after_erasing(
        self, secret: PostgreSQLSessionDBProvider, plain: psycopg.Connection[Any]
    ) -> None:
        assert secret.delete_with_receipt(["s"], secure=True).is_erased
        assert one(plain, "SELECT count(*) FROM known_words WHERE word LIKE 'xyzzy%'") == 0


class TestLongTexts:
    """Texts that do not fit into a tsvector are found too."""

    @pytest.mark.parametrize(
        ("text", "query"),
        [
            ("filler " * 20_000 + "lantern", "lantern"),
            ("filler " * 20_000 + "bright lantern", '"bright lantern"'),
            ("again " * 400 + "the end", '"again the"'),
            ("x" * 3_000 + " lantern", "lantern"),
            ("q" * 3_000, "q" * 3_000),
            ("q" * 3_000 + "zz", "*qqzz*"),
            (" ".join(f"{n:x}" * 4 for n in range(50_000)) + " lantern", "lantern"),
        ],
        ids=["last word", "last phrase", "word said often", "beside a long word", "long word", "its end", "many words"],
    )
    def test_long_text_is_found(self, store: PostgreSQLSessionDBProvider, text: str, query: str) -> None:
        found = say(store, start(store, "s"), text, "something else")
        postgres_engine(store).catch_up()
        assert found_in(store, query) == found[:1]

    def test_long_text_is_not_found_for_other_words(self, store: PostgreSQLSessionDBProvider) -> None:
        say(store, start(store, "s"), "filler " * 20_000)
        postgres_engine(store).catch_up()
        assert found_in(store, "lantern") == []


class TestPlainSQL:
    """Changes of other programs to the tables."""

    @pytest.fixture(params=["unindexed", "indexed"])
    def indexed_store(
        self, request: pytest.FixtureRequest, store: PostgreSQLSessionDBProvider
    ) -> PostgreSQLSessionDBProvider:
        start(store, "s", "t")
        say(store, "s", "docker one", "docker two", "podman three")
        say(store, "t", "docker four")
        if request.param == "indexed":
            postgres_engine(store).catch_up()
        return store

    @pytest.mark.parametrize("column", ["content", "tool_name", "tool_calls"])
    def test_edited_text_is_found(
        self, indexed_store: PostgreSQLSessionDBProvider, plain: psycopg.Connection[Any], column: str
    ) -> None:
        first, *_ = found_in(indexed_store, "one")
        plain.execute("UPDATE messages SET content = NULL WHERE id = %s", [first])
        plain.execute(f"UPDATE messages SET {column} = '\"compose\"' WHERE id = {first}".encode())
        for _ in range(2):
            assert found_in(indexed_store, "compose") == found_in(indexed_store, "*ompos*") == [first]
            assert found_in(indexed_store, "one") == []
            assert first not in found_in(indexed_store, "docker")
            postgres_engine(indexed_store).catch_up()

    def test_inserted_row_is_found(
        self, indexed_store: PostgreSQLSessionDBProvider, plain: psycopg.Connection[Any]
    ) -> None:
        for number in ("DEFAULT", "-5"):
            plain.execute(
                f"""INSERT INTO messages (id, session_id, role, content, timestamp)
                    VALUES ({number}, 's', 'user', 'compose', 1.0)""".encode()
            )
        shown = [each["uid"] for each in indexed_store.get_messages("s")]
        for _ in range(2):
            assert len(found_in(indexed_store, "compose")) == len(found_in(indexed_store, "compose", until=1.0)) == 2
            postgres_engine(indexed_store).catch_up()
        assert one(plain, "SELECT count(*) FROM messages WHERE uid IS NULL") == 0
        assert [each["uid"] for each in indexed_store.get_messages("s")] == shown

    def test_deleted_row_is_not_found(
        self, indexed_store: PostgreSQLSessionDBProvider, plain: psycopg.Connection[Any]
    ) -> None:
        first, *_ = found_in(indexed_store, "one")
        plain.execute("DELETE FROM messages WHERE id = %s", [first])
        assert first not in found_in(indexed_store, "docker")
        postgres_engine(indexed_store).catch_up()
        assert found_in(indexed_store, "one") == []

    def test_moved_message_is_found_in_its_new_session(
        self, indexed_store: PostgreSQLSessionDBProvider, plain: psycopg.Connection[Any]
    ) -> None:
        first, *_ = found_in(indexed_store, "one")
        plain.execute("UPDATE messages SET role = 'system', session_id = 't', timestamp = 5.0 WHERE id = %s", [first])
        for _ in range(2):
            assert found_in(indexed_store, "docker", role_filter=["system"]) == [first]
            assert first in found_in(indexed_store, "docker", session_ids=["t"])
            assert first not in found_in(indexed_store, "docker", session_ids=["s"])
            assert found_in(indexed_store, "docker", until=5.0) == [first]
            assert ids(indexed_store.search_messages("docker", sort="oldest"))[0] == first
            postgres_engine(indexed_store).catch_up()

    def test_moved_session_is_found_under_its_new_owner(
        self, indexed_store: PostgreSQLSessionDBProvider, plain: psycopg.Connection[Any]
    ) -> None:
        plain.execute("UPDATE sessions SET source = 'web', owner = 'web:1' WHERE id = 's'")
        for _ in range(2):
            assert len(found_in(indexed_store, "docker", source_filter=["web"])) == 2
            assert len(found_in(indexed_store, "docker", owner="web:1")) == 2
            assert len(found_in(indexed_store, "docker", exclude_sources=["web"])) == 1
            postgres_engine(indexed_store).catch_up()


class TestDamage:
    def test_everything_is_found_despite_a_damaged_index(
        self, store: PostgreSQLSessionDBProvider, plain: psycopg.Connection[Any]
    ) -> None:
        found = say(store, start(store, "s"), "docker", "podman")
        postgres_engine(store).catch_up()
        plain.execute("ALTER TABLE message_words RENAME TO elsewhere")
        results = store.search_messages("docker", budget_s=PATIENCE_S)
        assert (ids(results), results.degraded) == (found[:1], True)
        assert store.get_messages("s")
        plain.execute("ALTER TABLE elsewhere RENAME TO message_words")

    def test_damaged_index_is_rebuilt(self, store: PostgreSQLSessionDBProvider, plain: psycopg.Connection[Any]) -> None:
        found = say(store, start(store, "s"), "docker", "podman")
        postgres_engine(store).catch_up()
        plain.execute("UPDATE message_words SET words = ''")
        postgres_engine(store).heal_index(0)
        wait_until(
            lambda: (
                one(plain, "SELECT value FROM state_meta WHERE key = 'index_epoch'") == "1"
                and mark_of(plain) == found[-1]
            ),
            "the index to be rebuilt",
        )
        assert found_in(store, "docker") == found[:1]
        postgres_engine(store).heal_index(0)
        postgres_engine(store)._worker.close()
        assert one(plain, "SELECT value FROM state_meta WHERE key = 'index_epoch'") == "1"


def test_a_search_while_others_write_is_never_wrong(store: PostgreSQLSessionDBProvider) -> None:
    start(store, "s", "t")
    is_over = threading.Event()
    wrong: list[tuple[int, list[int]]] = []

    def look() -> None:
        while not is_over.is_set():
            known = store.message_count("s")
            found = found_in(store, "lantern", session_ids=["s"])
            if len(found) < known or len(set(found)) < len(found):
                wrong.append((known, found))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        for number in range(6):
            store.append_messages("s", [{"role": "user", "content": "a lantern"} for _ in range(DUE // 2)])
            fill(store, "t", number * 40)
    finally:
        is_over.set()
        looking.join(timeout=30)
    assert not looking.is_alive()
    assert wrong == []


def test_search_uses_the_index_and_not_the_table(
    store: PostgreSQLSessionDBProvider, plain: psycopg.Connection[Any]
) -> None:
    plain.execute(
        """INSERT INTO message_words
           SELECT n, ('''docker'' ''word' || n || ''' ''¦0' || to_hex(n >> 10) || '''')::tsvector
           FROM generate_series(1, 30000) AS n"""
    )
    plain.execute("SELECT gin_clean_pending_list('idx_message_words')")
    plain.execute("ANALYZE message_words")
    asked = _ONE.replace(":tsquery", "$1").replace(":low", "$2").replace(":high", "$3").replace(":limit", "$4")
    plain.execute(f"PREPARE asking (text, bigint, bigint, bigint) AS {asked}".encode())
    for mode in ("force_generic_plan", "force_custom_plan"):
        plain.execute(f"SET plan_cache_mode TO {mode}".encode())
        for question in ("''docker'' & ''¦010''", "''word5'' & (''¦00'' | ''¦01'')"):
            plan = plain.execute(f"EXPLAIN EXECUTE asking ('{question}', 1, 99999, 1000)".encode()).fetchall()
            assert any("Bitmap Index Scan on idx_message_words" in line for (line,) in plan), plan
