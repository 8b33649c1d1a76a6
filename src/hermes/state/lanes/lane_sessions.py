"""Creating the session of a lane, and letting the lane use it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.errors import Conflict
from hermes.state.engine import Transaction
from hermes.state.lanes.identity import require_name, short_form, stored_name
from hermes.state.lanes.lane_rows import COLUMNS, DEFAULTS, assignments, encode_fields
from hermes.state.lanes.types import ImportedLane, NewSession
from hermes.state.operations import insert_into
from hermes.state.owner import EVERYBODY, is_terminal_source
from hermes.state.sessions.records import insert_session, new_session

if TYPE_CHECKING:
    from hermes.state.lanes.types import LaneFields

_INSERT = insert_into("lanes", ("id", "session_key", "session_id", *COLUMNS))
_REPLACE = f"UPDATE lanes SET session_id = :session_id, {assignments(COLUMNS)} WHERE id = :id"


def point_lane(tx: Transaction, key: str, session_id: str, fields: LaneFields, now: float, *, is_stored: bool) -> None:
    """Let a lane use a session, with no other values in its columns than the given ones."""
    known = {"platform": None, "chat_type": "dm", "display_name": None, "origin": None, "extra": None}
    values = {**DEFAULTS, **known, "created_at": now, "updated_at": now, **encode_fields(fields)}
    lane_id = short_form(require_name(key, "key"))
    if is_stored:
        tx.run(_REPLACE, id=lane_id, session_id=session_id, **values)
    else:
        tx.run(_INSERT, id=lane_id, session_key=stored_name(key), session_id=session_id, **values)


def import_lane(tx: Transaction, lane: ImportedLane, now: float) -> None:
    """Add a lane and its session; all errors about their values come before the first change."""
    lane_id = short_form(require_name(lane.key, "key"))
    encode_fields(lane.fields)
    add_session(tx, lane_id, lane.session, lane.fields.get("created_at", now))
    point_lane(tx, lane.key, lane.session.session_id, lane.fields, now, is_stored=False)


def add_session(tx: Transaction, lane_id: str, session: NewSession, now: float) -> None:
    """Create a session, unless it exists with the same owner; without a user, the lane owns it, never the terminal."""
    values = new_session(
        session.session_id,
        session.source,
        now,
        user_id=session.user_id,
        owner=session.owner,
        model=session.model,
        parent_session_id=session.parent_session_id,
        child_kind=session.child_kind,
    )
    found = tx.row("SELECT owner FROM sessions WHERE id = :id", id=session.session_id)
    given = values["owner"]
    owner = lane_id if given is None and not is_terminal_source(session.source) else given
    if found is None:
        insert_session(tx, {**values, "owner": owner}, EVERYBODY)
    elif found[0] not in (given, owner):
        raise Conflict(f"the session {session.session_id!r} belongs to another owner", hint="create another id")
