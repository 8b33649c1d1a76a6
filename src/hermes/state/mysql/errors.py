"""Translation of the errors of MySQL and MariaDB to ours, by number, never by their English text."""

from __future__ import annotations

from hermes import errors
from hermes.state.server.codes import ErrorCodes
from hermes.state.server.faults import Verdict

OUT_OF_TIME = ("1969", "3024")
"""A query was cancelled because it took too long: MariaDB, MySQL."""
DAMAGED = ("126", "127", "145", "1034", "1194", "1195", "1712", "1877")
"""A damaged table or index."""
MISSING = ("1054", "1146", "1932")
"""A table or a column does not exist."""
GONE = ("1053", "1079", "1927", "3169", "4031")
"""The server ends a connection and reports it."""
TOO_LONG = "1406"
OUT_OF_RANGE = "1690"
PACKET = "1153"
NO_TRIGGERS = "1419"
EXPIRED = ("1820", "1862")
LOCKED = ("3118", "4151")
"""An account that an administrator has locked: MySQL, MariaDB."""
NO_SECRECY = "3159"
"""The server accepts only encrypted connections."""
OFFLINE = "3032"
COMMIT_FAILED = "1180"
"""A commit failed; if the cluster broke at that moment, the other nodes may have the transaction."""
NO_QUORUM = "1047"
"""A node of a cluster that has lost the others, or has not joined them yet."""
NOT_PARSED = "1064"
"""Text that cannot be parsed: not our statements, but the triggers of a table that a node opened at a bad moment."""

_RETRY_SOON = ("1020", "1205", "1213", "3572", NO_QUORUM)
_RETRY_NOW = ("1062", "1451", "1452", "1761")
_FULL = ("3", "28", "1021", "1114")
_DENIED = ("1142", "1143", "1227", "1290", "1370", "1410", "1792", "1836", NO_TRIGGERS)
_REFUSED = (
    *("1040", "1044", "1045", "1049", "1129", "1130", "1203", "1226", "1251", "1698"),
    *(*EXPIRED, *LOCKED, NO_SECRECY, OFFLINE),
)
_UNREACHABLE = ("1043", *_REFUSED, *GONE, NO_QUORUM, COMMIT_FAILED)
_INVALID = ("1264", "1292", "1301", "1366", "1367", OUT_OF_RANGE, TOO_LONG, PACKET)

_KINDS: dict[str, type[errors.HermesError]] = {
    **dict.fromkeys((*_RETRY_SOON, *OUT_OF_TIME, "1317"), errors.StoreBusy),
    **dict.fromkeys(_RETRY_NOW, errors.Conflict),
    **dict.fromkeys(_FULL, errors.StoreFull),
    **dict.fromkeys(_DENIED, errors.StoreReadOnly),
    **dict.fromkeys(_UNREACHABLE, errors.StoreUnavailable),
    **dict.fromkeys(_INVALID, errors.InvalidValue),
    **dict.fromkeys(DAMAGED, errors.StoreCorrupt),
}
_HINTS: dict[str, str] = {
    "1040": "lower sessiondb.pool_max_size, or raise max_connections of the server",
    "1203": "lower sessiondb.pool_max_size, or let this user have more connections",
    "1044": "check the name of the database in sessiondb.dsn; if it is right, let an administrator create it and grant"
    " this user the rights to it",
    "1045": "check the user and the password in sessiondb.dsn, and whether this user must use TLS",
    "1698": "check the user and the password in sessiondb.dsn",
    "1129": "let an administrator flush the list of blocked hosts (FLUSH HOSTS)",
    "1130": "let an administrator create this user for the host that you connect from",
    "1226": "wait, or let an administrator raise what this user may use",
    "1251": "let an administrator give this user a password of another kind",
    NO_QUORUM: "the node is not part of the cluster now; try again, or name another node in sessiondb.dsn",
    "1049": "create the database, or name another one in sessiondb.dsn",
    NOT_PARSED: "if this is a node of a Galera cluster, let an administrator run FLUSH TABLES on it, and try again",
    "1290": "this server is read-only; set sessiondb.dsn to the primary",
    "1836": "this server is read-only; set sessiondb.dsn to the primary",
    **dict.fromkeys(EXPIRED, "let an administrator give this user a password that has not expired"),
    **dict.fromkeys(LOCKED, "let an administrator unlock this user"),
    NO_SECRECY: "remove ssl_disabled from sessiondb.dsn: the server requires TLS",
    OFFLINE: "wait until an administrator has let users in again",
    NO_TRIGGERS: "set log_bin_trust_function_creators to 1 on the server while the tables are created,"
    " or let an administrator run what this prints: hermes sessiondb sql",
    TOO_LONG: "names of sessions, sources, owners and titles may have at most 700 characters",
    PACKET: "make it shorter, or raise max_allowed_packet of the server",
    **dict.fromkeys(_FULL, "nothing was written; free some space on the server's disk and try again"),
    **dict.fromkeys(DAMAGED, "look into the server's log, and restore a backup"),
    **dict.fromkeys(MISSING, "the tables are not as expected; check whether another program has changed them"),
}
_VERDICTS = {**dict.fromkeys(_RETRY_SOON, Verdict.RETRY_SOON), **dict.fromkeys(_RETRY_NOW, Verdict.RETRY_NOW)}

_CODES = ErrorCodes("the server", _VERDICTS, _KINDS, _HINTS, refused=_REFUSED)
verdict, translate = _CODES.verdict, _CODES.translate
