"""Topics of private Telegram chats: which chats use them, and which session each topic continues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from hermes.errors import InvalidValue
from hermes.state.engine import Reading, Transaction
from hermes.state.operations import Operations, insert_into, read, unknown_session
from hermes.state.owner import owner_of
from hermes.state.rows import decode_text, require_flag, require_identifier
from hermes.state.sessions.lists.listing import list_conversations, make_filter
from hermes.state.sessions.records import session_exists

if TYPE_CHECKING:
    from hermes.state.row_types import ListedSession, TelegramTopicBinding

SCHEMA = "2"
_SCHEMA_KEY = "telegram_dm_topic_schema_version"
_MAX_ID_CHARACTERS = 200

_COLUMNS = ("chat_id", "thread_id", "user_id", "session_key", "session_id", "managed_mode", "linked_at", "updated_at")
_READ = f"SELECT {', '.join(_COLUMNS)} FROM telegram_dm_topic_bindings"
_TEXTS = _COLUMNS[:-2]
_UNLINKED = """NOT EXISTS (SELECT 1 FROM telegram_dm_topic_bindings b JOIN sessions t ON t.id = b.session_id
                           WHERE b.session_id = sessions.id OR t.chain_root = sessions.id)"""


class TelegramTopics(Operations):
    """Operations on the topics of private Telegram chats; ids may be given as numbers.

    In a file, the tables exist only after a chat has used topics. Without them, nothing is enabled or linked.
    """

    def apply_telegram_topic_migration(self) -> None:
        """Create the tables of topics, or bring those of an earlier version up to date."""
        add_telegram_topics(self)

    def enable_telegram_topic_mode(
        self,
        *,
        chat_id: str | int,
        user_id: str | int,
        has_topics_enabled: bool | None = None,
        allows_users_to_create_topics: bool | None = None,
    ) -> None:
        """Let a user's private chat use topics; what the bot may do is kept if it is not given again."""
        chat, now = _id(chat_id, "chat_id"), self._clock()
        values: dict[str, Any] = {
            "user_id": _id(user_id, "user_id"),
            "enabled": 1,
            "updated_at": now,
            "capability_checked_at": now,
            **_flag("has_topics_enabled", has_topics_enabled),
            **_flag("allows_users_to_create_topics", allows_users_to_create_topics),
        }
        self.apply_telegram_topic_migration()

        def work(tx: Transaction) -> None:
            lock = f"SELECT 1 FROM telegram_dm_topic_mode WHERE chat_id = :chat {tx.dialect.for_update}"
            if tx.value(lock, chat=chat) is None:
                # Without a row nothing is locked: if two callers insert at once, the second one retries.
                row = {"chat_id": chat, "activated_at": now, **values}
                tx.run(insert_into("telegram_dm_topic_mode", tuple(row)), **row)
                return
            changes = ", ".join(f"{name} = :{name}" for name in values)
            tx.run(f"UPDATE telegram_dm_topic_mode SET {changes} WHERE chat_id = :chat", chat=chat, **values)

        self._engine.write(work)

    def disable_telegram_topic_mode(self, *, chat_id: str | int, clear_bindings: bool = True) -> None:
        """Let a chat use no topics any more; unless told otherwise, forget which session each topic continues."""
        chat, forgets = _id(chat_id, "chat_id"), require_flag(clear_bindings, "clear_bindings")

        def work(tx: Transaction) -> None:
            if not _has_tables(tx):
                return
            sql = "UPDATE telegram_dm_topic_mode SET enabled = 0, updated_at = :now WHERE chat_id = :chat"
            tx.run(sql, chat=chat, now=self._clock())
            if forgets:
                tx.run("DELETE FROM telegram_dm_topic_bindings WHERE chat_id = :chat", chat=chat)

        self._engine.write(work)

    def is_telegram_topic_mode_enabled(self, *, chat_id: str | int, user_id: str | int) -> bool:
        """Whether a user has let this private chat use topics."""
        values = {"chat": _id(chat_id, "chat_id"), "user": _id(user_id, "user_id")}
        sql = "SELECT enabled FROM telegram_dm_topic_mode WHERE chat_id = :chat AND user_id = :user"
        return self._engine.read(lambda tx: _has_tables(tx) and bool(tx.value(sql, **values)))

    def get_telegram_topic_binding(self, *, chat_id: str | int, thread_id: str | int) -> TelegramTopicBinding | None:
        """Return which session a topic continues; None if it is not linked."""
        values = {"chat": _id(chat_id, "chat_id"), "thread": _id(thread_id, "thread_id")}
        return self._first("chat_id = :chat AND thread_id = :thread", **values)

    def get_telegram_topic_binding_by_session(self, *, session_id: str) -> TelegramTopicBinding | None:
        """Return which topic continues a session; None if no topic is linked to it."""
        return self._first("session_id = :session", session=require_identifier(session_id, "session_id"))

    def list_telegram_topic_bindings_for_chat(self, *, chat_id: str | int) -> list[TelegramTopicBinding]:
        """Return the linked topics of a chat, the most recently linked or changed first."""
        return self._bindings("chat_id = :chat ORDER BY updated_at DESC, thread_id", chat=_id(chat_id, "chat_id"))

    def is_telegram_session_linked_to_topic(self, *, session_id: str) -> bool:
        """Whether a topic continues this session."""
        return self.get_telegram_topic_binding_by_session(session_id=session_id) is not None

    def bind_telegram_topic(
        self,
        *,
        chat_id: str | int,
        thread_id: str | int,
        user_id: str | int,
        session_key: str,
        session_id: str,
        managed_mode: str = "auto",
    ) -> None:
        """Let a topic continue a session; raise `InvalidValue` if another topic does.

        A topic that continued another session continues this one from now on.
        """
        now = self._clock()
        place = {"chat_id": _id(chat_id, "chat_id"), "thread_id": _id(thread_id, "thread_id")}
        session = require_identifier(session_id, "session_id")
        values: dict[str, Any] = {
            "user_id": _id(user_id, "user_id"),
            "session_key": require_identifier(session_key, "session_key"),
            "session_id": session,
            "managed_mode": _id(managed_mode, "managed_mode"),
            "updated_at": now,
        }
        self.apply_telegram_topic_migration()

        def work(tx: Transaction) -> None:
            if not session_exists(tx, session):
                raise unknown_session(session)
            linked = tx.row(f"{_READ} WHERE session_id = :id {tx.dialect.for_update}", id=session)
            if linked is not None and linked[:2] != tuple(place.values()):
                raise InvalidValue(
                    f"session {session!r} is already linked to another topic",
                    hint="continue it there, or choose another session",
                )
            lock = f"{_READ} WHERE chat_id = :chat_id AND thread_id = :thread_id {tx.dialect.for_update}"
            if tx.row(lock, **place) is None:
                row = {**place, **values, "linked_at": now}
                tx.run(insert_into("telegram_dm_topic_bindings", tuple(row)), **row)
                return
            changed = values if linked is not None else {**values, "linked_at": now}
            changes = ", ".join(f"{name} = :{name}" for name in changed)
            sql = f"UPDATE telegram_dm_topic_bindings SET {changes} WHERE chat_id = :chat_id AND thread_id = :thread_id"
            tx.run(sql, **place, **changed)

        self._engine.write(work)

    def list_unlinked_telegram_sessions_for_user(
        self, *, chat_id: str | int, user_id: str | int, limit: int | None = 10
    ) -> list[ListedSession]:
        """Return a user's conversations on Telegram that no topic continues, the most recently active first.

        They are those of all private chats with the user, so `chat_id` does not limit them.
        """
        _id(chat_id, "chat_id")
        owner = owner_of("telegram", _id(user_id, "user_id"))

        def work(tx: Reading) -> list[ListedSession]:
            wanted = make_filter("telegram", None, 0, owner)
            if _has_tables(tx):
                wanted.add(_UNLINKED)
            return list_conversations(tx, wanted, limit)

        return self._engine.read(work)

    def _first(self, condition: str, **values: str) -> TelegramTopicBinding | None:
        return next(iter(self._bindings(condition, **values)), None)

    def _bindings(self, condition: str, **values: str) -> list[TelegramTopicBinding]:
        def work(tx: Reading) -> list[TelegramTopicBinding]:
            rows = tx.rows(f"{_READ} WHERE {condition}", **values) if _has_tables(tx) else []
            return [_binding(row) for row in rows]

        return self._engine.read(work)


