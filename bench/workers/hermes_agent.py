"""The peer hermes-agent, through the public calls of its `SessionDB`."""

from __future__ import annotations

import json
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.corpus import Message
from bench.questions import LIMIT, Question
from bench.store import Answer, Page, Store, Unsupported


class HermesAgentStore(Store):
    """hermes-agent's session database; it has no batch append and no keyset pages."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._db: Any = import_module("hermes_state").SessionDB(db_path=path)
        self._chats: Any = None

    def create_session(self, session_id: str, source: str, user_id: str | None = None) -> None:
        """Add an empty session."""
        self._db.create_session(session_id, source, user_id=user_id)

    def append(self, session_id: str, message: Message) -> None:
        """Add one message durably."""
        self._db.append_message(session_id, **message)

    def fill(self, session_id: str, messages: list[Message]) -> None:
        """Set a session's whole transcript, which is one transaction here."""
        self._db.replace_messages(session_id, messages)

    def load(self, session_id: str) -> int:
        """Read a conversation for replay."""
        return len(self._db.get_messages_as_conversation(session_id))

    def count(self, session_id: str) -> int:
        """How many messages of a session are stored."""
        return len(self._db.get_messages(session_id))

    def list_page(self, page: Page) -> list[str]:
        """Read a page of the session list by offset."""
        rows = self._db.list_sessions_rich(
            source=page.source, limit=page.limit, offset=page.offset, order_by_last_active=page.by_activity
        )
        return [row["id"] for row in rows]

    def search(self, question: Question) -> Answer:
        """Search with the options of its call."""
        if question.owner is not None:
            raise Unsupported("no search among one user's messages")
        if question.text.startswith("*"):
            raise Unsupported("no search inside of words")
        sources = None if question.source is None else [question.source]
        found = self._db.search_messages(question.words_or, source_filter=sources, limit=LIMIT, sort=question.sort)
        return Answer(len(found))

    def fill_lanes(self, count: int) -> None:
        """Write its index of lanes in its documented form: through its calls this takes minutes."""
        sessions = self.path.parent / "sessions"
        sessions.mkdir()
        (sessions / "sessions.json").write_text(json.dumps(dict(map(_entry, range(count)))))

    def touch_lane(self, number: int) -> None:
        """Use its store of chats."""
        session, config = import_module("gateway.session"), import_module("gateway.config")
        if self._chats is None:
            self._chats = session.SessionStore(self.path.parent / "sessions", config.GatewayConfig())
        source = session.SessionSource(platform=config.Platform.TELEGRAM, chat_id=str(number), user_id=str(number))
        entry = self._chats.get_or_create_session(source)
        self._chats.update_session(entry.session_key, last_prompt_tokens=number)

    def close(self) -> None:
        """Close the database."""
        self._db.close()


def _entry(number: int) -> tuple[str, dict[str, Any]]:
    key, now = f"agent:main:telegram:dm:{number}", datetime.now().isoformat()  # noqa: DTZ005 - its form has no zone
    origin = {"platform": "telegram", "chat_id": str(number), "chat_type": "dm", "user_id": str(number)}
    return key, {
        "session_key": key,
        "session_id": f"20261101_120000_{number:08x}",
        "created_at": now,
        "updated_at": now,
        "platform": "telegram",
        "chat_type": "dm",
        "origin": origin,
    }
