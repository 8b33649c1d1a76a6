"""Texts in statements keep their meaning, whatever the server's quotes, backslashes and character sets mean."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from hermes.errors import InvalidValue
from hermes.state.mysql.connection.statements import LONG_BYTES, literal, render
from hermes.state.mysql.provider import MySQLSessionDBProvider
from tests.mysql.conftest import plain, rows_of
from tests.support.conversations import start
from tests.support.mysql import in_database
from tests.support.servers import Server, private_server, server_or_skip

HOSTILE = [
    "\\' OR 1=1; DROP TABLE messages; -- ",
    "\\",
    "it's",
    "''",
    '" OR ""="',
    "\xbf' OR 1=1 -- ",
    "\u8aa0\\' OR 1=1 -- ",
    "\u8868 \\",
    "世界\\",
    "a\x1a\x08\n",
    "`; SELECT 1",
    "x' OR 'a'='a",
    ":id /* */ %s",
    "plain words, 100 % (of them)",
    "",
]
MODES = ["", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES,ANSI_QUOTES"]
CHARSETS = ["utf8mb4", "latin1", "gbk", "sjis", "big5"]


@pytest.mark.parametrize("charset", CHARSETS)
@pytest.mark.parametrize("mode", MODES)
def test_literals_mean_the_same_with_any_sql_mode_and_charset(dsn: str, mode: str, charset: str) -> None:
    with plain(dsn) as connection:
        rows_of(connection, f"SET NAMES {charset}")
        rows_of(connection, f"SET SESSION sql_mode = '{mode}'")
        for text in [*HOSTILE, "世界\\' OR 1=1 -- " * LONG_BYTES]:
            statement = render("SELECT HEX(CONVERT(:text USING utf8mb4)), :id", {"text": text, "id": 1})
            assert rows_of(connection, statement) == [(text.encode().hex().upper(), 1)]


@pytest.fixture(scope="module", params=["gbk", "sjis"])
def odd_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server with unusual settings."""
    settings = {"sql-mode": "NO_BACKSLASH_ESCAPES,ANSI_QUOTES", "character-set-server": request.param}
    with ExitStack() as stack:
        server = server_or_skip(lambda: stack.enter_context(private_server("mysql", **settings)))
        with plain(server.dsn) as outside:
            rows_of(outside, "CREATE DATABASE hermes")
        yield server


def test_texts_are_stored_unchanged_on_an_unusual_server(odd_server: Server) -> None:
    with MySQLSessionDBProvider(in_database(odd_server.dsn, "hermes")) as store:
        start(store, *(f"s {text}" for text in HOSTILE))
        for text in HOSTILE:
            session_id = f"s {text}"
            store.append_message(session_id, "user", text, uid=f"u {text}", tool_name=text)
            store.set_session_title(session_id, f"title {HOSTILE.index(text)}")
            (row,) = store.get_messages(session_id)
            assert (row["content"], row["tool_name"], row["uid"]) == (text, text, f"u {text}")
        assert store.session_count() == len(HOSTILE)
        assert store.delete_session(f"s {HOSTILE[0]}")
        assert store.session_count() == len(HOSTILE) - 1


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_number_that_is_not_finite_is_refused(number: float) -> None:
    with pytest.raises(InvalidValue):
        literal(number)
