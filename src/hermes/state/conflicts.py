"""The phrases that databases share which know ON CONFLICT."""

from __future__ import annotations

from hermes.state.engine import Columns


class OnConflict:
    """How they insert a row whose key may be taken."""

    def insert_or_ignore(self, table: str, columns: Columns) -> str:
        """An INSERT of one row that does nothing when a unique key is taken."""
        return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({_slots(columns)}) ON CONFLICT DO NOTHING"

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
