"""The lane of a command as its user may see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hermes.gateway.keys import is_shared_multi_user_session, lane_owner
from hermes.state.lanes.types import Decision, Keep, LaneRow
from hermes.state.owner import Owner

if TYPE_CHECKING:
    from hermes.gateway.commands.context import CommandContext
    from hermes.gateway.entry import SessionEntry
    from hermes.state.asynchronous.owner_view import AsyncOwnerView
    from hermes.state.asynchronous.session_db import AsyncSessionDB


@dataclass(frozen=True, slots=True)
class AskedLane:
    """A lane, the owner of its sessions, and what the owner may see of it."""

    owner: Owner
    is_shared: bool
    row: LaneRow | None
    """None if the lane does not exist, or its session belongs to another owner."""
    is_foreign: bool = False
    """Whether the lane's session belongs to another owner."""

    @property
    def session_id(self) -> str:
        """The session of the lane; empty if there is none."""
        return "" if self.row is None else self.row["session_id"]


async def asked_lane(context: CommandContext) -> AskedLane:
    """Return the lane of a command; this changes nothing."""
    services, key = context.services, context.session_key
    is_shared = is_shared_multi_user_session(
        context.source,
        group_sessions_per_user=services.gateway_config.group_sessions_per_user,
        thread_sessions_per_user=services.gateway_config.thread_sessions_per_user,
    )
    owner = lane_owner(context.source, key, is_shared=is_shared)
    row = await services.db.lanes.get(key)
    if row is not None and row["owner"] != owner.stored:
        return AskedLane(owner, is_shared, None, is_foreign=True)
    if row is not None and row["ended_at"] is not None:
        # Another program has compressed the session; the lane follows with its next message.
        tip = await services.db.for_owner(owner).get_compression_tip(row["session_id"])
        row = {**row, "session_id": tip}
    return AskedLane(owner, is_shared, row)


async def started_session(context: CommandContext, lane: AskedLane) -> str:
    """Return the session of a lane; a lane without one starts, and its next message counts as that of a new session."""
    return lane.session_id or (await fresh_lane(context, lane)).session_id


async def fresh_lane(context: CommandContext, lane: AskedLane) -> SessionEntry:
    """Start a new session in a lane of which the user has none, or that does not exist."""
    store = context.services.store
    entry = await store.get_or_create_session(context.source, force_new=lane.is_foreign, lease=context.lease)
    entry.is_fresh_reset = True
    await store.save(entry)
    return entry


def view_of(context: CommandContext, lane: AskedLane) -> AsyncOwnerView:
    """Return the sessions that the user of a command may see."""
    return context.services.db.for_owner(lane.owner)


def fenced_view(context: CommandContext, lane: AskedLane) -> AsyncOwnerView:
    """Return the same for writing: nothing is stored after the lane's lease was lost."""
    return view_of(context, lane).fenced(context.lease)


async def change_extra(db: AsyncSessionDB, key: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> bool:
    """Change the `extra` of a lane in one transaction, without noting activity; False if there is no such lane."""

    def decide(row: LaneRow | None, now: float) -> Decision:
        if row is None:
            raise _UnknownLane
        return Keep({"extra": change(dict(row["extra"] or {}))}, touch=False)

    try:
        await db.lanes.resolve(key, decide)
    except _UnknownLane:
        return False
    return True


class _UnknownLane(Exception):
    """There is no such lane."""
