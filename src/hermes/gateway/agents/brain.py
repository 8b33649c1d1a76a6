"""The brain of a gateway: runs the turns of lanes with the agent, each on a thread."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hermes.agent.agent import Agent
from hermes.agent.conversation import Conversation
from hermes.agent.models.model import Cancellation
from hermes.agent.models.selection import Models
from hermes.agent.safety.approval import ApprovalRequest, ConversationOrigin, Decision
from hermes.agent.tools.toolbox import TOOLBOX
from hermes.agent.turns.incoming import Incoming
from hermes.clock import Clock, system_clock
from hermes.errors import Conflict, HermesError, StaleLease, UnknownSession
from hermes.gateway.agents.approvals import ApprovalDesk
from hermes.gateway.agents.bound_skills import add_bound_skills
from hermes.gateway.agents.cache import AgentCache, CacheFigures
from hermes.gateway.agents.conversations import Lane, LaneConversations, seal
from hermes.gateway.agents.references import attach_references
from hermes.gateway.agents.threads import Job, WorkerThreads
from hermes.gateway.agents.turn import ASKING, STARTING, AgentTurn
from hermes.gateway.store.lane_entries import chosen_model
from hermes.log import warn
from hermes.state.owner import EVERYBODY, Owner

if TYPE_CHECKING:
    from hermes.agent.tools.registry import Registry
    from hermes.config import Config
    from hermes.gateway.engine.ports import TurnRequest, TurnResult
    from hermes.state.lanes.approvals import ApprovalRow
    from hermes.state.lanes.types import Lease
    from hermes.state.provider import SessionDBProvider

T = TypeVar("T")

SPARE_THREADS = 4
"""Threads besides those of turns, for commands and for saving memories."""
MEMORY_GRACE_S = 10.0
"""How long saving memories may take to end after its time."""

_running_turn: ContextVar[AgentTurn | None] = ContextVar("hermes_gateway_turn", default=None)


@dataclass(frozen=True, slots=True)
class BrainFigures:
    """The state of a brain, for metrics."""

    running: int
    waiting: int
    abandoned: int
    """Threads that were given up and still run."""
    abandoned_total: int
    cache: CacheFigures


class AgentBrain:
    """Runs turns with one agent for all lanes, and keeps the conversations of lanes between turns."""

    def __init__(
        self,
        store: SessionDBProvider,
        config: Config,
        home: Path,
        variables: Mapping[str, str],
        *,
        threads: int | None = None,
        on_request: Callable[[ApprovalRow, str], None] | None = None,
        database: Path | None = None,
        model_name: str | None = None,
        tools: Registry = TOOLBOX,
        cache: AgentCache[Conversation] | None = None,
        clock: Clock = system_clock,
    ) -> None:
        self.on_request = on_request
        """Called on the event loop for every request of a permission, perhaps several times for the same one, with the
        account of the chat that it comes from."""
        models = Models(config, variables, model_name)
        self.agent = Agent(
            store.for_owner(EVERYBODY),
            models.open(),
            tools=tools,
            config=config,
            home=home,
            database=database,
            auxiliary=models.open_auxiliary(),
            operator=self._ask_operator,
            clock=clock,
        )
        """The agent of all lanes."""
        self._store = store
        gateway = config.gateway
        self._desk = ApprovalDesk(store, ttl_s=gateway.approval_hours * 3600, lease_s=gateway.lease_seconds)
        self._conversations = LaneConversations(self.agent, models, cache or AgentCache())
        self._threads = WorkerThreads(threads or gateway.max_turns + SPARE_THREADS, "hermes-turn")
        self._turns: dict[str, set[AgentTurn]] = {}
        """The turns that run, by lane; only the event loop uses it."""
        self._is_closed = False

    def start(self, request: TurnRequest) -> AgentTurn:
        """Start a turn and return at once; above the number of threads it waits for another one to end."""
        turn = AgentTurn(request, asyncio.get_running_loop())
        self._turns.setdefault(request.session_key, set()).add(turn)
        turn.on_end(lambda: self._remove(turn))
        if self._is_closed:
            turn.cancel()
            turn.settle(turn.result_of("interrupted"))
            return turn
        try:
            turn.job = self._threads.submit(lambda: self._run(turn))
        except RuntimeError as error:  # the system has no thread for it
            warn(__name__, "a turn of %s was not started: %s", request.session_key, error)
            turn.settle(turn.result_of("failed", _internal_error()))
        return turn

    def forget(self, session_key: str) -> None:
        """Drop the cached conversation of a lane; a turn that was cancelled and still runs is abandoned."""
        self._conversations.cache.evict(session_key)
        for turn in list(self._turns.get(session_key, ())):
            if turn.cancellation.is_cancelled:
                turn.abandon()

    def set_model(self, session_key: str, name: str | None) -> None:
        """Let a lane use another model from its next turn on; None is the configured one."""
        self._conversations.set_model(session_key, name)

    def model_of(self, session_key: str) -> str:
        """Return the name of the model of a lane's next turn."""
        return self._conversations.model_name(session_key)

    def check_model(self, name: str) -> str:
        """Open a model and return its full name; raise `HermesError` if it cannot be used. This blocks."""
        return self._conversations.open_model(name).name

    async def work(
        self, session_key: str, session_id: str, owner: Owner, lease: Lease, function: Callable[[Conversation], T]
    ) -> T:
        """Run a function with the conversation of a lane on a thread, and return its result.

        While a turn of the lane runs, the function gets a conversation of its own.
        """
        lane = Lane(session_key, session_id, owner, lease)
        return await self._submit(lambda: self._with(lane, function))[1]

    async def save_memories(
        self, session_key: str, session_id: str, owner: Owner, lease: Lease, seconds: float
    ) -> bool:
        """Let the model save what should be remembered before a session ends; return whether it has.

        It takes at most about `seconds`. A failure is logged; only `StaleLease` is raised.
        """
        if seconds <= 0:
            return False
        cancellation = Cancellation()
        lane = Lane(session_key, session_id, owner, lease)
        job, saving = self._submit(lambda: self._with(lane, lambda each: each.save_memories(seconds, cancellation)))
        try:
            return await asyncio.wait_for(saving, seconds + MEMORY_GRACE_S)
        except StaleLease:
            raise
        except TimeoutError:
            warn(__name__, "saving the memories of %s did not end in time", session_key)
            job.abandon()
        except HermesError as error:
            warn(__name__, "the memories of %s were not saved: %s", session_key, error)
        finally:
            cancellation.cancel()
        return False

    async def end_session(self, session_key: str, session_id: str) -> None:
        """Drop the conversation, the permissions and the background processes of a session that ends."""
        self._conversations.cache.evict(session_key)
        self.agent.approvals.forget(session_id)
        self.agent.skill_use.forget(session_id)
        if self.agent.processes.of(session_id):
            await self._submit(lambda: self.agent.processes.end(session_id))[1]

    def has_processes(self, session_key: str) -> bool:
        """Whether background processes of a lane's session run; this reads the store."""
        if not self.agent.processes.close(kill=False):
            return False
        lane = self._store.lanes.get(session_key)
        return lane is not None and self.agent.processes.has_active(lane["session_id"])

    def sweep(self) -> int:
        """Drop cached conversations that were not used for a while; return how many."""
        return self._conversations.cache.sweep()

    def figures(self) -> BrainFigures:
        """Return the numbers of turns, threads and cached conversations."""
        threads, cache = self._threads, self._conversations.cache.figures()
        return BrainFigures(threads.running, threads.waiting, threads.abandoned, threads.abandoned_total, cache)

    async def close(self, timeout_s: float) -> bool:
        """Stop all turns, wait for them and for pending titles; return False if some still run."""
        self._is_closed = True
        deadline = time.monotonic() + timeout_s
        for turn in [each for turns in self._turns.values() for each in turns]:
            turn.cancel()
        is_done = await asyncio.to_thread(self._threads.wait, timeout_s)
        is_settled = await asyncio.to_thread(self.agent.settle, max(0.0, deadline - time.monotonic()))
        kill = self.agent.config.terminal.kill_at_exit
        await asyncio.to_thread(lambda: self.agent.processes.close(kill=kill))
        self._conversations.cache.clear()
        return is_done and is_settled

    def _remove(self, turn: AgentTurn) -> None:
        key = turn.request.session_key
        running = self._turns.get(key, set())
        running.discard(turn)
        if not running:
            self._turns.pop(key, None)

    def _with(self, lane: Lane, function: Callable[[Conversation], T]) -> T:
        """Run a function with the conversation of a lane, on a thread; its turns know their model already."""
        self.set_model(lane.session_key, chosen_model(self._store.lanes.get(lane.session_key)))
        row = self.agent.store.narrowed_to(lane.owner).get_session(lane.session_id)
        if row is None:
            raise UnknownSession(f"there is no session {lane.session_id!r}")
        with self._conversations.use(lane, row["source"]) as conversation:
            return function(conversation)

    def _submit(self, work: Callable[[], T]) -> tuple[Job, asyncio.Future[T]]:
        """Run work on one of the threads; it finishes also if the caller of the future is cancelled."""
        if self._is_closed:
            raise Conflict("the gateway is stopping", hint="try again when it runs")
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[T] = loop.create_future()

        def run() -> None:
            settle = _settlement(work, ended)
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle)

        return self._threads.submit(run), ended

    def _run(self, turn: AgentTurn) -> None:
        """Run a turn, on its thread; whatever happens, it gets a result."""
        _running_turn.set(turn)
        try:
            result = self._result_of(turn)
        except HermesError as error:
            result = turn.result_of("failed", error)
        except BaseException:  # noqa: BLE001  the details are for the log, not for the chat
            warn(__name__, "a turn of %s failed:\n%s", turn.request.session_key, traceback.format_exc())
            result = turn.result_of("failed", _internal_error())
        finally:
            _running_turn.set(None)
        turn.settle_from_thread(result)

    def _result_of(self, turn: AgentTurn) -> TurnResult:
        request = turn.request
        if turn.cancellation.is_cancelled:
            return turn.result_of("interrupted")
        turn.listener.note(STARTING)
        lane = Lane(request.session_key, request.session_id, request.owner, request.lease)
        with self._conversations.use(lane, request.source.platform.value, request.context) as conversation:
            turn.on_abandon(lambda: seal(conversation, lane))
            context = add_bound_skills(request.context, request.skills, conversation)
            conversation.session.context = context or conversation.session.context
            if request.is_retry:
                turn.listener.note(ASKING)
                outcome = conversation.retry(turn.listener, turn.cancellation)
            else:
                messages = self._messages(turn, conversation)
                turn.listener.note(ASKING)
                outcome = conversation.answer(
                    messages,
                    turn.listener,
                    turn.cancellation,
                    steering=turn.steering,
                    notes=request.notes,
                    context=context,
                )
            return turn.result_from(outcome, conversation.session.prompt_tokens)

    def _messages(self, turn: AgentTurn, conversation: Conversation) -> list[Incoming]:
        """Return the messages of a turn; before them, the result of the approved call, which is run here."""
        request = turn.request
        messages = attach_references(turn, conversation)
        if request.approval_id is None:
            return messages
        turn.listener.note("running an approved tool")
        done = self._desk.carry_out(request.approval_id, conversation, request.lease, turn.cancellation)
        return [done, *messages]

    def _ask_operator(self, request: ApprovalRequest, origin: ConversationOrigin) -> Decision:
        """Store a request of a permission, on the thread of its turn."""
        turn = _running_turn.get()
        if turn is None:
            return Decision.DENY
        return self._desk.request(
            request, origin, turn.request.session_key, lambda row: turn.call_on_loop(lambda: self._notify(row, turn))
        )

    def _notify(self, row: ApprovalRow, turn: AgentTurn) -> None:
        if self.on_request is not None:
            self.on_request(row, turn.request.account)


def _internal_error() -> HermesError:
    return HermesError("an internal error occurred", hint="/retry tries again; the details are in the gateway's log")


def _settlement(work: Callable[[], T], ended: asyncio.Future[T]) -> Callable[[], None]:
    """Run work and return a function that gives its result or its error to a future, on the event loop."""
    try:
        result = work()
    except Exception as error:  # noqa: BLE001  the caller gets it
        failure = error
        return lambda: None if ended.done() else ended.set_exception(failure)
    except BaseException:  # noqa: BLE001  it must not end the event loop
        warn(__name__, "work on a conversation failed:\n%s", traceback.format_exc())
        return lambda: None if ended.done() else ended.set_exception(_internal_error())
    return lambda: None if ended.done() else ended.set_result(result)
