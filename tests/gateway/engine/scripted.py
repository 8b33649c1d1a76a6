"""A brain whose turns wait for the test: the test decides when and how each turn ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from hermes.errors import HermesError, InvalidValue, StaleLease
from hermes.gateway.engine.ports import TurnMessage, TurnRequest, TurnResult
from hermes.state.lanes.types import Lease
from hermes.state.owner import Owner
from hermes.state.provider import SessionDBProvider

LIMIT_S = 20.0


class ScriptedTurn:
    """A turn. Its messages and its answer are stored under the fence of the lease, as the agent stores them."""

    def __init__(self, brain: ScriptedBrain, request: TurnRequest) -> None:
        self.request = request
        self.text = ""
        self.progress = 0
        self.activity = "thinking"
        self.active_at = asyncio.get_running_loop().time()
        self.is_cancelled = False
        self.is_stubborn = brain.is_stubborn
        """Whether the turn does not end when it is cancelled."""
        self.takes_more = brain.takes_more
        self.steered: list[TurnMessage] = []
        self._brain = brain
        self._end: asyncio.Future[TurnResult] = asyncio.get_running_loop().create_future()
        self._work = asyncio.create_task(self._run())

    @property
    def texts(self) -> list[str]:
        """The messages that the turn answers, as the model reads them."""
        return [each.text for each in self.request.messages]

    @property
    def is_over(self) -> bool:
        """Whether the turn has ended."""
        return self._work.done()

    async def result(self) -> TurnResult:
        return await asyncio.shield(self._work)

    def cancel(self) -> None:
        self.is_cancelled = True
        if not self.is_stubborn:
            self.end(TurnResult("interrupted", self.text, self.request.session_id))

    def steer(self, message: TurnMessage) -> bool:
        if not self.takes_more or self._end.done():
            return False
        self.steered.append(message)
        return True

    def answer(self, text: str = "done", **fields: Any) -> None:
        """Let the turn end with an answer."""
        self.end(TurnResult("done", text, self.request.session_id, **fields))

    def fail(self, error: HermesError | None = None, **fields: Any) -> None:
        """Let the turn fail."""
        self.end(TurnResult("failed", self.text, self.request.session_id, error, **fields))

    def raise_bug(self, error: Exception) -> None:
        """Let the brain raise."""
        if not self._end.done():
            self._end.set_exception(error)

    def end(self, result: TurnResult) -> None:
        """Let the turn end, unless it has."""
        if not self._end.done():
            self._end.set_result(result)

    async def _run(self) -> TurnResult:
        try:
            await self._store("user", self.request.messages)
            result = await self._end
            await self._store("user", self.steered)
            if result.status == "done":
                await self._store("assistant", [TurnMessage(f"answer:{self.request.turn_id}", result.text)])
        except StaleLease as error:
            self._brain.refused_writes += 1
            return TurnResult("failed", error=error)
        return result

    async def _store(self, role: str, messages: Sequence[TurnMessage]) -> None:
        rows = [{"role": role, "content": each.text, "uid": each.uid} for each in messages if each.text]
        if rows:
            view = self._brain.provider.for_owner(self.request.owner).fenced(self.request.lease)
            await asyncio.to_thread(view.append_messages, self.request.session_id, rows)


class ScriptedBrain:
    """Starts scripted turns, and notes what else it is asked for."""

    def __init__(self, provider: SessionDBProvider) -> None:
        self.provider = provider
        self.turns: list[ScriptedTurn] = []
        self.is_stubborn = False
        self.takes_more = True
        self.auto: Callable[[TurnRequest], str] | None = None
        """Returns the text with which every turn ends at once."""
        self.forgotten: list[str] = []
        self.models: dict[str, str | None] = {}
        self.saved: list[str] = []
        """The sessions whose memories were saved."""
        self.ended: list[str] = []
        self.refused_writes = 0
        self._started: asyncio.Queue[ScriptedTurn] = asyncio.Queue()

    def start(self, request: TurnRequest) -> ScriptedTurn:
        turn = ScriptedTurn(self, request)
        self.turns.append(turn)
        if self.auto is not None:
            turn.answer(self.auto(request))
        else:
            self._started.put_nowait(turn)
        return turn

    async def next_turn(self) -> ScriptedTurn:
        """Wait until the next turn starts."""
        async with asyncio.timeout(LIMIT_S):
            return await self._started.get()

    @property
    def has_new_turn(self) -> bool:
        """Whether a turn has started that no `next_turn` has returned."""
        return not self._started.empty()

    def forget(self, session_key: str) -> None:
        self.forgotten.append(session_key)

    def set_model(self, session_key: str, name: str | None) -> None:
        self.models[session_key] = name

    def check_model(self, name: str) -> str:
        return name

    def model_of(self, session_key: str) -> str:
        return self.models.get(session_key) or "scripted"

    async def work(self, *arguments: Any) -> Any:
        raise InvalidValue("a scripted brain has no conversations")

    async def save_memories(
        self, session_key: str, session_id: str, owner: Owner, lease: Lease, seconds: float
    ) -> bool:
        self.saved.append(session_id)
        return True

    async def end_session(self, session_key: str, session_id: str) -> None:
        self.ended.append(session_id)
