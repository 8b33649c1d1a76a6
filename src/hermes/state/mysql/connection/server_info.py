"""The properties of a server, read before its tables are used."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil

from hermes.errors import StoreUnavailable

OLDEST_MARIADB, OLDEST_MYSQL = (10, 6), (8, 0, 23)
SMALLEST_PACKET = 4 * 1024 * 1024
"""The size that the index entry of the longest message needs."""
DEEPEST = 1_000_000
"""The longest chain of ancestors."""

# A value that would be cut or changed is an error; double quotes mark names, backslashes have no meaning.
MODE = ",".join(
    (
        *("STRICT_ALL_TABLES", "NO_ENGINE_SUBSTITUTION", "NO_AUTO_VALUE_ON_ZERO", "ERROR_FOR_DIVISION_BY_ZERO"),
        *("NO_ZERO_DATE", "NO_ZERO_IN_DATE", "ANSI_QUOTES", "PIPES_AS_CONCAT", "NO_BACKSLASH_ESCAPES"),
    )
)

_version = re.compile(r"(\d{1,5})\.(\d{1,5})\.(\d{1,5})")


@dataclass(frozen=True, slots=True)
class Server:
    """A server, according to its greeting."""

    is_mariadb: bool
    version: tuple[int, int, int]

    @classmethod
    def of(cls, greeting: str, where: str) -> Server:
        """Parse a version such as `8.0.36` or `5.5.5-10.11.6-MariaDB`; raise if the server is too old."""
        is_mariadb = "mariadb" in greeting.lower()
        # For old clients, MariaDB may put another version first.
        found = _version.search(greeting.removeprefix("5.5.5-"))
        version = (int(found[1]), int(found[2]), int(found[3])) if found else (0, 0, 0)
        server = cls(is_mariadb, version)
        if version < (OLDEST_MARIADB if is_mariadb else OLDEST_MYSQL):
            raise StoreUnavailable(
                f"{where} is on {server.name}", hint="MariaDB 10.6 or MySQL 8.0.23, or newer, is required"
            )
        return server

    @property
    def name(self) -> str:
        """Such as MariaDB 10.11.6."""
        return f"{'MariaDB' if self.is_mariadb else 'MySQL'} {'.'.join(map(str, self.version))}"

    @property
    def collation(self) -> str:
        """The collation by code points in which trailing spaces count; each server has its own name for it."""
        return "utf8mb4_nopad_bin" if self.is_mariadb else "utf8mb4_0900_bin"

    def setup_statements(self, lock_timeout_s: float) -> tuple[str, ...]:
        """The statements that prepare a connection."""
        # MySQL would return the sizes of tables as they were up to a day ago.
        own = (
            f"max_recursive_iterations = {DEEPEST}"
            if self.is_mariadb
            else f"cte_max_recursion_depth = {DEEPEST}, SESSION information_schema_stats_expiry = 0"
        )
        seconds = max(1, ceil(lock_timeout_s))
        return (
            f"""SET NAMES utf8mb4 COLLATE {self.collation}, SESSION sql_mode = '{MODE}', SESSION autocommit = 1,
                    SESSION {own}, SESSION innodb_lock_wait_timeout = {seconds},
                    SESSION lock_wait_timeout = {seconds}""",
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        )

    def with_time_limit(self, query: str, seconds: float) -> str:
        """Return a SELECT that the server cancels after this time."""
        if self.is_mariadb:
            return f"SET STATEMENT max_statement_time = {max(0.001, seconds):.3f} FOR {query}"
        milliseconds = max(1, round(seconds * 1000))
        return query.replace("SELECT", f"SELECT /*+ MAX_EXECUTION_TIME({milliseconds}) */", 1)
