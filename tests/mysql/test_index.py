"""The index has every message, and no words of deleted ones."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import cast

import pymysql  # type: ignore[import-untyped]
import pytest

from hermes.config import SessionDBConfig
from hermes.query.tree import Words
from hermes.state.engine import Found
from hermes.state.mysql.engine import MySQLEngine
from hermes.state.mysql.provider import MySQLSessionDBProvider
from hermes.state.mysql.search import document, indexing
from hermes.state.mysql.search.indexing import BATCH
from hermes.state.search.scope import Scope
from tests.mysql.conftest import plain, rows_of
from tests.support.conversations import at_once, ids, say, start
from tests.support.stores import engine_of
from tests.support.waiting import LIMIT_S, wait_until

INDEX = ("word_places", "message_words", "stale_index", "deleted_messages")


def mysql_engine(store: MySQLSessionDBProvider) -> MySQLEngine:
    """The engine under a store."""
    return cast(MySQLEngine, engine_of(store))


def catch_up(store: MySQLSessionDBProvider) -> None:
    """Update the index."""
    mysql_engine(store).catch_up()


def mark_of(connection: pymysql.Connection) -> int:
    """The id up to which messages are indexed."""
    return int(rows_of(connection, "SELECT value FROM state_meta WHERE `key` = 'indexed_upto'")[0][0])


@pytest.fixture
def other(store: MySQLSessionDBProvider, dsn: str) -> Iterator[pymysql.Connection]:
    """Another program in its own transaction, such as another store."""
    start(store, "theirs")
    with plain(dsn) as opened:
        rows_of(opened, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        opened.begin()
        yield opened
        opened.rollback()


def insert(connection: pymysql.Connection, content: str, session: str = "theirs", uid: str | None = "given") -> int:
    """Add a message like another program, and return its id."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO messages (session_id, role, content, timestamp, uid) VALUES (%s, 'user', %s, 1, %s)",
            [session, content, uid],
        )
        return int(cursor.lastrowid)


class TestFilling:
    def test_indexing_continues_over_several_batches(
        self, store: MySQLSessionDBProvider, connection: pymysql.Connection
    ) -> None:
        start(store, "s")
        message_ids = say(store, "s", *(f"number{n} docker" for n in range(2 * BATCH + 5)))
        catch_up(store)
        assert mark_of(connection) == message_ids[-1]
        assert ids(store.search_messages("number700")) == [message_ids[700]]
        assert len(store.search_messages("docker", limit=5_000, budget_s=LIMIT_S)) == len(message_ids)

    def test_message_committed_later_is_not_skipped(
        self, store: MySQLSessionDBProvider, other: pymysql.Connection, connection: pymysql.Connection
    ) -> None:
        start(store, "s")
        late = insert(other, "docker late")
        early = say(store, "s", "docker early")
        assert late < early[0]
        catch_up(store)
        assert mark_of(connection) == early[0]
        assert ids(store.search_messages("docker")) == early
        other.commit()
        assert sorted(ids(store.search_messages("docker"))) == [late, *early]
        catch_up(store)
        assert rows_of(connection, "SELECT * FROM stale_index") == []
        assert sorted(ids(store.search_messages("docker"))) == [late, *early]

    @pytest.mark.parametrize("count", [1, 5, 50])
    def test_indexing_does_not_wait_for_a_rolled_back_message(
        self, store: MySQLSessionDBProvider, other: pymysql.Connection, connection: pymysql.Connection, count: int
    ) -> None:
        start(store, "s")
        before = say(store, "s", *["docker"] * count)
        insert(other, "docker never")
        message_ids = [*before, *say(store, "s", "docker")]
        catch_up(store)
        other.rollback()
        catch_up(store)
        assert rows_of(connection, "SELECT * FROM stale_index") == []
        assert sorted(ids(store.search_messages("docker", limit=999, budget_s=LIMIT_S))) == message_ids

    def test_indexing_does_not_wait_for_locks_of_other_programs(
        self, store: MySQLSessionDBProvider, dsn: str, connection: pymysql.Connection
    ) -> None:
        start(store, "s", "theirs")
        with plain(dsn) as careful:
            careful.begin()
            late = insert(careful, "docker late")
            early = say(store, "s", "docker early")
            catch_up(store)
            assert ids(store.search_messages("docker")) == early
            careful.commit()
        catch_up(store)
        assert mark_of(connection) == early[0]
        assert sorted(ids(store.search_messages("docker"))) == [late, *early]

    def test_indexing_during_many_writes_misses_nothing(self, store: MySQLSessionDBProvider, dsn: str) -> None:
        start(store, *(f"s{n}" for n in range(4)))
        is_over = threading.Event()

        def fill() -> None:
            while not is_over.is_set():
                mysql_engine(store)._index_batch()

        filling_up = [threading.Thread(target=fill) for _ in range(2)]
        for thread in filling_up:
            thread.start()
        try:
            made = at_once(4, lambda n: [store.append_message(f"s{n}", "user", f"docker {n}") for _ in range(60)])
        finally:
            is_over.set()
            for thread in filling_up:
                thread.join(timeout=LIMIT_S)
        catch_up(store)
        wanted = sorted(each for some in made for each in some)
        assert sorted(ids(store.search_messages("docker", limit=999, budget_s=LIMIT_S))) == wanted

    def test_messages_are_indexed_in_the_background(
        self, store: MySQLSessionDBProvider, connection: pymysql.Connection
    ) -> None:
        start(store, "s")
        ids = say(store, "s", *(f"word{n}" for n in range(indexing.DUE + 10)))
        wait_until(lambda: mark_of(connection) >= ids[indexing.DUE - 1], "the messages to be indexed")
        assert mark_of(connection) <= ids[-1]


