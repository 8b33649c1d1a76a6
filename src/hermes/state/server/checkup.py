"""A checkup of a store on a server: it reads what a connection can show, and changes nothing.

The server itself checks its own files; this checks the tables and indexes of the store.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from hermes.errors import HermesError
from hermes.phrases import format_size, join_some, plural
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
"""How many of the newest sessions and ids a quick check reads."""
SIZE_S = 1.0
DEEP_HINT = "`hermes doctor --deep` checks all of it"
LOG_HINT = "look into the server's log"
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
_INDEX_AGAIN = f"INSERT INTO stale_index (message_id) SELECT m.id {' '.join(_ABSENT.format(span='').split())};"


def examine(
    open_store: Callable[[], SessionDBProvider],
    pending: Callable[[SessionDBProvider], list[str]],
    *,
    now: float,
    is_deep: bool = False,
) -> list[Finding]:
    """Run every check of a store: quickly, or deeply over all of it; `pending` lists what its schema lacks."""
    try:
        store = open_store()
    except HermesError as exc:
        why = error(exc.message, exc.hint or LOG_HINT, checked=False)
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
            Check("spool", "beside", partial(spool, store)),
        ]
        return [run_check(each, _explain) for each in checks]


def spool(store: SessionDBProvider) -> CheckResult:
    """How many messages are in the spool."""
    spooled = store._engine.spool
    assert spooled is not None, "only a fenced view has no spool"
    return shared_checks.check_spool(spooled, "the database")


def check_server(open_store: Callable[[], SessionDBProvider]) -> CheckResult:
    """Open a store and check its server."""
    with open_store() as store:
        return server(store)


def server(store: SessionDBProvider) -> CheckResult:
    """The server's version, and whether and how fast it responds."""
    health = store.health()
    if not health["ok"]:
        return error(health["error"]["message"], health["error"]["hint"] or LOG_HINT, **health)
    pooled = ", behind a pooler" if health.get("is_behind_pooler") else ""
    name = health.get("server", health["provider"])
    return ok(f"{name}{pooled}, responds in {health['latency_ms']:.1f} ms", **health)


def schema(store: SessionDBProvider, pending: list[str]) -> CheckResult:
    """Whether the tables are up to date."""
    details = {"version": store.schema_version(), "pending": pending}
    if pending:
        return warning(f"its tables lack {join_some(pending)}", "`hermes sessiondb upgrade` adds it", **details)
    return ok(f"schema {details['version']}, ours", **details)


def parts(store: SessionDBProvider) -> CheckResult:
    """Whether an index finds parts of words."""
    if Capability.PARTS in store.capabilities:
        return ok("an index finds parts of words", indexed=True)
    if store._engine.name != "postgresql":
        return ok("parts of words are found in the list of all words", indexed=False)
    return note(
        "searches for parts of words are slow, or find nothing: the extension pg_trgm is not installed",
        "install it (`CREATE EXTENSION pg_trgm`), then run `hermes sessiondb upgrade`",
        indexed=False,
    )


def size(store: SessionDBProvider) -> CheckResult:
    """How much space the tables take, by purpose."""
    usage = measure_disk_usage(store, SIZE_S)
    if usage is None:
        return not_checked("the server does not say how large its tables are")
    parts = {"messages": usage.text, "search": usage.search, "indexes": usage.indexes, "other": usage.other}
    return ok(format_size(usage.total), bytes=usage.total, parts=parts)


def counters(tx: Reading, *, is_deep: bool) -> CheckResult:
    """Whether the message count of each session agrees with its messages."""
    total = int(tx.value("SELECT count(*) FROM sessions"))
    limit = total if is_deep else min(total, SOME_SESSIONS)
    drifted = [name for (name,) in tx.rows(_DRIFT, limit=limit)]
    details = {"sessions": total, "sessions_checked": limit, "drifted": len(drifted)}
    if drifted:
        return warning(
            f"the message count is wrong for {join_some(drifted)}", f"in the database: {_RECOUNT}", **details
        )
    if limit < total:
        summary = f"the counts are correct for the {limit} newest of {plural(total, 'session')}"
        return note(summary, DEEP_HINT, **details)
    return ok(f"the counts of {plural(total, 'session')} are correct", **details)


def index(store: SessionDBProvider) -> CheckResult:
    """How many messages are not indexed yet."""
    waiting = int(store.health()["waiting_for_index"])
    if waiting > MANY:
        return note(
            f"{plural(waiting, 'message')} are not indexed yet; searches read them one by one, slowly",
            f"a program that has it open for writing indexes them in the background; {INDEX} does it now",
            waiting=waiting,
        )
    if waiting:
        return ok(f"up to date but for {plural(waiting, 'message')}; searches read those", waiting=waiting)
    return ok("up to date", waiting=0)


def _parity(store: SessionDBProvider, tx: Reading, *, is_deep: bool) -> CheckResult:
    """Whether every message up to the mark is in the index."""
    mark = store._engine.index.coverage(tx, 0).upto
    low = 0 if is_deep else max(0, mark - SOME_IDS)
    lacking = int(tx.value(_LACKING, low=low, mark=mark))
    details = {"ids": mark, "ids_checked": mark - low, "lacking": lacking}
    if lacking:
        return error(
            f"{plural(lacking, 'message')} missing from the search index, so searches do not find them",
            f"in the database: {_INDEX_AGAIN} then {INDEX}",
            **details,
        )
    if low:
        return note(f"the newest {mark - low} of {mark} ids agree with the messages", DEEP_HINT, **details)
    return ok("agrees with the messages", **details)


def _explain(exc: Exception) -> CheckResult:
    """Turn the error of a check into its result."""
    if isinstance(exc, HermesError):
        return not_checked(exc.message, Status.ERROR, exc.hint or "")
    return not_checked(f"{type(exc).__name__}: {exc}", Status.WARNING, "try again; the other checks ran")
