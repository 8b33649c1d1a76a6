"""The peer openai-agents, through the public calls of its `SQLiteSession`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from threading import Lock
from time import perf_counter_ns
from typing import Any

from bench.corpus import Message
from bench.store import Calls, Store


class OpenAIAgentsStore(Store):
    """One `SQLiteSession` per session on one file; it has no index and no list of sessions."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._class: Any = import_module("agents").SQLiteSession
        self._sessions: dict[str, Any] = {}
        self._lock = Lock()
        self._runner = asyncio.Runner()

    def create_session(self, session_id: str, source: str, user_id: str | None = None) -> None:
        """Open the session's object, which creates the tables."""
        self._session(session_id)

    def append(self, session_id: str, message: Message) -> None:
        """Add one message durably."""
        self._runner.run(self._session(session_id).add_items(_items(message)))

    def append_many(self, session_id: str, messages: list[Message]) -> None:
        """Add several messages in one transaction."""
        items = [item for message in messages for item in _items(message)]
        self._runner.run(self._session(session_id).add_items(items))

    def append_each(self, messages: Iterable[tuple[str, Message]]) -> Calls:
        """Append one message after the other inside one event loop."""
        return asyncio.run(self._add((session_id, [message]) for session_id, message in messages))

    def append_batches(self, batches: Iterable[tuple[str, list[Message]]]) -> Calls:
        """Append one batch after the other inside one event loop."""
        return asyncio.run(self._add(batches))

    def load(self, session_id: str) -> int:
        """Read a conversation for replay."""
        return len(self._runner.run(self._session(session_id).get_items()))

    def close(self) -> None:
        """Close every session's connection."""
        for session in self._sessions.values():
            session.close()
        self._runner.close()

    async def _add(self, batches: Iterable[tuple[str, list[Message]]]) -> Calls:
        calls = Calls([], [])
        for session_id, messages in batches:
            items = [item for message in messages for item in _items(message)]
            session = self._session(session_id)
            started = perf_counter_ns()
            try:
                await session.add_items(items)
            except Exception as error:  # noqa: BLE001 - a store's errors have no common type; each is counted and shown
                calls.failures.append(f"{type(error).__name__}: {error}")
            calls.nanoseconds.append(perf_counter_ns() - started)
        return calls

    def _session(self, session_id: str) -> Any:
        with self._lock:
            if session_id not in self._sessions:
                self._sessions[session_id] = self._class(session_id, self.path)
            return self._sessions[session_id]


def _items(message: Message) -> list[dict[str, str]]:
    content = message.get("content", "")
    if message["role"] == "tool":
        return [{"type": "function_call_output", "call_id": message["tool_call_id"], "output": content}]
    items = [{"role": message["role"], "content": content}]
    for call in message.get("tool_calls", []):
        function = call["function"]
        items.append({"type": "function_call", "call_id": call["id"], "name": function["name"]})
        items[-1]["arguments"] = function["arguments"]
    return items
