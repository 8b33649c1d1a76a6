"""Topics of private Telegram chats: the mode of a chat, and the session that each topic continues."""

from __future__ import annotations

import pytest

from hermes.errors import InvalidValue, UnknownSession
from hermes.state.provider import SessionDBProvider
from tests.support.clock import FakeClock
from tests.support.conversations import at_once, say, start
from tests.support.stores import Opener

CHAT, USER = "500", "7"
KEY = "agent:main:telegram:dm:500:11"


def bind(store: SessionDBProvider, thread: str, session: str, **more: str) -> None:
    """Link a topic of the chat to a session."""
    values = {"chat_id": CHAT, "thread_id": thread, "user_id": USER, "session_key": KEY, "session_id": session}
    store.bind_telegram_topic(**{**values, **more})


def session_of(store: SessionDBProvider, thread: str) -> str | None:
    """The session of a topic of the chat."""
    row = store.get_telegram_topic_binding(chat_id=CHAT, thread_id=thread)
    return None if row is None else row["session_id"]


def begin(store: SessionDBProvider, *sessions: str, user: str = USER) -> None:
    """Create sessions of a user on Telegram."""
    start(store, *sessions, source="telegram", user_id=user)


def unlinked(store: SessionDBProvider, user: str | int = USER, limit: int | None = 10) -> list[str]:
    """The conversations of a user that no topic continues."""
    rows = store.list_unlinked_telegram_sessions_for_user(chat_id=CHAT, user_id=user, limit=limit)
    return [row["id"] for row in rows]


class TestBeforeTheFirstUse:
    def test_nothing_is_enabled_or_linked(self, store: SessionDBProvider) -> None:
        begin(store, "s")
        assert not store.is_telegram_topic_mode_enabled(chat_id=CHAT, user_id=USER)
        assert session_of(store, "11") is None
        assert store.list_telegram_topic_bindings_for_chat(chat_id=CHAT) == []
        assert store.get_telegram_topic_binding_by_session(session_id="s") is None
        assert not store.is_telegram_session_linked_to_topic(session_id="s")
        assert unlinked(store) == ["s"]

    def test_disabling_does_nothing(self, store: SessionDBProvider) -> None:
        store.disable_telegram_topic_mode(chat_id=CHAT)
        assert store.get_meta("telegram_dm_topic_schema_version") is None

    def test_migration_is_recorded_and_can_be_repeated(self, store: SessionDBProvider) -> None:
        for _ in range(2):
            store.apply_telegram_topic_migration()
        assert store.get_meta("telegram_dm_topic_schema_version") == "2"


class TestMode:
    def test_enabled_chat_is_enabled_for_its_user_only(self, store: SessionDBProvider) -> None:
        store.enable_telegram_topic_mode(chat_id=500, user_id=7, has_topics_enabled=True)
        assert store.is_telegram_topic_mode_enabled(chat_id=CHAT, user_id=USER)
        assert not store.is_telegram_topic_mode_enabled(chat_id=CHAT, user_id="8")
        assert not store.is_telegram_topic_mode_enabled(chat_id="501", user_id=USER)

    def test_mode_is_still_there_after_reopening(self, open_store: Opener) -> None:
        with open_store() as first:
            first.enable_telegram_topic_mode(chat_id=CHAT, user_id=USER)
        assert open_store().is_telegram_topic_mode_enabled(chat_id=CHAT, user_id=USER)
        assert open_store(read_only=True).is_telegram_topic_mode_enabled(chat_id=CHAT, user_id=USER)

    def test_enabling_again_keeps_the_first_time_and_what_is_known(
        self, store: SessionDBProvider, clock: FakeClock
    ) -> None:
        store.enable_telegram_topic_mode(chat_id=CHAT, user_id=USER, has_topics_enabled=True)
        first = clock()
        store.disable_telegram_topic_mode(chat_id=CHAT)
        assert not store.is_telegram_topic_mode_enabled(chat_id=CHAT, user_id=USER)
        clock.advance(60)
        store.enable_telegram_topic_mode(chat_id=CHAT, user_id=USER, allows_users_to_create_topics=False)
        columns = "activated_at, updated_at, has_topics_enabled, allows_users_to_create_topics, enabled"
        row = store._engine.read(lambda tx: tx.row(f"SELECT {columns} FROM telegram_dm_topic_mode"))
        assert row == (first, first + 60, 1, 0, 1)

    def test_disabling_forgets_the_topics_unless_told_otherwise(self, store: SessionDBProvider) -> None:
        begin(store, "s")
        bind(store, "11", "s")
        store.disable_telegram_topic_mode(chat_id=CHAT, clear_bindings=False)
        assert session_of(store, "11") == "s"
        store.disable_telegram_topic_mode(chat_id="other")
        assert session_of(store, "11") == "s"
        store.disable_telegram_topic_mode(chat_id=CHAT)
        assert session_of(store, "11") is None

    def test_callers_that_enable_at_once_all_succeed(self, store: SessionDBProvider) -> None:
        at_once(4, lambda _: store.enable_telegram_topic_mode(chat_id=CHAT, user_id=USER))
        assert store.is_telegram_topic_mode_enabled(chat_id=CHAT, user_id=USER)


