"""Why a connection could not be opened, and what to do about it.

libpq does not pass on the server's code of such an error. So the hint depends on the words of the error, and is a
general one if the server uses another language; the server's own text is always shown.
"""

from __future__ import annotations

import re

MOST_REASONS = 5
"""A DSN may have more hosts than a person wants to read about."""
MANY = "Multiple connection attempts failed"

TOO_MANY = "lower sessiondb.pool_max_size, or raise max_connections of the server or the limit of this user"
SERVE_MORE = "use pool_mode = transaction in the pooler, raise its pool size, or lower sessiondb.pool_max_size"
NO_FREE_SERVER = f"no server connection was free behind the pooler: {SERVE_MORE}"
GENERAL = "check sessiondb.dsn, and that the server is up and can be reached from here"

NO_TRUST = (
    "a server on another machine must show a certificate that names its host; name the authority that signed it with"
    " sslrootcert in sessiondb.dsn, or turn the check off with sslmode=require, and encryption with sslmode=disable"
)
_USER = "check the user and the password in sessiondb.dsn"
_HINTS = {
    r"query_wait_timeout|client_login_timeout": NO_FREE_SERVER,
    r"no such (database|user)": "check the database and the user in sessiondb.dsn, and the settings of the pooler",
    r'database ".{0,200}" does not exist': "create the database, or name another one in sessiondb.dsn",
    r"no pg_hba\.conf entry|pg_hba\.conf rejects": "let an administrator allow this user, database, host and kind of"
    " encryption in pg_hba.conf",
    r"authentication failed|no password supplied|role .{0,200} (does not exist|is not permitted)|SASL": _USER,
    r"too many (clients|connections)|connection slots|no more connections": TOO_MANY,
    r"certificate|does not support SSL|SSL error|root certificate": NO_TRUST,
    r"earlier timeline": "let an administrator find out which server is the primary, and what the other one"
    " lacks; restart the program to use the one that responds",
    r"starting up|shutting down|not yet accepting|in recovery mode": "wait until the server has started, and try again",
    r"session is read-only|not in hot standby": "wait until a server that can be written has taken over, and try again",
    r"failed to resolve|could not translate host": "check the host in sessiondb.dsn",
    r"Connection refused|No such file": "check that the server is up, and the host and port in sessiondb.dsn",
    r"invalid \w+ value|could not read|could not load": "correct that setting in sessiondb.dsn",
}
_BY_WORDS = [(re.compile(words), hint) for words, hint in _HINTS.items()]
_REFUSAL = re.compile("FATAL|ERROR|no password supplied")


def short_reason(text: str) -> str:
    """The reason in a driver's error, on one line: its first line, or one for each of several hosts."""
    first, _, more = text.strip().partition("\n")
    attempts = [line.partition("': ")[2] for line in more.splitlines() if line.startswith("- ")] if MANY in more else []
    reasons = [_without_preface(each) for each in attempts or [first]]
    return "; ".join(list(dict.fromkeys(reasons))[:MOST_REASONS])


def _without_preface(reason: str) -> str:
    return reason.removeprefix("connection failed: ").removeprefix("connection is bad: ")


def hint_for(reason: str) -> str:
    """The hint for a reason."""
    return next((hint for words, hint in _BY_WORDS if words.search(reason)), GENERAL)


def is_refusal(reason: str) -> bool:
    """Whether a server responded and refused the connection."""
    return _REFUSAL.search(reason) is not None
