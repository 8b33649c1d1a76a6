"""Users whom a server refuses get a hint."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pymysql  # type: ignore[import-untyped]
import pytest
from pymysql import _auth
from pymysql.constants import CLIENT  # type: ignore[import-untyped]

from hermes.config import SessionDBConfig
from hermes.errors import ConfigError, StoreUnavailable
from hermes.state.mysql import errors
from hermes.state.mysql.provider import MySQLSessionDBProvider
from hermes.state.server.faults import ServerError, Verdict
from tests.mysql.conftest import plain, rows_of
from tests.support.waiting import LIMIT_S

METHOD = b"caching_sha2_password"
CAPABILITIES = (
    CLIENT.PROTOCOL_41 | CLIENT.SECURE_CONNECTION | CLIENT.PLUGIN_AUTH | CLIENT.CONNECT_WITH_DB | CLIENT.TRANSACTIONS
)
GREETING = b"".join(
    (
        *(b"\x0a8.4.0\0", struct.pack("<I", 1), b"saltsalt\0"),
        *(struct.pack("<H", CAPABILITIES & 0xFFFF), b"\xff", struct.pack("<HH", 2, CAPABILITIES >> 16), b"\x15"),
        *(bytes(10), b"saltsaltsalt\0", METHOD, b"\0"),
    )
)
SEND_IT_ALL = b"\x01\x04"
"""The server does not remember the password, so it asks for it in encrypted form."""


@contextmanager
def demanding_server() -> Iterator[int]:
    """Run a server without TLS that asks for a password like MySQL after a restart; yield its port."""

    def serve() -> None:
        with listening.accept()[0] as line:
            line.settimeout(LIMIT_S)
            for number, expected in enumerate((GREETING, SEND_IT_ALL, b"\x01no key of ours")):
                line.sendall(struct.pack("<I", len(expected))[:3] + bytes([2 * number]) + expected)
                line.recv(65_536)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        yield listening.getsockname()[1]
        serving.join(timeout=LIMIT_S)


def test_error_for_a_missing_encryption_package_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_auth, "_have_cryptography", False)
    with demanding_server() as port, pytest.raises(ConfigError) as caught:
        MySQLSessionDBProvider(f"mysql://hermes:secret@127.0.0.1:{port}/hermes")
    assert "pip install 'hermes-sessions[mysql]'" in str(caught.value)
    assert "TLS" in caught.value.hint
    assert "secret" not in str(caught.value)


class TestUser:
    @pytest.fixture
    def guest(self, server: str, dsn: str) -> Iterator[str]:
        """The DSN of a user with all rights in the test's database."""
        with plain(server) as outside:
            rows_of(outside, "DROP USER IF EXISTS hermes_resident@localhost")
            rows_of(outside, "CREATE USER hermes_resident@localhost IDENTIFIED BY ''")
            database = dsn.partition("?")[0].rpartition("/")[2]
            rows_of(outside, f"GRANT ALL ON {database}.* TO hermes_resident@localhost")
            yield dsn.replace("root@", "hermes_resident@")
            rows_of(outside, "DROP USER hermes_resident@localhost")

    @pytest.mark.parametrize(("state", "advice"), [("ACCOUNT LOCK", "unlock"), ("PASSWORD EXPIRE", "has not expired")])
    def test_locked_or_expired_user_gets_a_hint(
        self, guest: str, connection: pymysql.Connection, state: str, advice: str
    ) -> None:
        MySQLSessionDBProvider(guest).close()
        rows_of(connection, f"ALTER USER hermes_resident@localhost {state}")
        with pytest.raises(StoreUnavailable, match="refused the connection") as caught:
            MySQLSessionDBProvider(guest)
        assert advice in caught.value.hint

    @pytest.mark.parametrize(
        ("change", "expected", "advice"),
        [
            (("hermes_resident@", "hermes_resident:wrong@"), "Access denied", "check the user and the password"),
            (("hermes_resident@", "ghost@"), "Access denied", "check the user and the password"),
            (("/test_", "/elsewhere_"), "elsewhere_", "check the name of the database"),
        ],
    )
    def test_refused_user_gets_the_reason_of_the_server_and_a_hint(
        self, guest: str, change: tuple[str, str], expected: str, advice: str
    ) -> None:
        with pytest.raises(StoreUnavailable, match="refused the connection") as caught:
            MySQLSessionDBProvider(guest.replace(*change))
        assert expected in caught.value.message
        assert advice in caught.value.hint

    def test_user_with_too_many_connections_gets_an_error(self, guest: str, connection: pymysql.Connection) -> None:
        rows_of(connection, "ALTER USER hermes_resident@localhost WITH MAX_USER_CONNECTIONS 1")
        with plain(guest), pytest.raises(StoreUnavailable, match="refused the connection") as caught:
            MySQLSessionDBProvider(guest)
        assert caught.value.hint


def test_unknown_host_has_another_hint_than_a_server_that_is_down() -> None:
    hints = []
    for place in ("no-such-host.invalid/hermes", "127.0.0.1:1/hermes", "localhost/hermes?unix_socket=/nowhere"):
        with pytest.raises(StoreUnavailable, match="cannot be reached") as caught:
            MySQLSessionDBProvider(f"mysql://hermes@{place}")
        hints.append(caught.value.hint)
    assert hints[0] == "check the host in sessiondb.dsn"
    assert "check that the server is up" in hints[1]
    assert hints[1] == hints[2]


def test_silent_server_is_given_up_after_the_connect_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        dsn = f"mysql://hermes@127.0.0.1:{silent.getsockname()[1]}/hermes"
        settings = SessionDBConfig(provider="mysql", connect_timeout_s=1)
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            MySQLSessionDBProvider(dsn, settings=settings)


def test_node_without_its_cluster_is_retried() -> None:
    fault = ServerError("1047", "WSREP has not yet prepared node for application use")
    translated = errors.translate(fault, "here")
    assert (type(translated), translated.retryable) == (StoreUnavailable, True)
    assert "another node" in translated.hint
    assert errors.verdict(fault) is Verdict.RETRY_SOON
