"""The layout of rows, from the CREATE statement of their table."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.state.sqlite.repair.fileformat.records import Value
from hermes.state.sqlite.repair.fileformat.table_layouts import OLD_ORDERS, SchemaModel, TableLayout
from hermes.state.sqlite.schema.definitions import schema_sql
from tests.support.plainsql import rows
from tests.upgrade.oldfiles import real


def table(sql: str, name: str = "t") -> TableLayout:
    model = SchemaModel()
    assert model.add(sql)
    found = model.table(name)
    assert found is not None
    return found


class TestModel:
    def test_schema_model_knows_columns_defaults_and_what_may_not_be_empty(self) -> None:
        found = table("CREATE TABLE t (a TEXT NOT NULL, b INTEGER DEFAULT 7, c REAL, d BLOB, e)")
        assert [(each.name, each.affinity, each.is_required, each.default) for each in found.columns] == [
            ("a", "text", True, None),
            ("b", "integer", False, 7),
            ("c", "real", False, None),
            ("d", "blob", False, None),
            ("e", "blob", False, None),
        ]

    @pytest.mark.parametrize(
        ("columns", "alias"),
        [
            ("a TEXT, id INTEGER PRIMARY KEY", 1),
            ("id INTEGER PRIMARY KEY AUTOINCREMENT", 0),
            ("id INT PRIMARY KEY", None),
            ("id TEXT PRIMARY KEY", None),
            ("a INTEGER, b INTEGER, PRIMARY KEY (a, b)", None),
        ],
    )
    def test_schema_model_knows_which_column_is_the_key_of_the_row(self, columns: str, alias: int | None) -> None:
        assert table(f"CREATE TABLE t ({columns})").alias == alias

    def test_schema_model_knows_the_order_in_which_a_table_without_row_ids_is_stored(self) -> None:
        found = table("CREATE TABLE t (a, b TEXT, c INTEGER, PRIMARY KEY (c, b)) WITHOUT ROWID")
        assert (found.names, found.has_keys) == (["c", "b", "a"], False)

    def test_schema_model_leaves_out_columns_that_are_not_stored(self) -> None:
        assert table("CREATE TABLE t (a, b AS (a + 1), c AS (a + 2) STORED)").names == ["a", "c"]

    def test_schema_model_knows_the_entries_of_an_index(self) -> None:
        model = SchemaModel("CREATE TABLE t (a, b, c UNIQUE); CREATE INDEX i ON t (b, a)")
        assert model.index("i") == ["b", "a", None]
        assert model.index("sqlite_autoindex_t_1") == ["c", None]

    @pytest.mark.parametrize(
        "sql",
        ["", "CREATE TABEL t (a)", "nonsense", "CREATE TABLE t (a\0)", "ATTACH 'stolen.db' AS x", "CREATE TABLE t (a"],
    )
    def test_schema_model_does_not_execute_sql_of_a_damaged_file(
        self, sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        model = SchemaModel()
        model.add(sql)
        assert model.table("t") is None
        assert list(tmp_path.iterdir()) == []

    def test_schema_model_names_the_tables_that_hold_rows(self) -> None:
        found = SchemaModel(schema_sql()).statements()
        assert {"sessions", "messages", "state_meta", "usage_events"} <= found.keys()
        assert not [name for name in found if "fts" in name or name.startswith("sqlite_")]


class TestTable:
    own = table("CREATE TABLE t (id INTEGER PRIMARY KEY, who TEXT NOT NULL, at REAL, n INTEGER DEFAULT 3, said TEXT)")

    @pytest.mark.parametrize(
        ("values", "is_so"),
        [
            ([None, "me", 1.5, 2, "x"], True),
            ([None, "me", 1, None, None], True),
            ([None, "me"], True),
            ([None, None, 1.5, 2, "x"], False),
            ([7, "me", 1.5, 2, "x"], False),
            ([None, "me", "noon", 2, "x"], False),
            ([None, "me", 1.5, 2, b"x"], False),
            ([None, "me", 1.5, 2, "x", "y"], False),
            ([None], False),
        ],
    )
    def test_table_recognizes_its_own_rows(self, values: list[Value], is_so: bool) -> None:
        assert self.own.fits(values) is is_so

    def test_table_completes_a_row_that_is_older_than_some_columns(self) -> None:
        assert self.own.complete_row(9, [None, "me"]) == [9, "me", None, 3, None]

    def test_table_can_have_its_columns_in_another_order(self) -> None:
        other = self.own.reorder(["said", "id"])
        assert (other.names, other.alias) == (["said", "id", "who", "at", "n"], 1)


@pytest.mark.parametrize("name", OLD_ORDERS)
def test_the_old_order_is_that_of_a_real_old_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    real(11, path)
    assert OLD_ORDERS[name].split() == [row[1] for row in rows(path, f"PRAGMA table_info({name})")]
