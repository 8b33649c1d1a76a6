"""Random operations on two stores, one of which loses its database again and again: both return the same."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from hermes.gateway import GatewayConfig, Platform, SessionEntry, SessionResetPolicy, SessionSource, SessionStore
from hermes.gateway.store import connection
from hermes_state import SessionDB
from tests.gateway.store.database import Database, Time

CONFIG = GatewayConfig(default_reset_policy=SessionResetPolicy(mode="idle", idle_minutes=60))
CHATS = st.sampled_from(["1", "2", "3"])
LONG = bool(os.environ.get("HERMES_LONG"))


class Outages(RuleBasedStateMachine):
    """A steady store is the model of one with outages. Sessions are compared by the order of their first appearance."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.patch = pytest.MonkeyPatch()
        self.patch.setenv("HERMES_HOME", str(self.directory))
        self.patch.setattr(connection, "RETRY_S", 0.0)
        self.time = Time()
        self.names: list[dict[str, str]] = [{}, {}]

    @initialize()
    def open(self) -> None:
        self.databases = [self._database("steady"), self._database("flaky")]
        self.stores = [
            SessionStore(self.directory / name, CONFIG, opener=database.open, clock=self.time)
            for name, database in zip(("steady", "flaky"), self.databases, strict=True)
        ]

    def _database(self, name: str) -> Database:
        path = self.directory / f"{name}.db"
        SessionDB(path).close()
        return Database(path, self.time)

    def teardown(self) -> None:
        for store in getattr(self, "stores", []):
            store.close()
        self.patch.undo()
        shutil.rmtree(self.directory)

    def both(self, operation: str, *arguments: Any, **options: Any) -> None:
        results = [getattr(store, operation)(*arguments, **options) for store in self.stores]
        one, other = (self.named(place, result) for place, result in enumerate(results))
        assert one == other

    def named(self, place: int, result: Any) -> Any:
        """Replace session ids, which are random, by numbers."""
        if isinstance(result, SessionEntry):
            data = result.to_dict()
            data["session_id"] = self.name(place, result.session_id)
            return data
        if isinstance(result, list):
            return [self.named(place, each) for each in result]
        return result

    def name(self, place: int, session_id: str) -> str:
        return self.names[place].setdefault(session_id, f"session {len(self.names[place])}")

    def session(self, place: int, chat: str) -> str | None:
        entry = self.stores[place].peek(self.source(chat))
        return entry.session_id if entry else None

    def source(self, chat: str) -> SessionSource:
        return SessionSource(Platform.SLACK, chat, user_id=f"user {chat}", chat_name=f"Chat {chat}")

    def key(self, chat: str) -> str:
        return f"agent:main:slack:dm:{chat}"

    @rule(seconds=st.integers(1, 7000))
    def wait(self, seconds: int) -> None:
        self.time.pass_(seconds=seconds)

    @rule()
    def toggle(self) -> None:
        self.databases[1].is_down = not self.databases[1].is_down

    @rule(writes=st.integers(0, 4))
    def fail_soon(self, writes: int) -> None:
        if not self.databases[1].is_down:
            self.databases[1].writes_left = writes

    @rule()
    def repair(self) -> None:
        self.databases[1].is_down, self.databases[1].writes_left = False, None

    @rule()
    def restart(self) -> None:
        self.stores[1].close()
        self.stores[1] = SessionStore(self.directory / "flaky", CONFIG, opener=self.databases[1].open, clock=self.time)

    @rule(chat=CHATS, force=st.booleans())
    def message(self, chat: str, force: bool) -> None:
        self.both("get_or_create_session", self.source(chat), force_new=force)

    @rule(chat=CHATS)
    def look(self, chat: str) -> None:
        self.both("peek", self.source(chat))

    @rule(chat=CHATS, tokens=st.none() | st.integers(0, 100))
    def update(self, chat: str, tokens: int | None) -> None:
        self.both("update_session", self.key(chat), tokens)

    @rule(chat=CHATS, name=st.sampled_from([None, "X"]))
    def reset(self, chat: str, name: str | None) -> None:
        self.both("reset_session", self.key(chat), name)

    @rule(chat=CHATS, operation=st.sampled_from(["suspend_session", "mark_resume_pending", "clear_resume_pending"]))
    def mark(self, chat: str, operation: str) -> None:
        self.both(operation, self.key(chat))

    @rule()
    def recover(self) -> None:
        self.both("suspend_recently_active")

    @rule(chat=CHATS, text=st.sampled_from(["a", "b"]))
    def write(self, chat: str, text: str) -> None:
        for place, store in enumerate(self.stores):
            session_id = self.session(place, chat)
            if session_id is not None:
                store.append_to_transcript(session_id, {"role": "user", "content": text})

    @invariant()
    def lists_are_equal(self) -> None:
        if hasattr(self, "stores"):
            lists = [store.list_sessions() for store in self.stores]
            one, other = (
                {entry.session_key: self.named(place, entry) for entry in entries}
                for place, entries in enumerate(lists)
            )
            assert one == other

    @invariant()
    def messages_are_stored_once(self) -> None:
        if not hasattr(self, "stores") or self.databases[1].is_down or self.databases[1].writes_left is not None:
            return
        counts = []
        for place, store in enumerate(self.stores):
            db = store._db
            assert db is not None
            texts = {name: [m["content"] for m in db.get_messages(each)] for each, name in self.names[place].items()}
            counts.append(texts)
        assert counts[0] == counts[1]


Outages.TestCase.settings = settings(
    max_examples=200 if LONG else 12, stateful_step_count=40 if LONG else 25, deadline=None
)
TestOutages = Outages.TestCase
