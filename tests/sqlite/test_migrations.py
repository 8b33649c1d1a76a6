"""The schema of a SQLite store is the sum of its migrations, and any earlier store gets the rest of them."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from hermes.state.sql.migration_files import Migration, checksum, read_migrations
from hermes.state.sqlite.schema.definitions import ledger, normalize, schema_sql
from hermes_state import SessionDB
from tests.support.plainsql import rows
from tools.schema import MIGRATIONS, whole_schema

ALL = read_migrations(MIGRATIONS)


def shape(connection: apsw.Connection) -> dict[str, object]:
    """What a database defines: columns and references of each table, text of everything else."""
    found: dict[str, object] = {}
    definitions = connection.execute(
        "SELECT type, name, sql FROM sqlite_schema WHERE sql NOT NULL AND name NOT LIKE 'sqlite_%'"
    ).fetchall()
    for kind, name, sql in (map(str, row) for row in definitions):
        found[name] = normalize(sql)
        if kind == "table" and not sql.startswith("CREATE VIRTUAL"):
            columns = connection.execute(
                f"SELECT name, type, \"notnull\", dflt_value, pk FROM pragma_table_info('{name}')"
            )
            references = connection.execute(
                f'SELECT "table", "from", "to", on_delete FROM pragma_foreign_key_list({name!r})'
            )
            found[name] = (sorted(columns.fetchall()), sorted(references.fetchall()), "WITHOUT ROWID" in sql)
    return found


def shape_of_file(path: Path) -> dict[str, object]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return shape(connection)
    finally:
        connection.close()


def shape_of_script(*scripts: str) -> dict[str, object]:
    connection = apsw.Connection(":memory:")
    try:
        for script in scripts:
            connection.execute(script).fetchall()
        return shape(connection)
    finally:
        connection.close()


def store_of(path: Path, migrations: list[Migration]) -> None:
    """Create a store that has these migrations and one message, as an earlier version would."""
    connection = apsw.Connection(str(path))
    for each in migrations:
        connection.execute(each.script).fetchall()
        connection.execute("INSERT INTO hermes_ledger VALUES (?, ?, 1.0)", (each.name, each.checksum)).fetchall()
    connection.execute("INSERT INTO schema_version VALUES (11)").fetchall()
    connection.execute("INSERT INTO state_meta VALUES ('indexed_upto', '0'), ('min_reader', '1'), ('min_writer', '1')")
    connection.execute("INSERT INTO sessions (id, source, started_at, title) VALUES ('s', 'cli', 1.0, 'Garden')")
    connection.execute(
        "INSERT INTO messages (session_id, role, timestamp, content) VALUES ('s', 'user', 2.0, 'quince')"
    )
    connection.close()


class TestSum:
    def test_the_schema_file_is_the_sum_of_the_migrations(self) -> None:
        assert schema_sql() == whole_schema(ALL.values()), "run `make schema`"

    def test_the_schema_file_defines_what_the_migrations_define_one_after_another(self) -> None:
        assert shape_of_script(schema_sql()) == shape_of_script(*(each.script for each in ALL.values()))

    def test_a_fresh_store_has_the_schema_of_the_file(self, tmp_path: Path) -> None:
        SessionDB(tmp_path / "state.db").close()
        assert shape_of_file(tmp_path / "state.db") == shape_of_script(schema_sql())

    def test_the_ledger_has_exactly_the_files(self, tmp_path: Path) -> None:
        wanted = {name: each.checksum for name, each in ALL.items()}
        SessionDB(tmp_path / "state.db").close()
        assert dict(rows(tmp_path / "state.db", "SELECT name, checksum FROM hermes_ledger")) == wanted
        assert list(ledger().items()) == list(wanted.items())


@pytest.mark.parametrize("steps", range(1, len(ALL)))
def test_a_store_of_an_earlier_step_gets_the_remaining_migrations(tmp_path: Path, steps: int) -> None:
    path = tmp_path / "state.db"
    store_of(path, list(ALL.values())[:steps])
    with SessionDB(path) as db:
        assert [hit["session_id"] for hit in db.search_messages("quince")] == ["s"]
        session = db.get_session("s")
        assert session is not None
        assert (session["title"], session["message_count"], session["imported_from"]) == ("Garden", 1, None)
    assert dict(rows(path, "SELECT name, checksum FROM hermes_ledger")) == ledger()
    assert shape_of_file(path) == shape_of_script(schema_sql())
    assert list(tmp_path.glob("state.db.pre-*")) == []


@pytest.mark.parametrize("steps", range(1, len(ALL)))
def test_a_store_of_an_earlier_step_can_be_read_without_an_upgrade(tmp_path: Path, steps: int) -> None:
    path = tmp_path / "state.db"
    store_of(path, list(ALL.values())[:steps])
    with SessionDB(path, read_only=True) as db:
        session = db.get_session("s")
        assert session is not None
        assert session["imported_from"] is None
    assert len(rows(path, "SELECT name FROM hermes_ledger")) == steps


class TestNextMigration:
    """What `make schema` makes of a new file."""

    @staticmethod
    def with_next(*statements: str) -> str:
        script = "\n\n".join(("-- Add something.", *statements, ""))
        return whole_schema([*ALL.values(), Migration("9998_next", checksum(script), script)])

    def test_a_table_is_added(self) -> None:
        table = "CREATE TABLE IF NOT EXISTS extras (\n    key TEXT PRIMARY KEY\n);"
        whole = self.with_next(table, "CREATE INDEX IF NOT EXISTS idx_extras ON extras(key);")
        assert shape_of_script(whole).keys() - shape_of_script(schema_sql()).keys() == {"extras", "idx_extras"}
        assert "-- Ledger: 9998_next " in whole

    @pytest.mark.parametrize("table", ["sessions", "messages", "session_tools", "schema_version"])
    def test_a_column_is_added_behind_the_others(self, table: str) -> None:
        statement = f"ALTER TABLE {table} ADD COLUMN mood TEXT;  -- how it felt"
        assert shape_of_script(self.with_next(statement)) == shape_of_script(schema_sql(), statement)

    def test_a_dropped_index_is_gone(self) -> None:
        whole = self.with_next("DROP INDEX IF EXISTS idx_sessions_empty;")
        assert shape_of_script(schema_sql()).keys() - shape_of_script(whole).keys() == {"idx_sessions_empty"}

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE sessions SET pinned = 1;",
            "INSERT INTO state_meta VALUES ('a', 'b');",
            "ALTER TABLE sessions RENAME COLUMN title TO name;",
            "CREATE TABLE extras (key TEXT);",
        ],
    )
    def test_statements_that_an_upgrade_would_not_run_are_refused(self, statement: str) -> None:
        with pytest.raises(ValueError, match="9998_next: only CREATE"):
            self.with_next(statement)

    def test_a_definition_is_dropped_before_it_is_created_again(self) -> None:
        with pytest.raises(ValueError, match="idx_sessions_empty exists already"):
            self.with_next("CREATE INDEX IF NOT EXISTS idx_sessions_empty ON sessions(ended_at);")

    def test_a_statement_without_an_end_is_refused(self) -> None:
        with pytest.raises(ValueError, match="does not end"):
            self.with_next("DROP INDEX IF EXISTS idx_sessions_empty")
