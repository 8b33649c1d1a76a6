"""The SQL that SQLite and PostgreSQL share: both have ON CONFLICT and choose the right index without a hint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hermes.state.engine import Columns


class CommonDialect:
    """SQL to insert a row whose key may exist, and to find the rows of a session."""

    def insert_or_ignore(self, table: str, columns: Columns) -> str:
        """Return an INSERT of one row that does nothing if a unique key exists."""
        return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({_slots(columns)}) ON CONFLICT DO NOTHING"

    def by_key(self, table: str, alias: str = "") -> str:
        """Return a table reference for a query by session id."""
        return f"{table} {alias}"

    def from_where_in(self, table: str, column: str, parameters: Iterable[str]) -> str:
        """Return `FROM table WHERE column IN (...)`."""
        return f"FROM {table} WHERE {column} IN ({_slots(parameters)})"

    def is_among(self, column: str, numbers: Sequence[int]) -> tuple[str, Mapping[str, Any]]:
        """Return a condition that an integer column has one of some numbers, and its values."""
        return is_listed(column, numbers)

    def delete_where_in(self, table: str, column: str, parameters: Iterable[str]) -> str:
        """Return a DELETE of the same rows."""
        return f"DELETE {self.from_where_in(table, column, parameters)}"

    def upsert(self, table: str, key: Columns, columns: Columns, add: Columns = ()) -> str:
        """Return an INSERT of one row that overwrites (for `add`: increases) the other columns if the key exists."""
        changes = [f"{column} = excluded.{column}" for column in columns]
        changes += [f"{column} = {table}.{column} + excluded.{column}" for column in add]
        every = [*key, *columns, *add]
        return (
            f"INSERT INTO {table} ({', '.join(every)}) VALUES ({_slots(every)}) "
            f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {', '.join(changes)}"
        )


def is_listed(column: str, numbers: Sequence[int]) -> tuple[str, Mapping[str, Any]]:
    """Return a condition with a parameter for each number, and its values."""
    values = {f"number{i}": number for i, number in enumerate(numbers)}
    return f"{column} IN ({_slots(values) or 'NULL'})", values


def _slots(columns: Iterable[str]) -> str:
    return ", ".join(f":{column}" for column in columns)
