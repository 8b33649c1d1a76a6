"""A turn of a lane while it runs: what the event loop sees of the work on its thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING

from hermes.agent.listener import Listener
from hermes.agent.models.model import Cancellation
from hermes.agent.references.parse import has_references
from hermes.agent.turns.answer_stream import RECONSIDERED
from hermes.agent.turns.steering import Steering
from hermes.errors import HermesError, InvalidValue
from hermes.gateway.engine.ports import TurnMessage, TurnRequest, TurnResult, TurnStatus

if TYPE_CHECKING:
    from hermes.agent.models.model import ToolCall
    from hermes.agent.tools.results import ToolResult
    from hermes.agent.turns.turn import TurnOutcome
    from hermes.gateway.agents.threads import Job

WAITING = "waiting for a free thread"
STARTING = "reading the conversation"
ASKING = "waiting for the model"
THINKING = "thinking"
WRITING = "writing the answer"


class TurnProgress(Listener):
    """What a turn has done so far; the turn's thread writes it, the event loop reads it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.progress = 0
        self.tools: list[str] = []
        self.notices: list[str] = []
        self.activity = WAITING
        self.active_at = clock()
        self._clock = clock
        self._pieces: list[str] = []
        self._is_new_answer = False

    @property
    def answer(self) -> str:
        """The text of the model call that runs, or of the last one."""
        return "".join(self._pieces)

    def note(self, activity: str) -> None:
        """Note what the turn does from now on."""
        self.activity, self.active_at = activity, self._clock()

    def text(self, piece: str) -> None:
        """Receive the next piece of the answer; after a tool, the text before it no longer belongs to the answer."""
        if self._is_new_answer:
            self._pieces, self._is_new_answer = [], False
        self._pieces.append(piece)
        self.note(WRITING)

    def reasoning(self, piece: str) -> None:
        """Note that the model thinks."""
        self.note(THINKING)

    def tool_started(self, call: ToolCall) -> None:
        """Note which tool runs."""
        self.tools.append(call.name)
        self.note(f"running {call.name}")

    def tool_finished(self, call: ToolCall, result: ToolResult) -> None:
        """Count a stored result."""
        self.progress += 1
        self._is_new_answer = True
        self.note(ASKING)

    def retrying(self, seconds: float, why: str) -> None:
        """Note that the model is asked again."""
        self.note(f"asking the model again in {seconds:.0f} s ({why})")

    def notice(self, text: str) -> None:
        """Keep a sentence for the user."""
        if text == RECONSIDERED:
            self._pieces = []
        else:
            self.notices.append(text)
        self.note(self.activity)


class AgentTurn:
    """A turn of a lane that runs on a thread; everything else of it is used on the event loop."""

    def __init__(self, request: TurnRequest, loop: asyncio.AbstractEventLoop) -> None:
        self.request = request
        self.loop = loop
        self.listener = TurnProgress(loop.time)
        self.cancellation = Cancellation()
        self.steering = Steering()
        self.job: Job | None = None
        self.is_abandoned = False
        self._seal: Callable[[], None] | None = None
        self._lock = Lock()
        self._ended: asyncio.Future[TurnResult] = loop.create_future()
        if request.is_retry:
            self.steering.close()

    @property
    def is_ended(self) -> bool:
        """Whether the turn has a result."""
        return self._ended.done()

    async def result(self) -> TurnResult:
        """Wait for the end of the turn."""
        return await asyncio.shield(self._ended)

    def cancel(self) -> None:
        """Stop the turn; what it has written so far stays."""
        self.cancellation.cancel()
        if self.job is not None and self.job.drop():
            self.settle(self.result_of("interrupted"))

    def abandon(self) -> None:
        """Give up the thread of a turn that does not end; from now on it can store nothing."""
        if self.is_ended or self.is_abandoned:
            return
        was_stopped = self.cancellation.is_cancelled
        with self._lock:
            self.is_abandoned, seal = True, self._seal
        self.cancellation.cancel()
        if seal is not None:
            seal()
        if self.job is not None:
            self.job.abandon()
        error = None if was_stopped else HermesError("the turn did not end and was given up", hint="/retry tries again")
        self.settle(self.result_of("interrupted" if was_stopped else "failed", error))

    def steer(self, message: TurnMessage) -> bool:
        """Add a message to the turn; False if it cannot take any more.

        A message with references or files waits for the next turn, because reading them takes time.
        """
        if message.media or has_references(message.text):
            return False
        try:
            return self.steering.offer(message.text, message.uid)
        except InvalidValue:  # a message without text
            return False

    @property
    def text(self) -> str:
        """The answer so far."""
        return self.listener.answer

    @property
    def progress(self) -> int:
        """A number that grows with every stored result of a tool, and with the complete answer."""
        return self.listener.progress

    @property
    def active_at(self) -> float:
        """When the turn last did anything, on the loop's clock."""
        return self.listener.active_at

    @property
    def activity(self) -> str:
        """What the turn does now, in a few words."""
        return self.listener.activity

    def result_of(self, status: TurnStatus, error: HermesError | None = None) -> TurnResult:
        """Return the result of a turn that ended without an outcome."""
        self.steering.close()
        return TurnResult(
            status,
            text=self.text,
            session_id=self.request.session_id,
            error=error,
            notices=tuple(self.listener.notices),
            tools=tuple(self.listener.tools),
            untaken=tuple(each.uid for each in self.steering.untaken()),
        )

    def result_from(self, outcome: TurnOutcome, prompt_tokens: int) -> TurnResult:
        """Return the result of a turn of the agent."""
        self.steering.close()
        if outcome.status == "done":
            self.listener.progress += 1
        return TurnResult(
            outcome.status,
            text=outcome.text,
            session_id=outcome.session_id,
            error=outcome.error,
            notices=tuple(self.listener.notices),
            tokens=outcome.usage.prompt_tokens + outcome.usage.output_tokens,
            cost_usd=outcome.cost or 0.0,
            prompt_tokens=prompt_tokens,
            tools=tuple(self.listener.tools),
            untaken=tuple(each.uid for each in self.steering.untaken()),
        )

    def on_abandon(self, seal: Callable[[], None]) -> None:
        """Call `seal` when the thread of the turn is given up, or now if it was; the turn's thread calls this."""
        with self._lock:
            self._seal = seal
            is_late = self.is_abandoned
        if is_late:
            seal()

    def on_end(self, call: Callable[[], None]) -> None:
        """Call a function on the event loop when the turn has a result."""
        self._ended.add_done_callback(lambda _: call())

    def call_on_loop(self, call: Callable[[], None]) -> None:
        """Call a function on the event loop soon; the turn's thread calls this."""
        with suppress(RuntimeError):  # the loop is closed: no caller waits any more
            self.loop.call_soon_threadsafe(call)

    def settle_from_thread(self, result: TurnResult) -> None:
        """End the turn, on its thread."""
        self.call_on_loop(lambda: self.settle(result))

    def settle(self, result: TurnResult) -> None:
        """End the turn with a result, unless it has one."""
        if not self._ended.done():
            self._ended.set_result(result)