def add_telegram_topics(store: Operations) -> None:
    """Give a store the tables of topics, and record their version."""
    store._engine.add_telegram_topics()
    store._engine.write(
        lambda tx: tx.run(tx.dialect.upsert("state_meta", ["key"], ["value"]), key=_SCHEMA_KEY, value=SCHEMA)
    )


def has_telegram_topics(store: Operations) -> bool:
    """Whether a store has the tables of topics."""
    return read(store, _has_tables)


def _has_tables(tx: Reading) -> bool:
    return bool(tx.value(f"SELECT {tx.dialect.has_telegram_topics}"))


def _binding(values: tuple[Any, ...]) -> TelegramTopicBinding:
    row = dict(zip(_COLUMNS, values, strict=True))
    return cast("TelegramTopicBinding", row | {name: decode_text(row[name]) for name in _TEXTS})


def _id(value: object, name: str) -> str:
    """Return an id as text; Telegram's are numbers."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= 64:
        return str(value)
    text = require_identifier(value, name)
    if len(text) > _MAX_ID_CHARACTERS:
        raise InvalidValue(f"{name} must not be longer than {_MAX_ID_CHARACTERS} characters")
    return text


def _flag(name: str, value: bool | None) -> dict[str, int]:
    return {} if value is None else {name: int(require_flag(value, name))}
