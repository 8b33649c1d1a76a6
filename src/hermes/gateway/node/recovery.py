"""What a node does at its start about turns that an earlier process left, and at its end for the next one."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.errors import HermesError, InvalidValue
from hermes.gateway.engine.intents import given_up_intent, last_account
from hermes.log import warn

if TYPE_CHECKING:
    from hermes.gateway.engine.parts import EngineParts
    from hermes.gateway.entry import SessionEntry
    from hermes.state.lanes.types import InboxRow

CLEAN_SHUTDOWN = ".clean_shutdown"
UNFINISHED = "did not finish the turn"
"""The reason of messages that were given up because their node died; other reasons are stored with their notice."""


def take_clean_mark(home: Path) -> bool:
    """Return whether the last process ended cleanly, and remove its mark."""
    try:
        (home / CLEAN_SHUTDOWN).unlink()
    except OSError:
        return False
    return True


def write_clean_mark(home: Path) -> None:
    """Note that no turn was cut off by the end of this process."""
    with contextlib.suppress(OSError):
        (home / CLEAN_SHUTDOWN).touch(mode=0o600)


async def resume_lanes(parts: EngineParts) -> int:
    """Let lanes continue whose turn was cut off and in which no message waits; return how many.

    A lane whose message waits continues with it anyway. The internal message has an id of its own, so that several
    nodes resume a lane once.
    """
    count = 0
    for entry in await parts.store.resume_candidates(parts.settings.freshness_s):
        try:
            count += await _resume(parts, entry)
        except HermesError as error:
            warn(__name__, "the lane %s was not resumed: %s", entry.session_key, error)
    return count


async def _resume(parts: EngineParts, entry: SessionEntry) -> bool:
    key = entry.session_key
    history = await parts.db.turns.history(key, limit=1)
    is_running = bool(history) and history[0]["state"] == "running"
    if entry.origin is None or is_running or await parts.db.inbox.depth(key):
        return False
    marked = entry.last_resume_marked_at or entry.updated_at
    accepted = await parts.db.inbox.accept(
        key,
        {"internal": "resume", "text": "", "source": entry.origin.to_dict()},
        platform=entry.origin.platform.value,
        account=await last_account(parts.db.outbox, key),
        chat_id=entry.origin.chat_id,
        delivery_id=f"resume:{entry.session_id}:{marked.timestamp():.3f}",
        kind="internal",
        node=parts.settings.holder,
    )
    parts.arrived(key)
    return accepted.state == "accepted"


async def announce_given_up(parts: EngineParts) -> int:
    """Tell chats about messages that were given up when their node died; return how many did not know it.

    The node that gives a message up suspends the session and stores the notice afterwards; a kill may come in between.
    """
    count, last_id = 0, 0
    since = parts.clock() - parts.settings.reply_ttl_s
    while rows := await parts.db.inbox.dead(after=last_id):
        last_id = rows[-1]["id"]
        for row in rows:
            if (row["finished_at"] or 0.0) >= since and UNFINISHED in (row["reason"] or ""):
                count += await _announce(parts, row)
    return count


async def _announce(parts: EngineParts, row: InboxRow) -> bool:
    try:
        intent = given_up_intent(row, parts.settings.reply_ttl_s)
    except InvalidValue:
        return False
    if await parts.db.outbox.find(intent.key) is not None:
        return False
    lane = await parts.db.lanes.get(row["session_key"])
    if row["state"] == "dead" and lane is not None and lane["resume_pending"]:
        await parts.store.suspend_session(row["session_key"])  # to resume it would run the same message again
    await parts.db.outbox.intend(intent)
    return True


async def mark_running(parts: EngineParts, keys: list[str], reason: str) -> list[str]:
    """Mark lanes with a running turn before draining, so that a kill during it is survived; return the new marks."""
    marked = []
    for key in keys:
        try:
            row = await parts.db.lanes.get(key)
            if await parts.store.mark_resume_pending(key, reason) and row is not None and not row["resume_pending"]:
                marked.append(key)
        except HermesError as error:
            warn(__name__, "the lane %s was not marked: %s", key, error)
    return marked


async def clear_marks(parts: EngineParts, keys: list[str]) -> None:
    """Remove the marks of lanes whose turn has ended, also those of turns that failed or ended before the mark."""
    for key in keys:
        try:
            await parts.store.clear_resume_pending(key)
        except HermesError as error:
            warn(__name__, "the mark of the lane %s was not removed: %s", key, error)
