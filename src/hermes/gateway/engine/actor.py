"""The actor of a lane: it exists only while the lane has work, and only where the lease is."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hermes.errors import HermesError, InvalidValue, StaleLease
from hermes.gateway.engine import texts
from hermes.gateway.engine.choosing import Arrival, RunCommand, RunTurn, Step, next_step, on_arrival, without_newer
from hermes.gateway.engine.intents import given_up_intent, last_account, notice_intent, reply_intent
from hermes.gateway.engine.lease_keeper import LeaseKeeper, is_set_within
from hermes.gateway.engine.messages import Message, decode_message
from hermes.gateway.engine.parts import CommandTurn
from hermes.gateway.engine.ports import TurnMessage
from hermes.gateway.engine.turns.lane_session import is_shared_source
from hermes.gateway.engine.turns.last_try import alone_at_last_try
from hermes.gateway.engine.turns.supervisor import Cause
from hermes.gateway.engine.turns.turn import NEWER, LaneTurn
from hermes.gateway.keys import lane_owner
from hermes.log import warn

if TYPE_CHECKING:
    from hermes.gateway.engine.parts import EngineParts, LaneMessage
    from hermes.gateway.engine.ports import RunningTurn
    from hermes.state.lanes.types import Claim, InboxRow, Intent

PAUSE_S = 1.0
"""How long to wait before a lane is given back after an error of the database, and before that is tried again."""
ALBUM_MOST = 50
"""So many photos and files wait for no more."""


class LaneActor:
    """Works on the messages of one lane under a lease, until none waits."""

    def __init__(self, parts: EngineParts, claim: Claim, *, has_turn: bool = True) -> None:
        """Create it; without `has_turn` it runs commands only, because all turns of the node are in use."""
        self.key = claim.lease.session_key
        self.mailbox = asyncio.Event()
        """Set when a message was stored in the lane."""
        self.turn: LaneTurn | None = None
        """The turn that runs."""
        self._parts = parts
        self._claim = claim
        self._has_turn = has_turn
        self._keeper: LeaseKeeper | None = None
        self._seen: set[int] = set()
        """The messages that need no look while the turn runs."""
        self._waiting: set[int] = set()
        self._offered: set[int] = set()
        """The messages that the turn has taken as steering."""
        self._settled: set[int] = set()
        self._acked_at = float("-inf")
        self._begun = {row["id"] for row in claim.messages if row["starts"] and row["reason"] != NEWER}
        """The messages of a turn that did not end: its node died, was stopped, or had an error."""
        self._stop: Message | None = None
        """The command that has stopped the turn."""
        self._holds = False
        """Whether messages are held until the turn ends: those of /queue that waited when the user sent /stop."""

    async def run(self) -> None:
        """Work until nothing waits; a lost lease ends this at once, because another node continues."""
        parts = self._parts
        self._keeper = LeaseKeeper(parts.db.turns, self._claim.lease, parts.settings.lease_s)
        is_freed = False
        try:
            await self._recover()
            is_freed = await self._work([*self._claim.messages])
        except StaleLease as error:
            parts.count("leases_lost")
            warn(__name__, "%s", error)
            is_freed = True
        except Exception as error:  # noqa: BLE001 - a lane that cannot be worked on rests before it is claimed again
            # If the database cannot be reached for long, the lease ends by itself, and the turn is continued then.
            parts.count("lane_errors")
            warn(__name__, "the lane %s is given up for now: %s: %s", self.key, type(error).__name__, error)
            await is_set_within(parts.expelled, PAUSE_S)
        finally:
            await self._keeper.close()
            if not is_freed:
                await self._release()

    async def _work(self, rows: Sequence[InboxRow]) -> bool:
        """Work through the messages; return whether the lane is free already."""
        while True:
            waiting = await self._readable(rows)
            step = without_newer(next_step(waiting, self._parts.settings.mode), waiting, self._begun)
            if isinstance(step, RunTurn):
                if self._has_turn and (more := await self._rest_of_album(step.messages, rows)):
                    rows = more
                    continue
                if self._parts.draining.is_set() or not self._has_turn:
                    return False
            if step is None or self._parts.expelled.is_set():
                return False
            self._note_waiting(waiting, step)
            if isinstance(step, RunCommand):
                is_freed = await self._run_command(step.message)
            elif await self._has_resumed(step.messages[0]):
                is_freed = False
            elif step.messages[0].kind == "queue" and await self._unhold():
                is_freed = False  # the user has sent a new message to the queue: the held ones come first
            else:
                is_freed = await self._run_turn(step.messages, None)
            if is_freed:
                return True
            rows = await self._read_waiting()
            if rows and self._parts.is_full() and await self._is_overtaking(rows[0]["id"]):
                return False

    async def _is_overtaking(self, message_id: int) -> bool:
        """Whether another lane waits for a free turn, with an older message than the next one here, or after a crash.

        Without this a chat that never becomes quiet would keep its turn from the other chats.
        """
        seen = await self._parts.db.turns.peek()
        return 0 < seen.ready_id < message_id or 0 < seen.first_lease_until <= seen.now

    def _note_waiting(self, waiting: Sequence[Message], step: Step) -> None:
        """Note what waits at the start of a step; a command behind the messages of a turn can still stop it."""
        self._waiting, self._settled = {each.id for each in waiting}, set()
        own = step.message.id if isinstance(step, RunCommand) else None
        commands = {each.id for each in waiting if each.kind == "command" and each.id != own}
        self._seen = self._waiting - commands
        if commands:
            self.mailbox.set()

    async def _rest_of_album(self, messages: Sequence[Message], rows: Sequence[InboxRow]) -> list[InboxRow] | None:
        """Wait a little after new photos or files; return all waiting messages if more have arrived, else None."""
        last = messages[-1]
        is_new = last.has_media and last.kind == "normal" and not any(each.starts for each in messages)
        if not is_new or len(messages) >= ALBUM_MOST or last.id != rows[-1]["id"]:
            return None
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._parts.settings.album_s
        while (left_s := deadline - loop.time()) > 0 and not self._parts.draining.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.mailbox.wait(), left_s)
            self.mailbox.clear()
            now = await self._read_waiting()
            if len(now) > len(rows):
                return now
        return None

    async def _read_waiting(self) -> list[InboxRow]:
        """Return the messages that wait; commands behind a full queue must be among them."""
        return await self._parts.db.inbox.waiting(self.key, limit=self._parts.settings.most_read)

    def _has_more(self) -> bool:
        """Whether more messages are known to wait, so that the lane is not freed after the turn."""
        turn_ids = set() if self.turn is None else {each.id for each in self.turn.messages}
        is_known = self._stop is not None or self._holds or self.mailbox.is_set()
        return is_known or bool((self._seen | self._waiting) - turn_ids - self._settled)

    # --- commands ---------------------------------------------------------------------------------------------------

    async def _run_command(self, message: Message, *, is_turn_running: bool = False) -> bool:
        """Run a command, store its reply and settle its message; a command can start a turn for its own message."""
        assert self._keeper is not None
        parts, lease = self._parts, self._keeper.lease
        try:
            reply = await parts.run_command(message, self.key, lease, is_turn_running=is_turn_running)
        except StaleLease:
            raise
        except HermesError as error:
            await self._settle(message, texts.failed(error), reason=str(error))
            return False
        except Exception as error:  # noqa: BLE001 - a command must not stop the lane
            warn(__name__, "the command /%s failed: %s: %s", message.command, type(error).__name__, error)
            await self._settle(message, texts.NOT_ANSWERED, reason=f"{type(error).__name__} in a command")
            return False
        for other in reply.others:
            await self._accept_other(other, message)
        if reply.turn is not None and not is_turn_running:
            if reply.text:
                await self._intend(self._notice(f"notice:command:{message.uid}", reply.text, message))
            return await self._run_turn((message,), reply.turn)
        await self._settle(message, reply.text)
        return False

    async def _settle(self, message: Message, text: str, *, reason: str | None = None) -> None:
        """End a message without a turn; its reply and its end are one transaction."""
        assert self._keeper is not None
        intents = [self._reply(f"command:{message.uid}", text, [message])] if text else []
        state = "done" if reason is None else "failed"
        await self._parts.db.turns.settle(self._keeper.lease, [message.id], state=state, reason=reason, intents=intents)
        self._settled.add(message.id)
        self._parts.delivered()

    async def _accept_other(self, other: LaneMessage, message: Message) -> None:
        """Put a message into a lane, as a command wants it."""
        account = other.account
        if not account and other.session_key != self.key:
            account = await last_account(self._parts.db.outbox, other.session_key)
        await self._parts.db.inbox.accept(
            other.session_key,
            dict(other.payload),
            platform=other.platform or message.source.platform.value,
            account=account,
            delivery_id=other.delivery_id,
            kind=other.kind,  # type: ignore[arg-type]  # checked by the inbox
            node=self._parts.settings.holder,
        )
        self._parts.arrived(other.session_key)

    # --- turns ------------------------------------------------------------------------------------------------------

    async def _run_turn(self, messages: Sequence[Message], spec: CommandTurn | None) -> bool:
        """Run a turn, and the command that has stopped it; return whether the lane is free already."""
        assert self._keeper is not None
        self._stop, self._offered = None, set()
        self._holds = spec is None and messages[0].kind in ("normal", "steer") and await self._has_held()
        turn = self.turn = LaneTurn(self._parts, self._keeper, self.key, messages, spec, self._has_more)
        try:
            self._begun -= {each.id for each in messages}
            async with alone_at_last_try(self._parts.last_tries, messages):
                is_freed = await turn.run(self.mailbox, self._handle_arrivals)
        except (StaleLease, asyncio.CancelledError):
            raise
        except Exception as error:
            if not turn.turn_id:
                raise  # the lane rests: it may have a turn that the database has started without a response
            warn(__name__, "a turn of %s failed: %s: %s", self.key, type(error).__name__, error)
            is_freed = await turn.give_up(error)
        finally:
            self.turn = None
        if self._stop is not None and not is_freed:
            return await self._run_command(self._stop)
        if self._holds and not is_freed:
            await self._unhold()
        return is_freed

    async def _unhold(self) -> bool:
        """Let held messages wait again; return whether there were any."""
        assert self._keeper is not None
        return await self._has_held() and await self._parts.db.turns.unhold(self._keeper.lease) > 0

    async def _has_held(self) -> bool:
        return bool(await self._parts.db.inbox.held(self.key, limit=1))

    async def _handle_arrivals(self) -> Cause | None:
        """Act on the messages that arrived while a turn runs; return why the turn must be stopped, or None."""
        turn = self.turn
        if turn is None or turn.running is None:
            return None
        waiting = await self._readable(await self._read_waiting())
        for message in waiting:
            if message.id in self._seen:
                continue
            cause = await self._handle_arrival(message, turn, turn.running, waiting)
            self._seen.add(message.id)
            if cause is not None:
                return cause
        return None

    async def _handle_arrival(
        self, message: Message, turn: LaneTurn, running: RunningTurn, waiting: Sequence[Message]
    ) -> Cause | None:
        """Act on one message; if the database fails, it is looked at again."""
        decision = on_arrival(
            message,
            turn.messages,
            waiting,
            self._parts.settings.mode,
            bypass=self._parts.bypass,
            stops=self._parts.stops if self._may_stop(message, turn) else (),
        )
        if decision is Arrival.STOP:
            self._stop = message
            return Cause.STOP
        if decision is Arrival.INTERRUPT and not self._parts.draining.is_set():  # no turn would follow for now
            return Cause.INTERRUPT
        if decision is Arrival.RUN_NOW:
            await self._run_command(message, is_turn_running=True)
        elif decision is not Arrival.STEER or not await self._steer(turn, running, message):
            await self._acknowledge(message, waiting)
        return None

    def _may_stop(self, message: Message, turn: LaneTurn) -> bool:
        """Whether a message may stop the turn: in a chat that users do not share, only that of its own user."""
        if is_shared_source(self._parts, message.source):
            return True
        sources = (message.source, turn.messages[0].source)
        return len({lane_owner(each, self.key, is_shared=False).stored for each in sources}) == 1

    async def _steer(self, turn: LaneTurn, running: RunningTurn, message: Message) -> bool:
        """Add a message to the running turn, if the turn can still take it."""
        assert self._keeper is not None
        if message.id not in self._offered:
            if not running.steer(TurnMessage(message.uid, turn.text_of(message), message.media)):
                return False
            self._offered.add(message.id)
        await self._parts.db.turns.join(self._keeper.lease, turn.turn_id, [message.id])
        turn.joined(message)
        return True

    async def _acknowledge(self, message: Message, waiting: Sequence[Message]) -> None:
        """Tell a user that a message waits: always for /queue and for commands, else once in a while."""
        if message.kind == "internal":
            return
        loop_time = asyncio.get_running_loop().time()
        if message.kind == "queue":
            text = texts.queued(sum(each.kind == "queue" and each.id <= message.id for each in waiting))
        elif message.kind == "command":
            text = texts.LATER
        elif not self._parts.settings.acknowledges or loop_time - self._acked_at < self._parts.settings.ack_interval_s:
            return
        else:
            text = texts.waits(self._parts.settings.mode)
            self._acked_at = loop_time
        await self._intend(self._notice(f"ack:{message.uid}", text, message))

    # --- recovery ---------------------------------------------------------------------------------------------------

    async def _recover(self) -> None:
        """Note the turn of a node that died, and tell users about messages that were given up."""
        claim, parts = self._claim, self._parts
        try:
            # Before the notice: a kill after it must not leave a lane that resumes the message.
            if any(row["state"] == "dead" for row in claim.dead):
                await parts.store.suspend_session(self.key)
        finally:
            for row in claim.dead:  # no later claim returns them again
                parts.count("messages_dead")
                with contextlib.suppress(InvalidValue):
                    await self._intend(given_up_intent(row, parts.settings.reply_ttl_s))
        if claim.lost is not None:
            parts.count("turns_recovered")
            await parts.store.mark_resume_pending(self.key, "restart_interrupted")
            if claim.lost["progress"] == 0:
                await parts.store.count_restart(self.key)

    async def _has_resumed(self, message: Message) -> bool:
        """Whether a message would resume a lane that has continued since; such a message is settled."""
        assert self._keeper is not None
        if message.internal != "resume":
            return False
        lane = await self._parts.db.lanes.get(self.key)
        if lane is not None and lane["resume_pending"]:
            return False
        reason = "the conversation has continued already"
        await self._parts.db.turns.settle(self._keeper.lease, [message.id], state="discarded", reason=reason)
        return True

    async def _readable(self, rows: Sequence[InboxRow]) -> list[Message]:
        """Return messages; one that no gateway can read is given up."""
        assert self._keeper is not None
        messages = []
        for row in rows:
            try:
                messages.append(decode_message(row))
            except (InvalidValue, KeyError, TypeError) as error:
                await self._parts.db.turns.settle(
                    self._keeper.lease, [row["id"]], state="failed", reason=f"it cannot be read: {error}"
                )
        return messages

    # --- small helpers ----------------------------------------------------------------------------------------------

    async def _release(self) -> None:
        """Give the lane back; a message that arrived meanwhile makes it ready again.

        If the database fails, this is tried until the lease ends: the lane must not wait for that after a short outage.
        """
        assert self._keeper is not None
        loop, parts = asyncio.get_running_loop(), self._parts
        ends_at, has_failed = loop.time() + parts.settings.lease_s, False
        while True:
            try:
                if await parts.db.turns.release(self._keeper.lease):
                    parts.arrived(self.key)
                return
            except StaleLease as error:
                warn(__name__, "%s", error)
                return
            except HermesError as error:
                if not has_failed:
                    warn(__name__, "the lease on %s is not released yet: %s", self.key, error)
                has_failed = True
            if loop.time() >= ends_at or await is_set_within(parts.expelled, PAUSE_S):
                return

    async def _intend(self, intent: Intent) -> None:
        await self._parts.db.outbox.intend(intent)
        self._parts.delivered()

    def _reply(self, key: str, text: str, messages: Sequence[Message]) -> Intent:
        return reply_intent(key, text, messages, self.key, messages[-1].account, self._parts.settings.reply_ttl_s)

    def _notice(self, key: str, text: str, message: Message) -> Intent:
        ttl_s = self._parts.settings.reply_ttl_s
        return notice_intent(key, text, message.source, message.account, ttl_s, self.key)
