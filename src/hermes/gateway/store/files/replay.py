"""After the database is back: do there what the journal says, each record once."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from hermes.errors import Conflict, InvalidValue, MessageSpooled, NotFound
from hermes.gateway.store.files.journal import Journal, Record
from hermes.home import private_opener
from hermes.log import inform, warn
from hermes.state.lanes.types import Decision, Keep, LaneRow, NewSession, Start
from hermes.state.provider import SessionDBProvider

REJECTED = "degraded-rejected.jsonl"
_META = "gateway_replay"
"""The key of `state_meta` with the id of a journal and how many of its records were replayed."""


def replay_journal(
    db: SessionDBProvider, journal: Journal, finish: Callable[[], None] = lambda: None, *, wait: bool = False
) -> None:
    """Apply the journal to the database, and delete it; call `finish` while no process can write to the journal.

    A crash in between does no harm: the database remembers how far the replay came, and the one record that may be
    repeated changes nothing the second time. Without a journal, `wait` still waits for a process that starts one.
    """
    if not wait and not journal.path.exists():
        finish()
        return
    with journal.locked() as locked:
        records, _ = locked.read()
        done = _count_done(db, records) if records else 0
        for place, record in enumerate(records[done:], done):
            try:
                _apply(db, record)
            except (NotFound, Conflict, InvalidValue) as error:
                _set_aside(journal.path.parent, record, str(error))
            except (KeyError, TypeError, AttributeError):
                _set_aside(journal.path.parent, record, "the record is damaged")
            db.set_meta(_META, json.dumps([_journal_id(records), place + 1]))
        locked.delete()
        finish()
    if records:
        inform(__name__, "%s records of %s were stored in the database", len(records) - done, journal.path)


def _count_done(db: SessionDBProvider, records: list[Record]) -> int:
    """Return how many records were replayed already."""
    known = db.get_meta(_META)
    if not known:
        return 0
    try:
        journal_id, done = json.loads(known)
    except ValueError:
        return 0
    return int(done) if journal_id == _journal_id(records) else 0


def _journal_id(records: list[Record]) -> str:
    return str(records[0].get("id", ""))


def _apply(db: SessionDBProvider, record: Record) -> None:
    kind = record["kind"]
    if kind == "lane":
        _apply_lane(db, record)
    elif kind == "message":
        with suppress(MessageSpooled):  # then it is durable in the spool of the database
            db.append_messages(record["session_id"], [{**record["message"], "uid": record["uid"]}])
    elif kind == "rewrite":
        db.replace_messages(record["session_id"], record["messages"])
    elif kind == "pruned":
        keys = frozenset(record["keys"])
        db.lanes.prune(record["before"], skip=lambda key: key not in keys)
    elif kind == "damaged":
        raise InvalidValue("the line is damaged")
    elif kind == "undo":
        _undo(db, record["session_id"], record["uid"])


def _apply_lane(db: SessionDBProvider, record: Record) -> None:
    session = NewSession(**record["session"]) if record["session"] else None
    fields: Any = record["fields"]
    existing = db.get_session(record["session_id"]) if session is None else None
    owner = record["session_key"] if existing is None else existing["owner"]

    def decide(row: LaneRow | None, now: float) -> Decision:
        if row is not None and row["session_id"] == record["session_id"]:
            return Keep(fields if row["updated_at"] <= fields["updated_at"] else {}, touch=False)
        if row is not None and row["updated_at"] > fields["updated_at"]:
            return Keep(touch=False)  # another process has used the lane since
        new = session or NewSession(record["session_id"], fields["platform"] or "unknown", owner=owner)
        return Start(new, fields, end_reason=record["ended"][1] if record["ended"] else "session_switch")

    db.lanes.resolve(record["session_key"], decide)
    if record["ended"]:
        db.end_session(*record["ended"])
    if session is not None and db.get_session(session.session_id) is None:
        # The lane has moved on, but the messages of the session follow.
        db.create_session(session.session_id, session.source, user_id=session.user_id, owner=session.owner)


def _undo(db: SessionDBProvider, session_id: str, uid: str) -> None:
    for message in db.get_messages(session_id):
        if message["uid"] == uid:
            db.rewind_to_message(session_id, message["id"])
            return


def _set_aside(sessions_dir: Path, record: Record, reason: str) -> None:
    path = sessions_dir / REJECTED
    with open(path, "a", opener=private_opener) as file:
        file.write(json.dumps({"reason": reason, "record": record}) + "\n")
    warn(__name__, "a record of the time without database was not stored (%s); it is in %s", reason, path)
