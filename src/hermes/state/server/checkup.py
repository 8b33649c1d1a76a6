"""A checkup of a store on a server: what can be seen over a connection is looked at, and nothing is changed.

Whether the server's own files are in order is for the server to tell; what the store adds to them is looked at here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from hermes.errors import HermesError
from hermes.phrases import counted, sized, some
from hermes.state.engine import Capability, Reading
from hermes.state.maintenance import shared_checks
from hermes.state.maintenance.disk_usage import measure_disk_usage
from hermes.state.maintenance.findings import (
    Check,
    CheckResult,
    Finding,
    Status,
    error,
    not_checked,
    note,
    ok,
    run_check,
    warning,
)
from hermes.state.operations import read
from hermes.state.provider import SessionDBProvider
from hermes.state.server.search.background_index import MANY

SOME_SESSIONS, SOME_IDS = 500, 10_000
"""How many of the newest a brief look is at."""
ROOM_S = 1.0
LOOK_DEEPER = "`hermes doctor --deep` looks at all of it"
LOOK_THERE = "look at what the server says"
INDEX = "`hermes sessions optimize`"

_COUNT = "SELECT count(*) FROM messages m WHERE m.session_id = {session}.id AND m.active = 1"
_DRIFT = f"""
    SELECT s.id FROM (SELECT id, message_count FROM sessions ORDER BY started_at DESC, id DESC LIMIT :limit) AS s
    WHERE s.message_count <> ({_COUNT.format(session="s")})
      AND NOT EXISTS (SELECT 1 FROM messages o WHERE o.session_id = s.id AND o.uid IS NULL)
    ORDER BY s.id"""
_RECOUNT = f"UPDATE sessions SET message_count = ({_COUNT.format(session='sessions')});"

_ABSENT = """FROM messages m WHERE {span} m.uid IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM message_words w WHERE w.message_id = m.id)
    AND NOT EXISTS (SELECT 1 FROM stale_index t WHERE t.message_id = m.id)"""
_LACKING = f"SELECT count(*) {_ABSENT.format(span='m.id > :low AND m.id <= :mark AND')}"
_INDEX_ANEW = f"INSERT INTO stale_index (message_id) SELECT m.id {' '.join(_ABSENT.format(span='').split())};"


def examine(
    open_store: Callable[[], SessionDBProvider],
    pending: Callable[[SessionDBProvider], list[str]],
    *,
    now: float,
    is_deep: bool = False,
) -> list[Finding]:
    """Look at the store that is opened: briefly, or deeply at all of it; `pending` tells what it lacks."""
    try:
        store = open_store()
    except HermesError as exc:
        why = error(exc.message, exc.hint or LOOK_THERE, checked=False)
        return [run_check(Check("server", "server", lambda: why), _explain)]
    with store:
        checks = [
            Check("server", "server", partial(server, store)),
            Check("schema", "server", lambda: schema(store, pending(store))),
            Check("parts-of-words", "server", partial(parts, store)),
            Check("size", "size", partial(size, store)),
            Check("pending-links", "content", partial(read, store, shared_checks.check_pending_links)),
            Check("counters", "content", partial(read, store, partial(counters, is_deep=is_deep))),
            Check("index", "search", partial(index, store)),
            Check("index-parity", "search", partial(read, store, partial(_parity, store, is_deep=is_deep))),
            Check("leases", "use", partial(read, store, lambda tx: shared_checks.check_compression_locks(tx, now))),
            Check("spool", "beside", lambda: shared_checks.check_spool(store._engine.spool, "the database")),
        ]
        return [run_check(each, _explain) for each in checks]


def answer(open_store: Callable[[], SessionDBProvider]) -> CheckResult:
    """Whether a store can be opened and answers."""
    with open_store() as store:
        return server(store)


def server(store: SessionDBProvider) -> CheckResult:
    """Which server it is, whether it answers, and how fast."""
    health = store.health()
    if not health["ok"]:
        return error(health["error"]["message"], health["error"]["hint"] or LOOK_THERE, **health)
    pooled = ", behind a pooler" if health.get("is_behind_pooler") else ""
    name = health.get("server", health["provider"])
    return ok(f"{name}{pooled}, answers in {health['latency_ms']:.1f} ms", **health)


def schema(store: SessionDBProvider, pending: list[str]) -> CheckResult:
    """Whether the tables are those of this version."""
    seen = {"version": store.schema_version(), "pending": pending}
    if pending:
        return warning(f"its tables lack {some(pending)}", "`hermes sessiondb upgrade` adds it", **seen)
    return ok(f"schema {seen['version']}, ours", **seen)


def parts(store: SessionDBProvider) -> CheckResult:
    """Whether parts of words are found by an index."""
    if Capability.PARTS in store.capabilities:
        return ok("parts of words are found by an index", indexed=True)
    if store._engine.name != "postgresql":
        return ok("parts of words are found in the list of all words", indexed=False)
    return note(
        "parts of words are found slowly, or not at all: the extension pg_trgm is not installed",
        "have it installed (`CREATE EXTENSION pg_trgm`), then `hermes sessiondb upgrade`",
        indexed=False,
    )


def size(store: SessionDBProvider) -> CheckResult:
    """How much room the tables take, and for what."""
    room = measure_disk_usage(store, ROOM_S)
    if room is None:
        return not_checked("the server does not tell")
    divided = {"messages": room.text, "search": room.search, "indexes": room.indexes, "other": room.other}
    return ok(sized(room.total), bytes=room.total, parts=divided)


def counters(tx: Reading, *, is_deep: bool) -> CheckResult:
    """Whether the number of messages that is noted of a session is that of its messages."""
    total = int(tx.value("SELECT count(*) FROM sessions"))
    limit = total if is_deep else min(total, SOME_SESSIONS)
    drifted = [name for (name,) in tx.rows(_DRIFT, limit=limit)]
    seen = {"sessions": total, "sessions_checked": limit, "drifted": len(drifted)}
    if drifted:
        return warning(
            f"the number of messages is not right for {some(drifted)}", f"in the database: {_RECOUNT}", **seen
        )
    if limit < total:
        return note(f"the counts are right for the {limit} newest of {counted(total, 'session')}", LOOK_DEEPER, **seen)
    return ok(f"the counts of {counted(total, 'session')} are right", **seen)


def index(store: SessionDBProvider) -> CheckResult:
    """How many messages wait to be indexed."""
    waiting = int(store.health()["waiting_for_index"])
    if waiting > MANY:
        return note(
            f"{counted(waiting, 'message')} wait to be indexed; searches read them meanwhile, slowly",
            f"a program that has it open for writing does it in the background; {INDEX} does it now",
            waiting=waiting,
        )
    if waiting:
        return ok(f"up to date but for {counted(waiting, 'message')}, which searches read themselves", waiting=waiting)
    return ok("up to date", waiting=0)


def _parity(store: SessionDBProvider, tx: Reading, *, is_deep: bool) -> CheckResult:
    """Whether every message up to the mark is in the index."""
    mark = store._engine.index.coverage(tx, 0).upto
    low = 0 if is_deep else max(0, mark - SOME_IDS)
    lacking = int(tx.value(_LACKING, low=low, mark=mark))
    seen = {"ids": mark, "ids_checked": mark - low, "lacking": lacking}
    if lacking:
        return error(
            f"{counted(lacking, 'message')} missing from the search index, and so not found",
            f"in the database: {_INDEX_ANEW} then {INDEX}",
            **seen,
        )
    if low:
        return note(f"the newest {mark - low} of {mark} ids agree with the messages", LOOK_DEEPER, **seen)
    return ok("agrees with the messages", **seen)


def _explain(exc: Exception) -> CheckResult:
    """Why a check could not be made."""
    if isinstance(exc, HermesError):
        return not_checked(exc.message, Status.ERROR, exc.hint or "")
    return not_checked(f"{type(exc).__name__}: {exc}", Status.WARNING, "try again; the other checks were made")
