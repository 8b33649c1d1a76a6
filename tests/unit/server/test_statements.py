"""Named parameters are found only where they are parameters."""

from __future__ import annotations

import pytest

from hermes.state.server.sql_parameters import parse


def test_names_come_in_the_order_of_their_places() -> None:
    statement = parse("SELECT * FROM t WHERE a = :one AND b IN (:two, :one)")
    assert statement.pieces == ("SELECT * FROM t WHERE a = ", " AND b IN (", ", ", ")")
    assert statement.names == ("one", "two", "one")


def test_a_statement_without_names_is_one_piece() -> None:
    assert parse("SELECT 1") == (("SELECT 1",), ())


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT ':no' FROM t",
        "SELECT 'it''s :no' FROM t",
        'SELECT ":no" FROM t',
        "SELECT 1 -- :no",
        "SELECT a::text FROM t",
        "SELECT a[1:2] FROM t",
        "SELECT ': :' FROM t",
    ],
)
def test_a_colon_that_is_no_parameter_stays(sql: str) -> None:
    assert parse(sql) == ((sql,), ())


def test_a_parameter_may_stand_right_after_a_text_or_a_cast() -> None:
    assert parse("SELECT ':a'||:b, c::text = :d").names == ("b", "d")
