"""The phrases that SQLite and PostgreSQL share, which both know ON CONFLICT and take the right index by themselves."""

from __future__ import annotations

from collections.abc import Iterable

from hermes.state.engine import Columns


class CommonDialect:
    """How they insert a row whose key may be taken, and find the rows of a session."""

    def insert_or_ignore(self, table: str, columns: Columns) -> str:
        """An INSERT of one row that does nothing when a unique key is taken."""
        return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({_slots(columns)}) ON CONFLICT DO NOTHING"

    def by_key(self, table: str, alias: str = "") -> str:
        """A table in a query that names a session."""
        return f"{table} {alias}"

    def from_where_in(self, table: str, column: str, parameters: Iterable[str]) -> str:
        """The end of a query for the rows of which a column is one of some parameters."""
        return f"FROM {table} WHERE {column} IN ({_slots(parameters)})"

    def delete_where_in(self, table: str, column: str, parameters: Iterable[str]) -> str:
        """A DELETE of the same rows."""
        return f"DELETE {self.from_where_in(table, column, parameters)}"

    def upsert(self, table: str, key: Columns, columns: Columns, add: Columns = ()) -> str:
        """An INSERT of one row that overwrites (or, for `add`, increases) the other columns when the key is taken."""
        changes = [f"{column} = excluded.{column}" for column in columns]
        changes += [f"{column} = {table}.{column} + excluded.{column}" for column in add]
        every = [*key, *columns, *add]
        return (
            f"INSERT INTO {table} ({', '.join(every)}) VALUES ({_slots(every)}) "
            f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {', '.join(changes)}"
        )


def _slots(columns: Iterable[str]) -> str:
    return ", ".join(f":{column}" for column in columns)
