"""Commands that list, continue, name and copy sessions: /sessions, /resume, /title and /branch."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING

from hermes.errors import AmbiguousSession, InvalidTitle, InvalidValue, NotFound, TitleTaken, UnknownSession
from hermes.gateway.commands import texts
from hermes.gateway.commands.lane import AskedLane, asked_lane, change_extra, fenced_view, fresh_lane, view_of
from hermes.gateway.commands.lane import started_session as started
from hermes.gateway.commands.result import CommandResult
from hermes.gateway.people.times import ago
from hermes.state.sessions.lookup import Purpose, find_session

if TYPE_CHECKING:
    from hermes.gateway.commands.context import CommandContext
    from hermes.state.row_types import ListedSession

MOST_LISTED = 10
LISTED = "listed"
"""The key in a lane's `extra` with the ids behind the numbers of the last list."""
_PREVIEW = 60
_MAX_NAME = 300
_PAIRS = {"<": ">", "[": "]", '"': '"', "'": "'", "\u201c": "\u201d"}


async def sessions(context: CommandContext) -> CommandResult:
    """List the user's sessions, and note which number is which session."""
    lane = await asked_lane(context)
    rows = await _recent(context, lane)
    if not rows:
        return CommandResult(texts.NO_SESSIONS)
    ids = [row["id"] for row in rows]
    if lane.row is not None and lane.row["extra"].get(LISTED) != ids:
        await change_extra(context.services.db, context.session_key, lambda extra: {**extra, LISTED: ids})
    now = context.services.now()
    entries = [
        texts.listed_session(
            number,
            _label(context, lane, row),
            ago(row["last_active"], now),
            row["id"],
            is_current=row["id"] == lane.session_id,
        )
        for number, row in enumerate(rows, 1)
    ]
    return CommandResult(texts.sessions_list(entries, is_shared=lane.is_shared))


async def resume(context: CommandContext) -> CommandResult:
    """Let the lane continue another session of the user."""
    name = strip_brackets(context.args)
    if not name:
        return await sessions(context)
    lane = await asked_lane(context)
    try:
        session_id = await named_session(context, lane, name)
    except AmbiguousSession:
        return CommandResult(texts.SEVERAL_SESSIONS)
    if session_id is None:
        return CommandResult(texts.unknown_session(name))
    row = await view_of(context, lane).get_session(session_id)
    if row is None:
        return CommandResult(texts.unknown_session(name))
    shown = texts.session_name(session_id, row["title"])
    if lane.row is not None and lane.session_id == session_id and not lane.row["suspended"]:
        return CommandResult(texts.already_in(shown))
    await context.confirm_lease()
    try:
        await _switch(context, lane, session_id)
    except UnknownSession:
        return CommandResult(texts.unknown_session(name))
    return CommandResult(texts.resumed(shown, row["message_count"]))


async def title(context: CommandContext) -> CommandResult:
    """Show or set the title of the lane's session."""
    lane = await asked_lane(context)
    view = view_of(context, lane)
    if not context.args:
        if lane.row is None:
            return CommandResult(texts.NO_SESSION)
        stored = await view.get_session_title(lane.session_id)
        return CommandResult(texts.title_shown(stored) if stored else texts.NO_TITLE)
    try:
        wanted = view.sanitize_title(context.args)
    except InvalidTitle as error:
        return CommandResult(texts.failed(error))
    if wanted is None:
        return CommandResult(texts.EMPTY_TITLE)
    session_id = await started(context, lane)
    try:
        is_set = await view.set_session_title(session_id, wanted)
    except TitleTaken:
        return CommandResult(texts.title_taken(wanted))
    return CommandResult(texts.title_set(wanted) if is_set else texts.NO_SESSION)


async def branch(context: CommandContext) -> CommandResult:
    """Copy the lane's session, and let the lane continue the copy."""
    lane = await asked_lane(context)
    if lane.row is None or not lane.row["message_count"]:
        return CommandResult(texts.NOTHING_TO_BRANCH)
    if lane.row["suspended"]:
        return CommandResult(texts.IS_STOPPED)
    child_id = branch_id(context.row["accepted_at"], context.row["uid"])
    view = view_of(context, lane)
    if lane.session_id != child_id:  # otherwise the command runs again after a crash
        await fenced_view(context, lane).branch_session(lane.session_id, child_id, context.args or None)
        await context.confirm_lease()
        await _switch(context, lane, child_id)
    row = await view.get_session(child_id)
    if row is None:
        raise NotFound("the branch was just deleted")
    parent_id = row["parent_session_id"] or lane.session_id
    return CommandResult(texts.branched(row["title"], child_id, parent_id, row["message_count"]))


def branch_id(moment: float, uid: str) -> str:
    """Return the id of the session that a command makes; the same whenever the command runs again."""
    stamp = time.strftime("%Y%m%d_%H%M%S", time.localtime(moment))
    return f"{stamp}_{hashlib.sha256(uid.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def strip_brackets(name: str) -> str:
    """Remove brackets and quotes around a name."""
    name = name.strip()
    while len(name) > 1 and _PAIRS.get(name[0]) == name[-1]:
        name = name[1:-1].strip()
    return name


async def _switch(context: CommandContext, lane: AskedLane, session_id: str) -> None:
    """Let the lane use a session of the user; a lane that does not exist is created."""
    services, key = context.services, context.session_key
    left = "" if lane.row is not None else (await fresh_lane(context, lane)).session_id
    entry = await services.store.switch_session(key, session_id, owner=lane.owner, lease=context.lease)
    if entry is None:
        raise UnknownSession(f"there is no session {session_id!r}")
    if entry.suspended:
        entry.suspended = False
        await services.store.save(entry)
    services.brain.forget(key)
    if left:
        await services.db.delete_session_if_empty(left)


async def named_session(context: CommandContext, lane: AskedLane, name: str) -> str | None:
    """Return the newest session of the conversation that a user names by id, title or number; None if there is none."""
    if len(name) > _MAX_NAME:
        return None
    view = context.services.db.store.for_owner(lane.owner)
    try:
        found = await context.services.run_blocking(lambda: find_session(view, name, Purpose.RESUME))
    except (UnknownSession, InvalidValue):
        numbered = await _numbered(context, lane, name)
        if numbered is None:
            return None
        found = numbered
    return await view_of(context, lane).get_compression_tip(found)


async def _numbered(context: CommandContext, lane: AskedLane, name: str) -> str | None:
    """Return the session with this number in the last list, or in a new one if there was none."""
    if not (name.isascii() and name.isdecimal() and len(name) <= 3):
        return None
    ids = [] if lane.row is None else lane.row["extra"].get(LISTED)
    if not isinstance(ids, list) or not ids:
        ids = [row["id"] for row in await _recent(context, lane)]
    return str(ids[int(name) - 1]) if 1 <= int(name) <= len(ids) else None


async def _recent(context: CommandContext, lane: AskedLane) -> list[ListedSession]:
    return await view_of(context, lane).list_sessions_rich(
        limit=MOST_LISTED, min_message_count=1, order_by_last_active=True
    )


def _label(context: CommandContext, lane: AskedLane, row: ListedSession) -> str:
    """Return how a list names a session; what a user wrote in private is not repeated in a group."""
    if row["title"]:
        return texts.shorten(row["title"], texts.MAX_ECHO)
    if row["preview"] and (lane.is_shared or context.source.chat_type == "dm"):
        return texts.shorten(row["preview"], _PREVIEW)
    return "no title"
