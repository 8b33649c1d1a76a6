"""The tables of Telegram topics: created when a chat first uses topics, so that other files keep their schema."""

from __future__ import annotations

from hermes.state.sqlite.connection import View
from hermes.state.sqlite.schema.inspection import store_schema_cookie

_MODE = """CREATE TABLE IF NOT EXISTS telegram_dm_topic_mode (
    chat_id                       TEXT PRIMARY KEY,
    user_id                       TEXT NOT NULL,
    enabled                       INTEGER NOT NULL DEFAULT 1,
    activated_at                  REAL NOT NULL,
    updated_at                    REAL NOT NULL,
    has_topics_enabled            INTEGER,
    allows_users_to_create_topics INTEGER,
    capability_checked_at         REAL,
    intro_message_id              TEXT,
    pinned_message_id             TEXT
)"""
_COLUMNS = "chat_id, thread_id, user_id, session_key, session_id, managed_mode, linked_at, updated_at"
_BINDINGS = """CREATE TABLE IF NOT EXISTS telegram_dm_topic_bindings (
    chat_id      TEXT NOT NULL,
    thread_id    TEXT NOT NULL,
    user_id      TEXT NOT NULL,
    session_key  TEXT NOT NULL,
    session_id   TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    managed_mode TEXT NOT NULL DEFAULT 'auto',
    linked_at    REAL NOT NULL,
    updated_at   REAL NOT NULL,
    PRIMARY KEY (chat_id, thread_id)
)"""
_INDEXES = (
    """CREATE UNIQUE INDEX IF NOT EXISTS idx_telegram_dm_topic_bindings_session
       ON telegram_dm_topic_bindings(session_id)""",
    """CREATE INDEX IF NOT EXISTS idx_telegram_dm_topic_bindings_user
       ON telegram_dm_topic_bindings(user_id, chat_id)""",
)


def add(view: View) -> bool:
    """Create the tables, or bring those of an earlier version up to date; return whether `note` must follow."""
    is_known = _noted(view) == str(view.value("PRAGMA schema_version"))
    if not _has_bindings(view):
        changes = [_MODE, _BINDINGS, *_INDEXES]
    elif _is_cascading(view):
        return False
    else:
        # The first version kept the bindings of deleted sessions, which nothing can continue.
        changes = [
            _MODE,
            "ALTER TABLE telegram_dm_topic_bindings RENAME TO telegram_dm_topic_bindings_before",
            _BINDINGS,
            f"""INSERT OR IGNORE INTO telegram_dm_topic_bindings ({_COLUMNS})
                SELECT {_COLUMNS} FROM telegram_dm_topic_bindings_before
                WHERE session_id IN (SELECT id FROM sessions)""",
            "DROP TABLE telegram_dm_topic_bindings_before",
            *_INDEXES,
        ]
    for sql in changes:
        view.run(sql)
    return is_known


def note(view: View) -> None:
    """Record that this change of the schema was ours; otherwise the next opening would look for damage."""
    store_schema_cookie(view)


def _has_bindings(view: View) -> bool:
    return bool(view.value(f"SELECT {view.dialect.has_telegram_topics}"))


def _is_cascading(view: View) -> bool:
    rules = view.rows("SELECT on_delete FROM pragma_foreign_key_list('telegram_dm_topic_bindings')")
    return ("CASCADE",) in rules


def _noted(view: View) -> object:
    return view.value("SELECT value FROM state_meta WHERE key = 'schema_cookie'")
