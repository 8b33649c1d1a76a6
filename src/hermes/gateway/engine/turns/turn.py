"""One turn of a lane, from the start of its messages to the intent to answer them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from hermes.errors import HermesError, StaleLease
from hermes.gateway.engine import texts
from hermes.gateway.engine.intents import notice_intent, reply_intent, reply_key
from hermes.gateway.engine.ports import TurnMessage, TurnRequest, TurnResult
from hermes.gateway.engine.turns.lane_session import LaneSession, is_shared_source, open_lane_session, text_for_model
from hermes.gateway.engine.turns.supervisor import Cause, TurnSupervisor
from hermes.log import warn
from hermes.state.lanes.queue.message_rows import MAX_ATTEMPTS

if TYPE_CHECKING:
    from hermes.gateway.engine.lease_keeper import LeaseKeeper
    from hermes.gateway.engine.messages import Message
    from hermes.gateway.engine.parts import CommandTurn, EngineParts
    from hermes.gateway.engine.ports import RunningTurn
    from hermes.state.lanes.types import Finished, Intent, LaneFields

NEWER = "a newer message"
"""Why messages wait again whose turn was interrupted: they are answered together with the newer one."""
RETRY_S = (1.0, 5.0)
"""How long a lane rests after an internal error, by attempt."""


class LaneTurn:
    """A turn; its lease is checked in every transaction."""

    def __init__(
        self,
        parts: EngineParts,
        keeper: LeaseKeeper,
        key: str,
        messages: Sequence[Message],
        spec: CommandTurn | None,
        has_more: Callable[[], bool],
    ) -> None:
        self.messages = list(messages)
        """The messages that the turn answers."""
        self.turn_id = ""
        self.running: RunningTurn | None = None
        self.started_at = asyncio.get_running_loop().time()
        self._parts = parts
        self._keeper = keeper
        self._key = key
        self._spec = spec
        self._has_more = has_more
        self._session: LaneSession | None = None
        # Named by the message, not by the turn: after a crash the answer completes what the chat has seen of it.
        self._reply_key = reply_key(self.messages[-1].uid)
        self._long_notices = 0
        self._preview: Intent | None = None
        """The intent that completes the preview in the chat as stopped."""

    async def run(self, mailbox: asyncio.Event, on_arrivals: Callable[[], Awaitable[Cause | None]]) -> bool:
        """Run the turn to its end; return whether the lane is free already."""
        parts = self._parts
        self.turn_id = await parts.db.turns.start(self._keeper.lease, [each.id for each in self.messages])
        parts.count("turns_started")
        session = self._session = await open_lane_session(parts, self._key, self.messages, self._keeper.lease)
        if parts.prepare_chat is not None:
            await parts.prepare_chat(self._key, self._reply_key)
        refusal = await self._limit_refusal(session)
        if refusal is not None:
            parts.count("turns_refused")
            reply = self._reply(refusal)
            return self._after(await self._discard("the limit of the user or the chat is reached", [reply]))
        await self._emit_start(session)
        request = self._request(session)
        result: TurnResult | None = None
        try:
            self.running = parts.brain.start(request)
            supervisor = TurnSupervisor(
                parts, self._keeper, mailbox, self.turn_id, self.running, on_arrivals, self._typing(), self._say_it_runs
            )
            result = await self._supervise(request, self.running, supervisor)
            return await self._end(supervisor, result)
        finally:
            await self._emit("agent:end", session, status="stopped" if result is None else result.status)

    async def _supervise(
        self, request: TurnRequest, running: RunningTurn, supervisor: TurnSupervisor
    ) -> TurnResult | None:
        """Wait for the end of the turn, show its answer meanwhile, and count its use."""
        parts, is_ended = self._parts, False
        result: TurnResult | None = None
        if parts.watcher is not None:
            parts.watcher.start(request, running)
        try:
            result = await supervisor.wait()
            is_ended = not supervisor.is_abandoned
        finally:
            if not is_ended:
                parts.brain.forget(self._key)  # it was cancelled; from now on it can store nothing
            if parts.watcher is not None:
                text = "" if result is None else result.text
                self._preview = await parts.watcher.end(self.turn_id, text)
        if result is not None and self._session is not None:
            await self._book(self._session, result)
        return result

    async def give_up(self, error: Exception) -> bool:
        """End a turn that an internal error has stopped: its messages are tried again, three times at most.

        Return whether the lane is free.
        """
        attempt = max(each.attempts for each in self.messages)
        dead = [each for each in self.messages if each.attempts + 1 >= MAX_ATTEMPTS]
        await self._parts.db.turns.fail(
            self._keeper.lease,
            self.turn_id,
            f"{type(error).__name__} in the gateway",
            delay_seconds=RETRY_S[min(attempt, len(RETRY_S) - 1)],
            intents=[self._reply(texts.NOT_ANSWERED, f"notice:dead:{dead[0].uid}", dead)] if dead else [],
        )
        self._parts.count("turns_failed")
        self._parts.count("messages_dead", len(dead))
        self._parts.delivered()
        return True

    def text_of(self, message: Message) -> str:
        """Return a message as it is stored."""
        session = self._session
        is_shared = is_shared_source(self._parts, message.source) if session is None else session.is_shared
        label = None if session is None else session.labels.get(message.sender)
        redacts = self._parts.gateway_config.redact_pii
        return text_for_model(message, is_shared=is_shared, redacts=redacts, label=label)

    def joined(self, message: Message) -> None:
        """Note that a message belongs to the turn now."""
        self.messages.append(message)

    # --- the end ----------------------------------------------------------------------------------------------------

    async def _end(self, supervisor: TurnSupervisor, result: TurnResult | None) -> bool:
        """Store how the turn ended; return whether the lane is free."""
        cause = supervisor.cause
        if cause is Cause.STALE or (result is not None and isinstance(result.error, StaleLease)):
            raise StaleLease(f"the lease on {self._key!r} was lost during a turn")
        if result is not None and result.status == "done":
            return self._after(await self._finish(result))  # it was complete before it could be stopped
        if cause is Cause.INTERRUPT:
            shown, lease = self._stopped(), self._keeper.lease
            interrupted = await self._parts.db.turns.interrupt(lease, self.turn_id, reason=NEWER, intents=shown)
            self._parts.count("turns_interrupted")
            return self._after(interrupted)
        if cause is Cause.STOP:
            return self._after(await self._discard("stopped by a command", self._stopped(), keep_lease=True))
        if cause is Cause.DRAIN:
            self._parts.count("turns_cut")
            self._parts.cut_lanes.add(self._key)
            return False  # releasing the lease lets the messages wait again
        if cause is Cause.IDLE:
            activity = self.running.activity if self.running is not None else ""
            return self._after(await self._fail(texts.timed_out(self._parts.settings.idle_timeout_s, activity)))
        if cause is Cause.TOTAL:
            return self._after(await self._fail(texts.took_too_long(self._parts.settings.total_timeout_s)))
        return self._after(await self._fail(texts.failed(None if result is None else result.error), result))

    async def _finish(self, result: TurnResult) -> Finished:
        """Store the intent to answer together with the end of the turn and the state of the lane."""
        self._parts.count("turns_finished")
        fields: LaneFields = {
            "resume_pending": False,
            "resume_reason": None,
            "restart_count": 0,
            "was_auto_reset": False,
            "auto_reset_reason": None,
            "is_fresh_reset": False,
        }
        if result.prompt_tokens:
            fields["last_prompt_tokens"] = result.prompt_tokens
        text = result.text or texts.EMPTY_ANSWER
        if self.messages[-1].is_background:
            text = f"{texts.background_done(self.messages[-1].text)}\n\n{text}"
        finished = await self._parts.db.turns.finish(
            self._keeper.lease,
            self.turn_id,
            intents=[*self._notices(result), self._reply(text)],
            lane=fields,
            keep_lease=self._keeps_lease(),
            now=self._parts.clock(),
        )
        self._parts.delivered()
        return finished

    async def _fail(self, text: str, result: TurnResult | None = None) -> Finished:
        self._parts.count("turns_failed")
        reason = text
        if result is not None and result.error is not None:
            reason = f"{result.error.code}: {result.error.message}"
            warn(__name__, "a turn of %s failed: %s", self._key, reason)
        notices = [] if result is None else self._notices(result)
        finished = await self._parts.db.turns.fail(
            self._keeper.lease,
            self.turn_id,
            reason[:500],
            retry=False,
            intents=[*notices, self._reply(text)],
            keep_lease=self._keeps_lease(),
        )
        self._parts.delivered()
        return finished

    async def _discard(self, reason: str, intents: Sequence[Intent], *, keep_lease: bool | None = None) -> Finished:
        self._parts.count("turns_discarded")
        keeps = self._keeps_lease() if keep_lease is None else keep_lease
        finished = await self._parts.db.turns.discard(
            self._keeper.lease, self.turn_id, reason, intents=intents, keep_lease=keeps
        )
        self._parts.delivered()
        return finished

    def _stopped(self) -> list[Intent]:
        """Return the intent that completes what the chat has seen of a stopped answer."""
        return [] if self._preview is None else [self._preview]

    def _keeps_lease(self) -> bool:
        """Whether the lane goes on at once; otherwise the end of the turn frees it in the same transaction."""
        return self._has_more()

    def _after(self, finished: Finished) -> bool:
        """Return whether the lane is free after the end of a turn."""
        if finished.lease is not None:
            return False
        if finished.waiting:
            self._parts.arrived(self._key)
        return True

    # --- the start --------------------------------------------------------------------------------------------------

    def _request(self, session: LaneSession) -> TurnRequest:
        spec, last = self._spec, self.messages[-1]
        said = [each for each in self.messages if each.internal is None and (spec is None or each.kind != "command")]
        messages = [TurnMessage(each.uid, self.text_of(each), each.media) for each in said]
        if spec is not None and spec.text:
            messages.append(TurnMessage(last.uid, spec.text, last.media))
        approval = last.approval_id if spec is None else spec.approval_id
        return TurnRequest(
            session_key=self._key,
            session_id=session.entry.session_id,
            owner=session.owner,
            source=last.source,
            lease=self._keeper.lease,
            turn_id=self.turn_id,
            messages=tuple(messages),
            rows=tuple(each.row for each in self.messages if each.row is not None),
            notes=session.notes,
            context=session.context,
            skills=session.skills,
            approval_id=approval,
            is_retry=spec is not None and spec.is_retry,
        )

    async def _limit_refusal(self, session: LaneSession) -> str | None:
        """Return why the turn may not run.

        A turn that continues after a crash was counted before, and one after an approval is the will of its approver.
        One with a newer message counts, or a user could interrupt one turn without end.
        """
        limits = self._parts.limits
        if limits is None or all(each.starts or each.approval_id for each in self.messages):
            return None
        return await limits.begin(session.owner, self.messages[-1].source, self._parts.clock())

    async def _book(self, session: LaneSession, result: TurnResult) -> None:
        limits = self._parts.limits
        if limits is None or not (result.tokens or result.cost_usd):
            return
        try:
            await limits.book(
                session.owner,
                self.messages[-1].source,
                tokens=result.tokens,
                cost_usd=result.cost_usd,
                now=self._parts.clock(),
            )
        except HermesError as error:
            warn(__name__, "the use of a turn was not counted: %s", error)

    async def _emit_start(self, session: LaneSession) -> None:
        if session.is_new:
            await self._emit("session:start", session)
        await self._emit("agent:start", session)

    async def _emit(self, event: str, session: LaneSession, **more: Any) -> None:
        source = self.messages[-1].source
        await self._parts.emit(
            event,
            {
                "session_key": self._key,
                "session_id": session.entry.session_id,
                "platform": source.platform.value,
                "chat_id": source.chat_id,
                "user_id": source.user_id,
                "turn_id": self.turn_id,
                **more,
            },
        )

    def _typing(self) -> Callable[[], Awaitable[None]] | None:
        source = self.messages[-1].source
        adapter = self._parts.adapters.get((source.platform.value, self.messages[-1].account))
        if adapter is None:
            return None

        async def show() -> None:
            with contextlib.suppress(Exception):
                await adapter.typing(source.chat_id, source.thread_id)

        return show

    async def _say_it_runs(self, seconds: float) -> None:
        """Tell the chat that the turn still runs; the result of a background task comes without such notices."""
        last = self.messages[-1]
        if last.is_background or self.running is None:
            return
        self._long_notices += 1
        text, ttl_s = texts.still_works(seconds, self.running.activity), self._parts.settings.reply_ttl_s
        key = f"notice:works:{self.turn_id}:{self._long_notices}"
        await self._parts.db.outbox.intend(notice_intent(key, text, last.source, last.account, ttl_s, self._key))
        self._parts.delivered()

    def _reply(self, text: str, key: str | None = None, messages: Sequence[Message] = ()) -> Intent:
        ttl_s, answered = self._parts.settings.reply_ttl_s, messages or self.messages
        return reply_intent(key or self._reply_key, text, answered, self._key, self.messages[-1].account, ttl_s)

    def _notices(self, result: TurnResult) -> list[Intent]:
        last, ttl_s = self.messages[-1], self._parts.settings.reply_ttl_s
        return [
            notice_intent(f"notice:turn:{self.turn_id}:{number}", text, last.source, last.account, ttl_s, self._key)
            for number, text in enumerate(result.notices)
        ]
