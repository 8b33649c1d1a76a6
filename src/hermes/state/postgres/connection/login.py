"""Why a connection could not be opened, and what to do about it.

libpq keeps the server's code for such an error to itself. So this goes by words, and where a server speaks another
language the hint is a general one; what the server said is shown in any case.
"""

from __future__ import annotations

import re

MOST_REASONS = 5
"""A DSN may name more hosts than one wants to read about."""
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
    r"earlier timeline": "let an administrator find out which server leads, and what the other one lacks; restart the"
    " program to use the one that answers",
    r"starting up|shutting down|not yet accepting|in recovery mode": "wait until the server has started, and try again",
    r"session is read-only|not in hot standby": "wait until a server that can be written has taken over, and try again",
    r"failed to resolve|could not translate host": "check the host in sessiondb.dsn",
    r"Connection refused|No such file": "check that the server is up, and the host and port in sessiondb.dsn",
    r"invalid \w+ value|could not read|could not load": "correct that setting in sessiondb.dsn",
}
_BY_WORDS = [(re.compile(words), hint) for words, hint in _HINTS.items()]
_REFUSAL = re.compile("FATAL|ERROR|no password supplied")


def short_reason(text: str) -> str:
    """What a driver's error says, in one line: its first line, or one for each of several hosts."""
    first, _, more = text.strip().partition("\n")
    attempts = [line.partition("': ")[2] for line in more.splitlines() if line.startswith("- ")] if MANY in more else []
    said = [_without_preface(each) for each in attempts or [first]]
    return "; ".join(list(dict.fromkeys(said))[:MOST_REASONS])


def _without_preface(said: str) -> str:
    return said.removeprefix("connection failed: ").removeprefix("connection is bad: ")


def hint_for(reason: str) -> str:
    """What to do about it."""
    return next((hint for words, hint in _BY_WORDS if words.search(reason)), GENERAL)


def is_refusal(reason: str) -> bool:
    """Whether a server answered, and did not let us in."""
    return _REFUSAL.search(reason) is not None