class TestChanges:
    def test_changes_by_plain_sql_are_found_at_once_and_indexed_later(
        self, store: MySQLSessionDBProvider, connection: pymysql.Connection
    ) -> None:
        start(store, "s")
        (message_ids,) = say(store, "s", "docker")
        catch_up(store)
        rows_of(connection, "UPDATE messages SET content = 'podman' WHERE id = %s", message_ids)
        for _ in range(2):
            assert ids(store.search_messages("docker")) == []
            assert ids(store.search_messages("podman")) == [message_ids]
            catch_up(store)
        assert rows_of(connection, "SELECT * FROM stale_index") == []

    def test_changed_owner_of_a_session_is_found_at_once(
        self, store: MySQLSessionDBProvider, connection: pymysql.Connection
    ) -> None:
        start(store, "s", owner="one")
        (message_ids,) = say(store, "s", "docker")
        catch_up(store)
        rows_of(connection, "UPDATE sessions SET owner = 'two' WHERE id = 's'")
        for _ in range(2):
            assert ids(store.search_messages("docker", owner="one")) == []
            assert ids(store.search_messages("docker", owner="two")) == [message_ids]
            catch_up(store)

    def test_changes_of_other_columns_do_not_touch_the_index(
        self, store: MySQLSessionDBProvider, connection: pymysql.Connection
    ) -> None:
        start(store, "s")
        (message_ids,) = say(store, "s", "docker")
        catch_up(store)
        store.rewind_to_message("s", message_ids)
        store.set_session_title("s", "A title")
        assert rows_of(connection, "SELECT * FROM stale_index") == []

    def test_a_message_of_another_program_is_found_and_adopted(
        self, store: MySQLSessionDBProvider, connection: pymysql.Connection
    ) -> None:
        start(store, "theirs")
        message_ids = insert(connection, "docker", uid=None)
        shown = store.get_messages("theirs")[0]["uid"]
        assert ids(store.search_messages("docker")) == [message_ids]
        catch_up(store)
        assert ids(store.search_messages("docker")) == [message_ids]
        assert rows_of(connection, "SELECT uid FROM messages") == [(shown,)]


