"""The phrases that SQLite and PostgreSQL share, which both know ON CONFLICT and take the right index by themselves."""

from __future__ import annotations

from hermes.state.engine import Columns


class CommonDialect:
    """How they insert a row whose key may be taken, and find the rows of a session."""

    def insert_or_ignore(self, table: str, columns: Columns) -> str:
        """An INSERT of one row that does nothing when a unique key is taken."""
        return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({_slots(columns)}) ON CONFLICT DO NOTHING"

    def by_key(self, table: str, alias: str = "") -> str:
        """A table in a query that names sessions."""
        return f"{table} {alias}"

    def delete_by_key(self, table: str) -> str:
        """What a DELETE of the rows of some sessions begins with."""
        return f"DELETE FROM {table}"

    def upsert(self, table: str, key: Columns, columns: Columns, add: Columns = ()) -> str:
        """An INSERT of one row that overwrites (or, for `add`, increases) the other columns when the key is taken."""
        changes = [f"{column} = excluded.{column}" for column in columns]
        changes += [f"{column} = {table}.{column} + excluded.{column}" for column in add]
        every = [*key, *columns, *add]
        return (
            f"INSERT INTO {table} ({', '.join(every)}) VALUES ({_slots(every)}) "
            f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {', '.join(changes)}"
        )


def _slots(columns: Columns) -> str:
    return ", ".join(f":{column}" for column in columns)
