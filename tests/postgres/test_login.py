"""A user whom the server refuses gets the server's reason and a hint."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack

import psycopg
import pytest

from hermes.errors import StoreUnavailable
from hermes.state.postgres.connection import login
from hermes.state.postgres.provider import PostgreSQLSessionDBProvider
from tests.support.servers import private_server, server_or_skip

SETUP = (
    "CREATE ROLE hermes LOGIN PASSWORD 'secret'",
    "CREATE ROLE few LOGIN PASSWORD 'secret' CONNECTION LIMIT 0",
    "CREATE DATABASE hermes OWNER hermes",
)
RULES = "local all all trust\nhost all hermes,few,ghost 127.0.0.0/8 scram-sha-256\n"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a server that asks for passwords: one of this machine that no other server uses."""
    own = f"127.{'.'.join(str(1 + secrets.randbelow(253)) for _ in range(3))}"
    with ExitStack() as stack:
        running = private_server("postgresql", listen_addresses=own)
        server = server_or_skip(lambda: stack.enter_context(running))
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            for statement in SETUP:
                connection.execute(statement.encode())
            (server.place / "data" / "pg_hba.conf").write_text(RULES)
            connection.execute("SELECT pg_reload_conf()")
        yield own


def refusal(dsn: str) -> StoreUnavailable:
    """The error for a server that cannot be used."""
    with pytest.raises(StoreUnavailable) as caught:
        PostgreSQLSessionDBProvider(dsn)
    return caught.value


@pytest.mark.parametrize(
    ("user", "database", "expected", "advice"),
    [
        ("hermes:wrong", "hermes", "password authentication failed", "check the user and the password"),
        ("hermes", "hermes", "no password supplied", "check the user and the password"),
        ("ghost:secret", "hermes", "password authentication failed", "check the user and the password"),
        ("hermes:secret", "elsewhere", 'database "elsewhere" does not exist', "create the database"),
        ("stranger:secret", "hermes", "no pg_hba.conf entry", "let an administrator allow this user"),
        ("few:secret", "hermes", "too many connections", "pool_max_size"),
    ],
)
def test_refused_login_has_the_reason_of_the_server_and_a_hint(
    address: str, user: str, database: str, expected: str, advice: str
) -> None:
    caught = refusal(f"postgresql://{user}@{address}/{database}")
    assert "refused the connection" in caught.message
    assert expected in caught.message
    assert advice in caught.hint
    assert "server is up" not in caught.hint


def test_unknown_host_has_another_hint_than_a_server_that_is_down() -> None:
    assert refusal("postgresql://hermes@no-such-host.invalid/hermes").hint == "check the host in sessiondb.dsn"
    assert "check that the server is up" in refusal("postgresql://hermes@127.0.0.1:1/hermes").hint


def test_hint_comes_from_the_host_that_refused(address: str) -> None:
    caught = refusal(f"postgresql://hermes:wrong@{address}:5432,127.0.0.1:1/hermes")
    assert "password authentication failed" in caught.message
    assert "Connection refused" in caught.message
    assert "check the user and the password" in caught.hint


def test_error_in_another_language_has_a_general_hint() -> None:
    expected = "FATAL:  Passwort-Authentifizierung für Benutzer »hermes« fehlgeschlagen"
    assert login.is_refusal(expected)
    assert login.hint_for(expected) == login.GENERAL