class TestDeletion:
    def test_unique_words_of_a_deleted_session_are_forgotten(
        self, store: MySQLSessionDBProvider, connection: pymysql.Connection
    ) -> None:
        start(store, "s", "t")
        say(store, "s", "common secretword")
        kept = say(store, "t", "common plain")
        catch_up(store)
        store.delete_session("s")
        assert ids(store.search_messages("common")) == kept
        catch_up(store)
        words = {word for (word,) in rows_of(connection, "SELECT word FROM known_words")}
        assert {"common", "plain"} <= words
        assert not {"secretword", "¦is"} & words
        assert ids(store.search_messages("common")) == kept

    def test_deleting_everything_empties_the_index(
        self, store: MySQLSessionDBProvider, connection: pymysql.Connection
    ) -> None:
        start(store, "s")
        say(store, "s", *(f"docker {n}" for n in range(300)))
        catch_up(store)
        store.delete_session("s")
        catch_up(store)
        assert [rows_of(connection, f"SELECT COUNT(*) FROM {table}") for table in INDEX] == [[(0,)]] * len(INDEX)


class TestTexts:
    def test_very_long_words_are_found_by_any_part(self, store: MySQLSessionDBProvider) -> None:
        start(store, "s")
        message_ids = say(store, "s", "x" * 600 + "needle" + "y" * 600, "docker", "needlework")
        catch_up(store)
        assert sorted(ids(store.search_messages("*needle*"))) == [message_ids[0], message_ids[2]]
        assert ids(store.search_messages("docker -*needle*")) == [message_ids[1]]
        assert ids(store.search_messages("x" * 600 + "needle" + "y" * 600)) == [message_ids[0]]
        assert ids(store.search_messages("x" * 600 + "needle" + "z" * 600)) == []

    def test_very_long_texts_are_found_by_phrases_at_their_end(
        self, store: MySQLSessionDBProvider, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(document, "MAX_PLACES", 50)
        start(store, "s")
        message_ids = say(store, "s", "filler " * 60 + "red docker", "docker red", "red docker")
        catch_up(store)
        assert sorted(ids(store.search_messages('"red docker"'))) == [message_ids[0], message_ids[2]]
        assert sorted(ids(store.search_messages('red docker -"red docker"'))) == [message_ids[1]]

    def test_phrases_are_found_without_reading_the_text(self, store: MySQLSessionDBProvider) -> None:
        start(store, "s")
        message_ids = say(store, "s", "red docker", "docker red")
        catch_up(store)
        phrase = Words(("red", "docker"), "red docker")
        found = mysql_engine(store).read(
            lambda tx: list(
                mysql_engine(store).index.candidates(tx, phrase, Scope(), 1, 99, 9, deadline=time.monotonic() + LIMIT_S)
            )
        )
        assert found == [Found(message_ids[:1], 1, is_certain=True, is_scoped=True)]


class TestDamage:
    @pytest.mark.parametrize("table", ["word_places", "known_words"])
    def test_messages_are_found_despite_damage_and_the_index_is_rebuilt(
        self, dsn: str, settings: SessionDBConfig, connection: pymysql.Connection, table: str
    ) -> None:
        with MySQLSessionDBProvider(dsn, settings=settings) as store:
            start(store, "s")
            message_ids = say(store, "s", "docker")
            catch_up(store)
            rows_of(connection, f"ALTER TABLE {table} RENAME TO elsewhere")
            results = store.search_messages("docker")
            assert (ids(results), results.degraded) == (message_ids, True)
            mysql_engine(store)._worker.close()
            rows_of(connection, f"ALTER TABLE elsewhere RENAME TO {table}")
            mysql_engine(store).heal_index(0)
            mysql_engine(store)._index_waiting()
            results = store.search_messages("docker")
            assert (ids(results), results.degraded) == (message_ids, False)
            assert rows_of(connection, "SELECT value FROM state_meta WHERE `key` = 'index_epoch'") == [("1",)]


def test_maintenance_works_while_the_store_is_used(store: MySQLSessionDBProvider) -> None:
    start(store, "s")
    message_ids = say(store, "s", "docker")
    phases: list[str] = []
    maintenance = mysql_engine(store).maintenance
    assert maintenance.merge_index() == 2
    maintenance.compact(lambda what, *_: phases.append(what))
    maintenance.erase()
    assert phases
    assert ids(store.search_messages("docker")) == message_ids
