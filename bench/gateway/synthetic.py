"""A node for measurements: turns that wait instead of asking a model, and a platform that only counts."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from hermes.config import load_config
from hermes.gateway.agents.brain import AgentBrain
from hermes.gateway.agents.turn import AgentTurn
from hermes.gateway.engine.ports import Delivery, Inbound, Receipt, Receive, TurnResult
from hermes.gateway.node.runner import GatewayRunner
from hermes.gateway.platform import Platform
from hermes.gateway.source import SessionSource

PLATFORM = "telegram"
SEND_S = 0.02
"""How long the platform takes to accept a reply."""
STEPS = 3
"""A turn waits for the model this often: before each of two tools, and before the answer."""
TEXT = (
    "a message of about one hundred and twenty characters, as people write them in chats, with a question at its end?"
)
_CALL = [{"id": "call", "type": "function", "function": {"name": "search", "arguments": '{"query": "weather"}'}}]


class SyntheticBrain(AgentBrain):
    """Runs turns on the threads of a real brain; each stores a user's messages, two tool results and an answer."""

    turn_s = 1.0
    """How long a turn waits in total."""

    def _result_of(self, turn: AgentTurn) -> TurnResult:
        request = turn.request
        view = self._store.for_owner(request.owner).fenced(request.lease)
        view.append_messages(
            request.session_id, [{"role": "user", "content": each.text, "uid": each.uid} for each in request.messages]
        )
        for number in range(STEPS):
            if turn.cancellation.wait(self.turn_s / STEPS):
                return turn.result_of("interrupted")
            if number < STEPS - 1:
                view.append_messages(
                    request.session_id,
                    [
                        {"role": "assistant", "tool_calls": _CALL},
                        {"role": "tool", "content": TEXT, "tool_call_id": "call", "tool_name": "search"},
                    ],
                )
                turn.listener.progress += 1
                turn.listener.note("waiting for the model")
        view.append_messages(request.session_id, [{"role": "assistant", "content": TEXT}])
        return TurnResult("done", TEXT, request.session_id)


class CountingAdapter:
    """A platform that takes every reply after a moment."""

    platform = PLATFORM
    account = ""
    delivers_itself = False
    can_edit = False
    needs_one_poller = False

    def __init__(self) -> None:
        self.sent = 0

    async def start(self, receive: Receive) -> None:
        """Do nothing: the measurement delivers messages itself."""

    async def stop(self) -> None:
        """Do nothing."""

    async def send(self, delivery: Delivery) -> Receipt:
        """Count a reply."""
        await asyncio.sleep(SEND_S)
        self.sent += 1
        return Receipt((str(self.sent),))

    async def find(self, delivery: Delivery) -> Receipt | None:
        """Return None: the platform cannot tell."""
        return None

    async def typing(self, chat_id: str, thread_id: str | None) -> None:
        """Do nothing."""


class SyntheticNode(GatewayRunner):
    """A node with synthetic turns; with `turn_s=None` the turns are those of the offline model."""

    def __init__(self, home: Path, *, turn_s: float | None = 1.0, node: str = "bench", **more: Any) -> None:
        self.adapter = CountingAdapter()
        self._turn_s = turn_s
        super().__init__(load_config(home), home, node=node, adapters=lambda _: [self.adapter], **more)

    def _make_brain(self) -> AgentBrain:
        if self._turn_s is None:
            return super()._make_brain()
        brain = SyntheticBrain(self.db.store, self.config, self.home, {}, clock=self._clock)
        brain.turn_s = self._turn_s
        return brain


def write_settings(home: Path, *, dsn: str | None = None, lease_s: float = 30.0, max_turns: int = 50) -> None:
    """Write the settings of a node into its home."""
    lines = ["gateway:", f"  lease_seconds: {lease_s}", f"  max_turns: {max_turns}"]
    if dsn is not None:
        lines += ["sessiondb:", "  provider: postgresql", f"  dsn: {json.dumps(dsn)}"]
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.yaml").write_text("\n".join(lines) + "\n")


def inbound(lane: int, number: int) -> Inbound:
    """Return a message from the chat of a lane."""
    source = SessionSource(
        Platform.from_stored(PLATFORM), str(lane), chat_type="dm", user_id=str(lane), user_name="Ada"
    )
    return Inbound(TEXT, source, message_id=str(number), delivery_id=f"delivery-{number}")
