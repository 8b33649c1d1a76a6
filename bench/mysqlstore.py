"""MySQL or MariaDB in the workloads: the session store on it, and PyMySQL without a session store around it.

A job's path stands for a database on the server whose DSN is in the environment.
"""

from __future__ import annotations

import os
from binascii import crc32
from pathlib import Path
from typing import Any

import pymysql  # type: ignore[import-untyped]

from bench.corpus import Message
from bench.floor import values_of
from bench.ours import OurStore
from bench.store import Store
from hermes.state.mysql.connection.address import Address
from hermes.state.mysql.engine import MySQLEngine
from hermes.state.mysql.provider import MySQLSessionDBProvider
from tests.support.mysql import in_database

SERVER, DATABASE = "BENCH_MYSQL", "BENCH_MYSQL_DATABASE"
"""The variables with the DSN of the server, and with the one database that all jobs share, if there is one."""

_TABLE = """
CREATE TABLE IF NOT EXISTS messages (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    session_id VARCHAR(700) NOT NULL,
    role LONGTEXT NOT NULL,
    content LONGTEXT,
    tool_call_id LONGTEXT,
    tool_calls LONGTEXT,
    tool_name LONGTEXT,
    timestamp DOUBLE NOT NULL,
    token_count BIGINT,
    finish_reason LONGTEXT
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4
"""
_INSERT = """
INSERT INTO messages (session_id, role, content, tool_call_id, tool_calls, tool_name, timestamp, token_count,
                      finish_reason)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)
"""


def database(path: Path) -> str:
    """The DSN of the database of a job's path, which is created if necessary."""
    server, name = os.environ[SERVER], os.environ.get(DATABASE, f"bench_{crc32(str(path).encode()):08x}")
    connection = connect(server)
    connection.cursor().execute(f"CREATE DATABASE IF NOT EXISTS {name}")
    connection.close()
    return in_database(server, name)


def connect(dsn: str) -> Any:
    """Connect with the driver alone."""
    address = Address.of(dsn)
    return pymysql.connect(
        unix_socket=address.unix_socket, user=address.user, database=address.database, charset="utf8mb4"
    )


class MySQLStore(OurStore):
    """Our store; messages that are not indexed when it is closed are left to the next process."""

    def __init__(self, path: Path) -> None:
        Store.__init__(self, path)
        self._db = MySQLSessionDBProvider(database(path))

    def unindexed(self) -> int:
        """The number of unindexed messages, according to the store."""
        waiting: int = self._db.health()["waiting_for_index"]
        return waiting

    def settle(self) -> None:
        """Index all waiting messages."""
        self._engine().catch_up()

    def close(self) -> None:
        """Close the connections only; closing the store would index the waiting messages."""
        self._engine().backend.close()

    def _engine(self) -> MySQLEngine:
        engine = self._db._engine
        assert isinstance(engine, MySQLEngine)
        return engine


class IndexedMySQLStore(MySQLStore):
    """The same, until every message is indexed."""

    def close(self) -> None:
        """Index all waiting messages, then close the connections."""
        while self.unindexed():
            self._engine().catch_up()
        self._db.close()


class PymysqlStore(Store):
    """One table without any index except its key, one insert and one commit for each message."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._connection = connect(database(path))
        self._connection.cursor().execute(_TABLE)

    def create_session(self, session_id: str, source: str, user_id: str | None = None) -> None:
        """Do nothing: the floor has no sessions."""

    def append(self, session_id: str, message: Message) -> None:
        """Insert the row in its own transaction."""
        with self._connection.cursor() as cursor:
            cursor.execute(_INSERT, values_of(session_id, message))
        self._connection.commit()

    def count(self, session_id: str) -> int:
        """How many rows the session has."""
        with self._connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM messages WHERE session_id = %s", [session_id])
            row = cursor.fetchone()
        return 0 if row is None else int(row[0])

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
