"""The tables of Telegram topics in a file: made when a chat first uses topics, and read from files that have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.state.sqlite.schema import inspection
from hermes.state.sqlite.schema.inspection import SchemaState, inspect
from hermes_state import SessionDB
from tests.support.plainsql import change, rows
from tests.upgrade.oldfiles import real

CHAT, USER, THREAD = "4711", "tg-100", "17"
SESSION = "20250302_101500_0c0ffee3"
TABLES = "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'telegram_%' OR tbl_name LIKE 'telegram_%'"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


def bind(store: SessionDB, session: str = "s") -> None:
    store.bind_telegram_topic(chat_id=CHAT, thread_id=THREAD, user_id=USER, session_key="k", session_id=session)


def test_file_gets_the_tables_only_when_a_chat_uses_topics(path: Path) -> None:
    with SessionDB(path) as store:
        store.create_session("s", "telegram", user_id=USER)
        store.list_unlinked_telegram_sessions_for_user(chat_id=CHAT, user_id=USER)
        store.disable_telegram_topic_mode(chat_id=CHAT)
    SessionDB(path).close()
    assert rows(path, TABLES) == [(0,)]
    with SessionDB(path) as store:
        bind(store)
    assert rows(path, "SELECT session_id FROM telegram_dm_topic_bindings") == [("s",)]


def test_file_with_topics_opens_without_an_upgrade(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SessionDB(path) as store:
        store.enable_telegram_topic_mode(chat_id=CHAT, user_id=USER)
    assert inspect(path).state is SchemaState.CURRENT
    monkeypatch.setattr(inspection, "_upgrade_file", lambda _: pytest.fail("the file was upgraded again"))
    with SessionDB(path) as store:
        assert store.is_telegram_topic_mode_enabled(chat_id=CHAT, user_id=USER)


def test_change_of_another_program_is_still_noticed(path: Path) -> None:
    with SessionDB(path) as store:
        change(path, "CREATE TABLE other (x)")
        store.enable_telegram_topic_mode(chat_id=CHAT, user_id=USER)
    assert inspect(path).state is SchemaState.OURS


def test_store_that_is_open_elsewhere_sees_the_tables(path: Path) -> None:
    with SessionDB(path) as store, SessionDB(path, read_only=True) as reader:
        assert not reader.is_telegram_topic_mode_enabled(chat_id=CHAT, user_id=USER)
        store.enable_telegram_topic_mode(chat_id=CHAT, user_id=USER)
        assert reader.is_telegram_topic_mode_enabled(chat_id=CHAT, user_id=USER)


def test_topics_of_an_old_file_are_known(path: Path) -> None:
    real(11, path)
    with SessionDB(path) as store:
        assert store.is_telegram_topic_mode_enabled(chat_id=CHAT, user_id=USER)
        row = store.get_telegram_topic_binding(chat_id=CHAT, thread_id=THREAD)
        assert row is not None
        assert row["session_id"] == SESSION
        assert SESSION not in [
            row["id"] for row in store.list_unlinked_telegram_sessions_for_user(chat_id=CHAT, user_id=USER)
        ]
        with pytest.raises(ValueError, match="already linked"):
            store.bind_telegram_topic(chat_id=CHAT, thread_id="18", user_id=USER, session_key="k", session_id=SESSION)


def test_topics_of_a_later_program_can_be_read(path: Path) -> None:
    real(22, path)
    with SessionDB(path) as store:
        assert store.is_telegram_session_linked_to_topic(session_id=SESSION)


def test_first_version_of_the_tables_is_rebuilt_without_bindings_of_deleted_sessions(path: Path) -> None:
    with SessionDB(path) as store:
        store.create_session("s", "telegram", user_id=USER)
        bind(store)
    change(path, "DROP TABLE telegram_dm_topic_bindings")
    change(
        path,
        """CREATE TABLE telegram_dm_topic_bindings (
               chat_id TEXT NOT NULL, thread_id TEXT NOT NULL, user_id TEXT NOT NULL, session_key TEXT NOT NULL,
               session_id TEXT NOT NULL REFERENCES sessions(id), managed_mode TEXT NOT NULL DEFAULT 'auto',
               linked_at REAL NOT NULL, updated_at REAL NOT NULL, PRIMARY KEY (chat_id, thread_id))""",
    )
    for thread, session in ((THREAD, "s"), ("18", "gone")):
        values = f"'{CHAT}', '{thread}', 'u', 'k', '{session}', 'auto', 1, 2"
        change(path, f"INSERT INTO telegram_dm_topic_bindings VALUES ({values})")
    with SessionDB(path) as store:
        store.apply_telegram_topic_migration()
        store.delete_session("s")
    assert rows(path, "SELECT count(*) FROM telegram_dm_topic_bindings") == [(0,)]
    assert rows(path, "SELECT count(*) FROM sqlite_schema WHERE name = 'telegram_dm_topic_bindings_before'") == [(0,)]
