"""PostgreSQL's errors as ours: told apart by SQLSTATE, never by their English text."""

from __future__ import annotations

from hermes import errors
from hermes.state.server.faults import Fault, Lost, Overdue, Refused, Verdict

QUERY_CANCELED = "57014"
DAMAGED = ("XX001", "XX002")
"""Data, or an index, that contradicts itself."""
MISSING = ("42P01", "42703", "42883", "3F000")
"""A table, a column, a function or a schema that is not there."""
UNPREPARED = ("26000", "42P05", "08P01")
"""A statement that the server was to keep is not there, or there already: somebody exchanges the servers behind us."""

_SOON = ("40001", "40P01", "55P03")
_LOOK_AGAIN = ("23505", "23503")
_GONE = ("57P01", "57P02", "57P03", "57P05", "25P03")
_CHANGED_TABLE = "0A000"

_BY_CODE: dict[str, type[errors.HermesError]] = {
    "40001": errors.StoreBusy,
    "40P01": errors.StoreBusy,
    "55P03": errors.StoreBusy,
    "57014": errors.StoreBusy,
    "53100": errors.StoreFull,
    "25006": errors.StoreReadOnly,
    "42501": errors.StoreReadOnly,
    "54000": errors.InvalidValue,
    **dict.fromkeys(DAMAGED, errors.StoreCorrupt),
}
_BY_CLASS: dict[str, type[errors.HermesError]] = {
    "08": errors.StoreUnavailable,
    "22": errors.InvalidValue,
    "23": errors.Conflict,
    "28": errors.StoreUnavailable,
    "3D": errors.StoreUnavailable,
    "53": errors.StoreUnavailable,
    "57": errors.StoreUnavailable,
    "58": errors.StoreUnavailable,
}
_SENTENCES: dict[type[errors.HermesError], str] = {
    errors.StoreBusy: "others were in the way in {where} for too long",
    errors.StoreFull: "there is no room left for {where}",
    errors.StoreReadOnly: "{where} cannot be written",
    errors.StoreCorrupt: "{where} is damaged",
    errors.StoreUnavailable: "{where} cannot be reached",
    errors.InvalidValue: "a value cannot be stored",
    errors.Conflict: "the change contradicts what is stored",
}
_HINTS: dict[str, str] = {
    "28": "check the user and the password in sessiondb.dsn",
    "3D": "create the database, or name another one in sessiondb.dsn",
    "53100": "nothing was written; free some space on the server's disk and try again",
    "53300": "lower sessiondb.pool_max_size, or raise max_connections of the server",
    "25006": "this server is a copy that is only read; name the one that can be written in sessiondb.dsn",
    "42P07": "there are other tables of these names; give the store a schema of its own with sessiondb.schema",
    "42501": "let the owner of the tables grant the rights to this user",
    "57014": "nothing was written; raise sessiondb.postgresql.statement_timeout_s, or try again",
    "XX001": "look into the server's log, and restore a backup",
    "XX002": "look into the server's log, and rebuild the index that it names with REINDEX",
}


def verdict(fault: Fault) -> Verdict:
    """Whether work that failed like this may be done again."""
    if isinstance(fault, Lost):
        return Verdict.ELSEWHERE
    if not isinstance(fault, Refused):
        return Verdict.NEVER
    if fault.code in _SOON:
        return Verdict.SOON
    if fault.code in _LOOK_AGAIN:
        return Verdict.LOOK_AGAIN
    if fault.code in (*_GONE, *UNPREPARED, _CHANGED_TABLE) or fault.code.startswith("08"):
        return Verdict.ELSEWHERE
    return Verdict.NEVER


def translate(fault: Fault, where: str) -> errors.HermesError:
    """The error of our tree that says what a failure means for the caller."""
    if isinstance(fault, Overdue):
        return errors.StoreBusy(f"{where} did not answer in time: {fault}")
    if not isinstance(fault, Refused):
        return errors.StoreUnavailable(
            f"the connection to {where} broke: {fault}", hint="check that the server is up, and try again"
        )
    kind = _BY_CODE.get(fault.code) or _BY_CLASS.get(fault.code[:2])
    if kind is None:
        return errors.StoreError(f"PostgreSQL failed in {where}: {fault} ({fault.code})", hint=_hint(fault.code))
    return kind(f"{_SENTENCES[kind].format(where=where)}: {fault}", hint=_hint(fault.code))


def _hint(code: str) -> str | None:
    if code in MISSING:
        return "the tables are not as they should be; has somebody changed them?"
    return _HINTS.get(code) or _HINTS.get(code[:2])
