"""Translation of PostgreSQL's errors to ours, by SQLSTATE, never by their English text."""

from __future__ import annotations

from hermes import errors
from hermes.state.server.codes import ErrorCodes
from hermes.state.server.faults import Verdict

QUERY_CANCELED = "57014"
DAMAGED = ("XX001", "XX002")
"""Damaged data, or a damaged index."""
MISSING = ("42P01", "42703", "42883", "3F000")
"""A table, a column, a function or a schema does not exist."""
UNPREPARED = ("26000", "42P05", "08P01")
"""A prepared statement does not exist, or exists already: a pooler switches server connections behind us."""

_RETRY_SOON = ("40001", "40P01", "55P03")
_RETRY_NOW = ("23505", "23503")
_GONE = ("08", "57P01", "57P02", "57P03", "57P05", "25P03")
_CHANGED_TABLE = "0A000"

_VERDICTS = {
    **dict.fromkeys(_RETRY_SOON, Verdict.RETRY_SOON),
    **dict.fromkeys(_RETRY_NOW, Verdict.RETRY_NOW),
    **dict.fromkeys((*_GONE, *UNPREPARED, _CHANGED_TABLE), Verdict.RECONNECT),
}
_KINDS: dict[str, type[errors.HermesError]] = {
    "40001": errors.StoreBusy,
    "40P01": errors.StoreBusy,
    "55P03": errors.StoreBusy,
    "57014": errors.StoreBusy,
    "53100": errors.StoreFull,
    "25006": errors.StoreReadOnly,
    "42501": errors.StoreReadOnly,
    "54000": errors.InvalidValue,
    **dict.fromkeys(DAMAGED, errors.StoreCorrupt),
    "08": errors.StoreUnavailable,
    "22": errors.InvalidValue,
    "23": errors.Conflict,
    "28": errors.StoreUnavailable,
    "3D": errors.StoreUnavailable,
    "53": errors.StoreUnavailable,
    "57": errors.StoreUnavailable,
    "58": errors.StoreUnavailable,
}
_HINTS: dict[str, str] = {
    "28": "check the user and the password in sessiondb.dsn",
    "3D": "create the database, or name another one in sessiondb.dsn",
    "53100": "nothing was written; free some space on the server's disk and try again",
    "53300": "lower sessiondb.pool_max_size, or raise max_connections of the server",
    "25006": "this server is a read-only replica; set sessiondb.dsn to the primary",
    "42P07": "other tables have these names; set sessiondb.schema to a schema of its own",
    "42501": "let the owner of the tables grant the rights to this user",
    "57014": "nothing was written; raise sessiondb.postgresql.statement_timeout_s, or try again",
    **dict.fromkeys(MISSING, "the tables are not as expected; check whether another program has changed them"),
    "XX001": "look into the server's log, and restore a backup",
    "XX002": "look into the server's log, and rebuild the index that it names with REINDEX",
}

_CODES = ErrorCodes("PostgreSQL", _VERDICTS, _KINDS, _HINTS, refused=("28", "3D", "53300"), class_length=2)
verdict, translate = _CODES.verdict, _CODES.translate