class TestBindings:
    def test_topic_continues_its_session(self, store: SessionDBProvider, clock: FakeClock) -> None:
        begin(store, "s")
        bind(store, "11", "s", managed_mode="restored")
        wanted = {
            "chat_id": CHAT,
            "thread_id": "11",
            "user_id": USER,
            "session_key": KEY,
            "session_id": "s",
            "managed_mode": "restored",
            "linked_at": clock(),
            "updated_at": clock(),
        }
        assert store.get_telegram_topic_binding(chat_id=500, thread_id=11) == wanted
        assert store.get_telegram_topic_binding_by_session(session_id="s") == wanted
        assert store.is_telegram_session_linked_to_topic(session_id="s")

    def test_linking_the_same_again_keeps_the_time_of_the_link(
        self, store: SessionDBProvider, clock: FakeClock
    ) -> None:
        begin(store, "s")
        bind(store, "11", "s")
        linked = clock()
        clock.advance(5)
        bind(store, "11", "s")
        row = store.get_telegram_topic_binding(chat_id=CHAT, thread_id="11")
        assert row is not None
        assert (row["linked_at"], row["updated_at"]) == (linked, linked + 5)

    def test_topic_that_gets_another_session_continues_that(self, store: SessionDBProvider, clock: FakeClock) -> None:
        begin(store, "s", "t")
        bind(store, "11", "s")
        clock.advance(5)
        bind(store, "11", "t")
        row = store.get_telegram_topic_binding(chat_id=CHAT, thread_id="11")
        assert row is not None
        assert (row["session_id"], row["linked_at"]) == ("t", clock())
        assert not store.is_telegram_session_linked_to_topic(session_id="s")

    def test_session_of_another_topic_is_refused(self, store: SessionDBProvider) -> None:
        begin(store, "s", "t")
        bind(store, "11", "s")
        bind(store, "12", "t")
        for thread in ("12", "13"):
            with pytest.raises(ValueError, match="already linked"):
                bind(store, thread, "s")
        assert (session_of(store, "11"), session_of(store, "12")) == ("s", "t")

    def test_session_that_does_not_exist_is_refused(self, store: SessionDBProvider) -> None:
        with pytest.raises(UnknownSession):
            bind(store, "11", "nothing")

    def test_topics_of_a_chat_are_listed_by_their_last_change(self, store: SessionDBProvider, clock: FakeClock) -> None:
        begin(store, "s", "t", "u")
        for thread, session in (("11", "s"), ("12", "t"), ("11", "s")):
            clock.advance(1)
            bind(store, thread, session)
        bind(store, "11", "u", chat_id="501")
        rows = store.list_telegram_topic_bindings_for_chat(chat_id=CHAT)
        assert [row["thread_id"] for row in rows] == ["11", "12"]

    def test_deleted_session_leaves_its_topic_without_one(self, store: SessionDBProvider) -> None:
        begin(store, "s")
        bind(store, "11", "s")
        store.delete_session("s")
        assert session_of(store, "11") is None

    def test_only_one_of_several_topics_gets_a_session(self, store: SessionDBProvider) -> None:
        begin(store, "s")
        refused = []

        def link(number: int) -> None:
            try:
                bind(store, str(number), "s")
            except InvalidValue as error:
                refused.append(error)

        at_once(4, link)
        assert len(refused) == 3
        assert len(store.list_telegram_topic_bindings_for_chat(chat_id=CHAT)) == 1

    @pytest.mark.parametrize("wrong", [None, "", "x" * 201, 1.5, True, "a\0b", 2**70], ids=repr)
    def test_wrong_id_is_refused(self, store: SessionDBProvider, wrong: object) -> None:
        with pytest.raises(InvalidValue):
            store.get_telegram_topic_binding(chat_id=wrong, thread_id="1")  # type: ignore[arg-type]


class TestUnlinkedSessions:
    def test_only_sessions_of_this_user_on_telegram_are_listed(self, store: SessionDBProvider) -> None:
        begin(store, "s")
        begin(store, "other", user="8")
        start(store, "elsewhere", source="discord", user_id=USER)
        assert unlinked(store, 7) == ["s"]

    def test_linked_session_is_left_out_also_if_its_conversation_was_compressed(self, store: SessionDBProvider) -> None:
        begin(store, "s", "t")
        last = say(store, "s", "hello", "more")[-1]
        store.compress_session("s", "tip", "in short", tail_from=last)
        assert set(unlinked(store)) == {"tip", "t"}
        bind(store, "11", "tip")
        assert unlinked(store) == ["t"]

    def test_most_recently_active_session_comes_first(self, store: SessionDBProvider, clock: FakeClock) -> None:
        for session in ("s", "t", "u"):
            clock.advance(1)
            begin(store, session)
        clock.advance(1)
        say(store, "s", "hello")
        assert unlinked(store) == ["s", "u", "t"]
        assert unlinked(store, limit=2) == ["s", "u"]
        assert unlinked(store, limit=0) == []
        assert unlinked(store, limit=None) == ["s", "u", "t"]
        with pytest.raises(InvalidValue):
            unlinked(store, limit=-2)
