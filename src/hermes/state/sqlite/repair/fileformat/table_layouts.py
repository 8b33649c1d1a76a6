"""The layouts of tables, from their CREATE statements; they also tell to which table unreachable rows belong."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import apsw

from hermes.state.sqlite.connection import connect
from hermes.state.sqlite.repair.fileformat.records import Value

OLD_ORDERS = {
    "sessions": """id source user_id model model_config system_prompt parent_session_id started_at ended_at end_reason
        message_count tool_call_count input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens
        billing_provider billing_base_url billing_mode estimated_cost_usd actual_cost_usd cost_status cost_source
        pricing_version title api_call_count handoff_state handoff_platform handoff_error""",
    "messages": """id session_id role content tool_call_id tool_calls tool_name timestamp token_count finish_reason
        reasoning reasoning_content reasoning_details codex_reasoning_items codex_message_items""",
}
"""The columns of tables that schema version 11 created; later ones were added after them."""

_AFFINITIES = {
    "integer": ("INT",),
    "text": ("CHAR", "CLOB", "TEXT"),
    "blob": ("BLOB",),
    "real": ("REAL", "FLOA", "DOUB"),
}
_NOT_STORED = 2
"""SQLite's number for a column that is computed whenever it is read."""

_KINDS: dict[str, tuple[type, ...]] = {
    "integer": (int,),
    "real": (int, float),
    "numeric": (int, float, str),
    "text": (str,),
    "blob": (int, float, str, bytes),
}


class ColumnLayout(NamedTuple):
    """A column of a table."""

    name: str
    affinity: str
    is_required: bool
    default: Value

    def fits(self, value: Value) -> bool:
        """Whether the column may hold a value."""
        return not self.is_required if value is None else isinstance(value, _KINDS[self.affinity])


@dataclass(frozen=True)
class TableLayout:
    """A table, with its columns in the order of its records."""

    name: str
    columns: tuple[ColumnLayout, ...]
    alias: int | None = None
    """The position of the column that is the key of the row; records leave it empty."""
    has_keys: bool = True
    """False for a table WITHOUT ROWID, which is an index."""

    @cached_property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]

    @cached_property
    def least(self) -> int:
        """The smallest number of values in a row."""
        return max((at for at, column in enumerate(self.columns, 1) if column.is_required), default=1)

    def fits(self, values: Sequence[Value]) -> bool:
        """Whether a record may be a row of this table; an older row may have fewer columns."""
        if not self.least <= len(values) <= len(self.columns):
            return False
        return all(
            value is None if at == self.alias else column.fits(value)
            for at, (column, value) in enumerate(zip(self.columns, values, strict=False))
        )

    def complete_row(self, key: int, values: Sequence[Value]) -> list[Value]:
        """The values of a row, with its key, and with the defaults of columns that were added later."""
        row = [*values[: len(self.columns)], *(column.default for column in self.columns[len(values) :])]
        if self.alias is not None:
            row[self.alias] = key
        return row

    def reorder(self, names: Sequence[str]) -> TableLayout:
        """The same table with its columns in another order; columns that are not in `names` come last."""
        by_name = {column.name: column for column in self.columns}
        first = [by_name[name] for name in names if name in by_name]
        columns = (*first, *(column for column in self.columns if column not in first))
        alias = None if self.alias is None else columns.index(self.columns[self.alias])
        return replace(self, columns=columns, alias=alias)


MAX_DEFINITION_BYTES = 10_000_000
"""Longer than any definition, and than any default value computed by one."""

_CREATE_ACTIONS = frozenset(
    (apsw.SQLITE_CREATE_TABLE, apsw.SQLITE_CREATE_INDEX, apsw.SQLITE_REINDEX, apsw.SQLITE_READ, apsw.SQLITE_FUNCTION)
)
_WRITE_ACTIONS = frozenset((apsw.SQLITE_INSERT, apsw.SQLITE_UPDATE, apsw.SQLITE_DELETE))

SEQUENCE = TableLayout(
    "sqlite_sequence", (ColumnLayout("name", "text", True, None), ColumnLayout("seq", "integer", True, None))
)
"""SQLite's table with the highest key that each table ever had; no statement creates it."""


