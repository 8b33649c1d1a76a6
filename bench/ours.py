"""The session store of this project under the workloads."""

from __future__ import annotations

import json
import os
from functools import cached_property
from pathlib import Path
from typing import cast

import apsw

from bench import lanes
from bench.corpus import Message
from bench.questions import LIMIT, Question
from bench.store import Answer, Page, Store
from hermes.gateway import GatewayConfig, Platform, SessionSource, SessionStore
from hermes.state.provider import SessionDBProvider
from hermes.state.recall import session_search
from hermes.state.sqlite.engine import SqliteEngine
from hermes_state import SessionDB


class OurStore(Store):
    """`SessionDB` as an application uses it."""

    has_keyset = True

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._db: SessionDBProvider = SessionDB(db_path=path)

    def create_session(self, session_id: str, source: str, user_id: str | None = None) -> None:
        """Add an empty session."""
        self._db.create_session(session_id, source, user_id=user_id)

    def append(self, session_id: str, message: Message) -> None:
        """Add one message durably."""
        self._db.append_message(session_id, **message)

    def append_many(self, session_id: str, messages: list[Message]) -> None:
        """Add several messages in one transaction."""
        self._db.append_messages(session_id, [{**message} for message in messages])

    def load(self, session_id: str) -> int:
        """Read a conversation for replay."""
        return len(self._db.get_messages_as_conversation(session_id))

    def count(self, session_id: str) -> int:
        """How many messages of a session are stored."""
        return len(self._db.get_messages(session_id))

    def list_page(self, page: Page) -> list[str]:
        """Read a page of the session list, from a cursor if there is one."""
        rows = self._db.list_sessions_rich(
            source=page.source,
            limit=page.limit,
            offset=page.offset,
            order_by_last_active=page.by_activity,
            after=page.cursor,
        )
        return [row["cursor"] for row in rows]

    def search(self, question: Question) -> Answer:
        """Search like the terminal or a chat, or recall like an agent."""
        if question.is_sentence:
            return self._recall(question)
        found = self._db.search_messages(
            question.text,
            source_filter=None if question.source is None else [question.source],
            owner=None if question.owner is None else ":".join(question.owner),
            limit=LIMIT,
            sort=question.sort,
        )
        return Answer(len(found), found.complete)

    def _recall(self, question: Question) -> Answer:
        owner = None if question.owner is None else ":".join(question.owner)
        found = json.loads(session_search(question.text, db=self._db, owner=owner))
        return Answer(found["count"], found.get("complete", True))

    def fill_lanes(self, count: int) -> None:
        """Create lanes in one transaction, as the import of `sessions.json` does."""
        lanes.fill_lanes(self._db, count)

    def touch_lane(self, number: int) -> None:
        """Use the documented store of chats."""
        source = SessionSource(Platform("telegram"), str(number), user_id=str(number))
        entry = self._chats.get_or_create_session(source)
        self._chats.update_session(entry.session_key, last_prompt_tokens=number)

    @cached_property
    def _chats(self) -> SessionStore:
        os.environ["HERMES_HOME"] = str(self.path.parent)
        return SessionStore(self.path.parent / "sessions", GatewayConfig())

    def unindexed(self) -> int:
        """The number of unindexed messages, according to the file."""
        reader = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READONLY)
        waiting: int = reader.execute(
            "SELECT max(id) - (SELECT value FROM state_meta WHERE key = 'indexed_upto') FROM messages"
        ).get
        reader.close()
        return waiting

    def settle(self) -> None:
        """Index what waits for a pause."""
        cast(SqliteEngine, self._db._engine).catch_up()

    def close(self) -> None:
        """Close the file."""
        if "_chats" in self.__dict__:
            self._chats.close()
        self._db.close()
