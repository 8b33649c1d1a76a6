"""The nodes of a test with their database, their model and their chats."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hermes.config import load_config
from hermes.gateway.engine.messages import encode_payload
from hermes.gateway.engine.ports import Adapter, Inbound
from hermes.gateway.keys import build_session_key
from hermes.gateway.node.runner import GatewayRunner
from hermes.gateway.platform import Platform
from hermes.gateway.source import SessionSource
from hermes.state.lanes.types import InboxRow, OutboxRow, TurnRow
from hermes.state.owner import EVERYBODY
from hermes.state.provider import SessionDBProvider, open_session_db
from tests.gateway.reliability.chat import Chat
from tests.gateway.reliability.model import PATIENCE_S, Model
from tests.gateway.reliability.node import NOTES, Options
from tests.gateway.reliability.nodes import NodeProcess, NodeThread
from tests.support.waiting import wait_until

LEASE_S = 2.0


class World:
    """The nodes of one test, which share a database and a model."""

    def __init__(self, sessiondb: dict[str, Any] | None = None) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="hermes-"))
        self.model = Model()
        self._sessiondb = sessiondb
        self._stack = contextlib.ExitStack()
        self._store: SessionDBProvider | None = None

    def home(self, name: str = "home", **sections: Any) -> Path:
        """Return a home, which is created with its settings at the first use."""
        home = self.directory / name
        if not home.exists():
            home.mkdir(mode=0o700)
            settings: dict[str, Any] = {
                "model": {"base_url": self.model.server.base_url, "default": "test-model", "attempts": 1},
                "agent": {"auto_title": False, "restart_drain_timeout": 30},
                "gateway": {"lease_seconds": LEASE_S},
                "display": {"busy_input_mode": "queue"},
                "tools": {"default": ["test"]},
                "session_reset": {"mode": "idle"},
            }
            if self._sessiondb is not None:
                settings["sessiondb"] = self._sessiondb
            for section, values in sections.items():
                settings[section] = {**settings.get(section, {}), **values}
            (home / "config.yaml").write_text(json.dumps(settings))
        return home

    def process(
        self, node: str = "north", *, home: Path | None = None, is_ready: bool = True, **options: Any
    ) -> NodeProcess:
        """Start a node in a process, and wait until it works."""
        started = NodeProcess(Options(home or self.home(), node, **options))
        self._stack.callback(started.close)
        if is_ready:
            assert started.first_line() == "ready"
        return started

    def thread(
        self,
        node: str = "north",
        *,
        home: Path | None = None,
        adapters: Callable[[GatewayRunner], Sequence[Adapter]] | None = None,
        **options: Any,
    ) -> NodeThread:
        """Start a node on a thread of this process."""
        started = NodeThread(Options(home or self.home(), node, **options), adapters)
        self._stack.callback(started.close)
        if started.error is not None:
            raise started.error
        return started

    def chat(self, node: NodeProcess | NodeThread, chat_id: str = "*") -> Chat:
        """Connect a client to a node."""
        chat = Chat(node.home, chat_id)
        self._stack.callback(chat.close)
        return chat

    @property
    def store(self) -> SessionDBProvider:
        """The database, as the test reads it."""
        if self._store is None:
            self._store = open_session_db(load_config(self.home()))
            self._stack.callback(self._store.close)
        return self._store

    def accept(self, word: str, chat_id: str = "c1", platform: str = "local") -> None:
        """Store a message as another node does that received it."""
        source = SessionSource(Platform.from_stored(platform), chat_id, user_id=f"user of {chat_id}")
        accepted = self.store.inbox.accept(
            build_session_key(source),
            encode_payload(Inbound(f"{word} please", source, word)),
            platform=platform,
            chat_id=chat_id,
            message_id=word,
            node="elsewhere/1",
        )
        assert accepted.state == "accepted"

    @property
    def notes(self) -> list[str]:
        """The lines that tools have written."""
        files = sorted(self.directory.glob(f"*/{NOTES}"))
        return [line for file in files for line in file.read_text("utf-8").split()]

    def row(self, message_id: str) -> InboxRow:
        """The only row of a message in the inbox."""
        (row,) = self.store.inbox.find(message_id)
        return row

    def wait_until_done(self, *message_ids: str) -> None:
        """Wait until turns have answered messages."""
        for each in message_ids:
            wait_until(lambda each=each: self.row(each)["state"] == "done", f"{each} to be done", PATIENCE_S)  # type: ignore[misc]

    def wait_until_ended(self, *message_ids: str) -> None:
        """Wait until messages are answered or given up."""
        ended = ("done", "dead", "parked", "failed", "discarded")
        for each in message_ids:
            wait_until(lambda each=each: self.row(each)["state"] in ended, f"the end of {each}", PATIENCE_S)  # type: ignore[misc]

    def lane_of(self, message_id: str) -> str:
        """The lane of a message."""
        return self.row(message_id)["session_key"]

    def turns(self, message_id: str) -> list[TurnRow]:
        """The turns of the lane of a message, oldest first."""
        return self.store.turns.history(self.lane_of(message_id), limit=100)[::-1]

    def replies(self, message_id: str) -> list[OutboxRow]:
        """The replies of the lane of a message in the outbox, oldest first."""
        rows = self.store.outbox.of_lane(self.lane_of(message_id), limit=1000)
        return sorted((each for each in rows if each["kind"] == "reply"), key=lambda each: each["id"])

    def transcript(self, message_id: str) -> list[tuple[str, str]]:
        """The messages of the session in the lane of a message, by role and content."""
        lane = self.store.lanes.get(self.lane_of(message_id))
        assert lane is not None
        rows = self.store.for_owner(EVERYBODY).get_messages(lane["session_id"])
        return [(row["role"], str(row["content"])) for row in rows]

    def transcript_or_nothing(self, message_id: str) -> list[tuple[str, str]]:
        """The transcript, also before the lane has a session."""
        return self.transcript(message_id) if self.store.lanes.get(self.lane_of(message_id)) else []

    def close(self) -> None:
        """End everything."""
        self._stack.close()
        shutil.rmtree(self.directory, ignore_errors=True)


@contextlib.contextmanager
def world(sessiondb: dict[str, Any] | None = None) -> Iterator[World]:
    """A world for one test."""
    made = World(sessiondb)
    with made.model.server:
        try:
            yield made
        finally:
            made.close()