class SchemaModel:
    """An empty database with the tables of another one, which describes them."""

    def __init__(self, schema: str = "") -> None:
        self._connection = connect(":memory:", apsw.SQLITE_OPEN_READWRITE)
        self._connection.limit(apsw.SQLITE_LIMIT_LENGTH, MAX_DEFINITION_BYTES)
        if schema:
            self._connection.execute(schema).fetchall()

    def add(self, sql: str) -> bool:
        """Run a CREATE statement; return False if SQLite does not understand it."""
        return run_create_statement(self._connection, sql)

    def statements(self) -> dict[str, str]:
        """The CREATE statements of the tables that hold rows of their own, by name."""
        rows = self._rows("SELECT name, sql FROM sqlite_schema WHERE type = 'table'")
        virtual = tuple(name for name, sql in rows if is_virtual(sql))
        return {name: sql for name, sql in rows if not name.startswith((*virtual, "sqlite_"))}

    def table(self, name: str) -> TableLayout | None:
        """The layout of a table; None if there is no table with this name."""
        columns, keys = {}, []
        for column, kind, is_required, default, key, hidden in self._rows(
            'SELECT name, type, "notnull", dflt_value, pk, hidden FROM pragma_table_xinfo(?)', name
        ):
            if hidden != _NOT_STORED:
                columns[column] = ColumnLayout(
                    column, _affinity(kind), bool(is_required or key), self._constant(default)
                )
            if key:
                keys.append(column)
        if not columns:
            return None
        primary = self._rows("SELECT name FROM pragma_index_list(?) WHERE origin = 'pk'", name)
        has_keys = not self._rows("SELECT 1 FROM pragma_table_list WHERE name = ? AND schema = 'main' AND wr", name)
        if not has_keys:
            order = self.index(primary[0][0])
            return TableLayout(name, tuple(columns[each] for each in order if each is not None), has_keys=False)
        is_alias = len(keys) == 1 and not primary and columns[keys[0]].affinity == "integer"
        return TableLayout(name, tuple(columns.values()), list(columns).index(keys[0]) if is_alias else None)

    def index(self, name: str) -> list[str | None]:
        """The columns in the entries of an index; None for the key of the row, or for an expression."""
        return [column for (column,) in self._rows("SELECT name FROM pragma_index_xinfo(?) ORDER BY seqno", name)]

    def _constant(self, default: str | None) -> Value:
        if default is None:
            return None
        with suppress(apsw.Error):
            found: Value = self._connection.execute(f"SELECT {default}").fetchall()[0][0]
            return found
        return None

    def _rows(self, sql: str, *values: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, values).fetchall()


def run_create_statement(connection: apsw.Connection, sql: str) -> bool:
    """Run a CREATE statement of a damaged file, and no other kind of statement; return False if it fails."""
    connection.limit(apsw.SQLITE_LIMIT_ATTACHED, 0)
    if not sql.upper().startswith("CREATE") or "\0" in sql:
        return False
    connection.authorizer = _authorize_create
    try:
        connection.execute(sql).fetchall()
    except apsw.Error:
        return False
    finally:
        connection.authorizer = None
    return True


def _authorize_create(action: int, table: str | None, *_: str | None) -> int:
    """Allow what creating a table or an index needs; not a table filled by a query, nor a second statement."""
    is_of_schema = action in _WRITE_ACTIONS and table is not None and table.startswith("sqlite_")
    return apsw.SQLITE_OK if is_of_schema or action in _CREATE_ACTIONS else apsw.SQLITE_DENY


def is_virtual(sql: str) -> bool:
    """Whether a CREATE statement creates a virtual table."""
    return sql.lstrip().upper().startswith("CREATE VIRTUAL")


def _affinity(declared: str) -> str:
    """The type affinity of a column, by SQLite's rules about the name of its type."""
    kind = declared.upper()
    for affinity, words in _AFFINITIES.items():
        if any(word in kind for word in words):
            return affinity
    return "numeric" if kind else "blob"
