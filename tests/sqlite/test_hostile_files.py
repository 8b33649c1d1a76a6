"""Files with foreign definitions in their schema: those never run, and are reported."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from hermes.state.sqlite.backup.backup import back_up
from hermes.state.sqlite.backup.restore import restore
from hermes.state.sqlite.checks.checkup import examine
from hermes.state.sqlite.checks.verify import DefectKind, Depth, verify
from hermes.state.sqlite.connection import View, connect
from hermes.state.sqlite.repair.repair import FileCondition, repair
from hermes.state.sqlite.schema.definitions import find_foreign, our_definitions, read_definitions, schema_sql
from hermes_state import SessionDB, StoreCorrupt, StoreTooNew
from tests.support.plainsql import change, plain, rows

TAKEN = "CREATE TABLE taken (content TEXT)"
TRIGGERS = {
    "copies what is stored": (
        "CREATE TRIGGER thief AFTER INSERT ON messages BEGIN INSERT INTO taken VALUES (new.content); END"
    ),
    "deletes what is stored": (
        "CREATE TRIGGER thief AFTER INSERT ON messages BEGIN DELETE FROM messages WHERE id = new.id; END"
    ),
    "keeps from storing": (
        "CREATE TRIGGER thief BEFORE INSERT ON messages BEGIN SELECT RAISE(ABORT, 'not today'); END"
    ),
    "copies ids of changed sessions": (
        "CREATE TRIGGER thief AFTER UPDATE ON sessions BEGIN INSERT INTO taken VALUES (new.id); END"
    ),
    "fires when foreign rows are adopted": (
        "CREATE TRIGGER thief AFTER UPDATE OF uid ON messages BEGIN INSERT INTO taken VALUES (new.content); END"
    ),
}
"""Foreign triggers, by what they do."""

RULES = {
    "check": ("messages", "role                  TEXT NOT NULL", "role TEXT NOT NULL CHECK (role <> 'user')"),
    "default": ("messages", "reasoning             TEXT", "reasoning TEXT DEFAULT (hex(randomblob(9)))"),
    "replacing": ("messages", "role                  TEXT NOT NULL", "role TEXT NOT NULL ON CONFLICT REPLACE"),
    "deletion": (
        "sessions",
        "FOREIGN KEY (parent_session_id) REFERENCES sessions(id)",
        "FOREIGN KEY (parent_session_id) REFERENCES sessions(id) ON DELETE CASCADE",
    ),
    "reference": ("messages", "finish_reason         TEXT", "finish_reason TEXT REFERENCES rewinds(id)"),
    "collation": ("messages", "tool_name             TEXT", "tool_name TEXT COLLATE NOCASE"),
}
"""Rules for a table: its name, the text in its definition, and the text that replaces it."""

NO_LEDGER_OF_OURS = "INSERT INTO hermes_ledger VALUES ('9999_tomorrow', 'sum', 1.0)"
PLAIN_MESSAGE = "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s', 'user', 'plain', 5.0)"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with one session of one message."""
    path = tmp_path / "state.db"
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        db.append_message("s", "user", "walrus")
    return path


def plant(path: Path, *statements: str) -> None:
    """Change a file so that its schema cookie still looks unchanged."""
    change(path, *statements)
    (cookie,) = rows(path, "PRAGMA schema_version")[0]
    change(path, f"UPDATE state_meta SET value = '{cookie}' WHERE key = 'schema_cookie'")


def redefine(path: Path, table: str, old: str, new: str) -> None:
    """Change the definition of a table behind SQLite's back, like an attacker."""
    with plain(path) as connection:
        connection.execute("PRAGMA writable_schema = ON").fetchall()
        connection.execute(
            "UPDATE sqlite_schema SET sql = replace(sql, ?, ?) WHERE name = ? AND type = 'table'", (old, new, table)
        ).fetchall()
        assert connection.changes() == 1
        (cookie,) = connection.execute("PRAGMA schema_version").fetchall()[0]
        connection.execute(f"PRAGMA schema_version = {int(str(cookie)) + 1}").fetchall()
    plant(path)


def names(path: Path) -> set[str]:
    """The names that a file defines."""
    return {name for (name,) in rows(path, "SELECT name FROM sqlite_schema")}


def contents(path: Path) -> list[object]:
    """The contents of the session's messages."""
    with SessionDB(path) as db:
        return [message["content"] for message in db.get_messages("s")]


def status_of(path: Path, check: str) -> str:
    """The status of one of doctor's checks."""
    return next(str(each.status) for each in examine(path, backups=path.parent, now=0.0) if each.name == check)


class TestDefinitions:
    """Our definitions are recognized by their text."""

    def test_known_definitions_are_those_of_a_new_file(self, path: Path) -> None:
        found = rows(path, "SELECT name, sql FROM sqlite_schema WHERE sql NOT NULL AND name <> 'sqlite_sequence'")
        assert dict(found) == our_definitions()

    def test_new_file_has_nothing_foreign(self) -> None:
        connection = connect(":memory:", apsw.SQLITE_OPEN_READWRITE)
        connection.execute(schema_sql()).fetchall()
        found = find_foreign(read_definitions(View(connection)))
        connection.close()
        assert (found.removable, found.rules, found.unsafe, found.has_lost_index) == ((), (), (), False)


class TestTriggers:
    """A foreign trigger never fires."""

    @pytest.mark.parametrize("trigger", TRIGGERS.values(), ids=TRIGGERS)
    def test_opening_and_writing_does_not_fire_a_foreign_trigger(self, path: Path, trigger: str) -> None:
        change(path, PLAIN_MESSAGE)
        plant(path, TAKEN, trigger)
        with SessionDB(path) as db:
            db.append_message("s", "user", "narwhal")
            db.update_token_counts("s", input_tokens=1)
        assert contents(path) == ["walrus", "plain", "narwhal"]
        assert rows(path, "SELECT * FROM taken") == []
        assert "thief" not in names(path)

    def test_upgrade_of_an_old_file_does_not_fire_a_foreign_trigger(self, path: Path) -> None:
        plant(
            path,
            TAKEN,
            TRIGGERS["copies what is stored"],
            TRIGGERS["copies ids of changed sessions"].replace("thief", "spy"),
        )
        change(path, "DROP TABLE hermes_ledger")
        assert contents(path) == ["walrus"]
        assert rows(path, "SELECT * FROM taken") == []

    def test_trigger_under_the_name_of_ours_is_replaced(self, path: Path) -> None:
        plant(
            path,
            TAKEN,
            "DROP TRIGGER messages_fts_update",
            """CREATE TRIGGER messages_fts_update AFTER UPDATE ON messages BEGIN
                   INSERT INTO taken VALUES (new.content); END""",
        )
        with SessionDB(path) as db:
            db.append_message("s", "user", "narwhal")
        assert rows(path, "SELECT sql FROM sqlite_schema WHERE name = 'messages_fts_update'") == [
            (our_definitions()["messages_fts_update"],)
        ]

    def test_trigger_disguised_as_a_table_is_refused(self, path: Path) -> None:
        trigger = TRIGGERS["copies what is stored"]
        with plain(path) as connection:
            connection.execute(TAKEN).fetchall()
            connection.execute("PRAGMA writable_schema = ON").fetchall()
            connection.execute(
                "INSERT INTO sqlite_schema VALUES ('table', 'harmless', 'harmless', 0, ?)", (trigger,)
            ).fetchall()
        for read_only in (False, True):
            with pytest.raises(StoreCorrupt):
                SessionDB(path, read_only=read_only)
        assert verify(path).has(DefectKind.DAMAGE)

    def test_claim_of_a_newer_version_does_not_fire_a_foreign_trigger(self, path: Path) -> None:
        plant(path, TAKEN, TRIGGERS["copies what is stored"], NO_LEDGER_OF_OURS)
        with pytest.raises(StoreTooNew, match="thief"):
            SessionDB(path)
        assert verify(path).has(DefectKind.FOREIGN)
        assert status_of(path, "schema") == "error"

    def test_doctor_and_verify_name_a_foreign_trigger_and_keep_it(self, path: Path) -> None:
        plant(path, TAKEN, TRIGGERS["copies what is stored"])
        (found,) = verify(path).defects
        assert (found.kind, found.code) == (DefectKind.DRIFT, "foreign_schema")
        assert "the trigger thief" in found.message
        assert status_of(path, "schema") == "warning"
        assert "thief" in names(path)

    def test_restored_backup_has_no_foreign_trigger(self, path: Path, tmp_path: Path) -> None:
        plant(path, TAKEN, TRIGGERS["copies what is stored"], "CREATE VIEW shown AS SELECT 1")
        backup = tmp_path / "backup.db"
        back_up(path, backup)
        restore(path, verify(backup, Depth.DAMAGE, is_backup=True))
        assert {"thief", "shown"} & names(path) == set()
        assert contents(path) == ["walrus"]

    def test_repaired_file_has_no_foreign_trigger(self, path: Path) -> None:
        plant(path, TAKEN, *TRIGGERS["copies what is stored"].splitlines())
        outcome = repair(path)
        assert (outcome.condition, outcome.damage) == (FileCondition.REPAIRED, ("schema",))
        assert "thief" not in names(path)
        assert contents(path) == ["walrus"]


class TestViews:
    """A foreign view is never used."""

    def test_view_is_removed_when_the_file_is_opened_for_writing(self, path: Path) -> None:
        plant(path, "CREATE VIEW shown AS SELECT content FROM messages")
        assert contents(path) == ["walrus"]
        assert "shown" not in names(path)

    @pytest.mark.parametrize("table", ["rewinds", "stale_index", "usage_events", "hermes_ledger"])
    def test_view_instead_of_a_table_is_refused(self, path: Path, table: str) -> None:
        plant(path, f"DROP TABLE {table}", f"CREATE VIEW {table} AS SELECT 1 AS session_id, 2 AS message_id, 3 AS name")
        for read_only in (False, True):
            with pytest.raises(StoreCorrupt, match="view"):
                SessionDB(path, read_only=read_only)
        assert status_of(path, "schema") == "error"

    def test_file_that_is_only_read_can_have_views(self, path: Path) -> None:
        plant(path, "CREATE VIEW shown AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i FROM n")
        with SessionDB(path, read_only=True) as db:
            assert [message["content"] for message in db.get_messages("s")] == ["walrus"]


class TestIndexes:
    """A foreign index can refuse rows, so only harmless ones stay."""

    @pytest.mark.parametrize(
        "index",
        [
            "CREATE UNIQUE INDEX trap ON messages(role)",
            "CREATE INDEX trap ON messages(json_extract(content, '$'))",
            "CREATE INDEX trap ON messages(role) WHERE json_extract(content, '$') IS NULL",
        ],
    )
    def test_index_that_could_refuse_a_row_is_removed(self, path: Path, index: str) -> None:
        change(path, "UPDATE messages SET content = '1'")
        plant(path, index)
        with SessionDB(path) as db:
            db.append_message("s", "user", "narwhal")
        assert contents(path) == ["1", "narwhal"]
        assert "trap" not in names(path)

    def test_plain_index_of_another_program_stays(self, path: Path) -> None:
        plant(path, "CREATE INDEX helpful ON messages(session_id, active, timestamp DESC)")
        assert contents(path) == ["walrus"]
        assert "helpful" in names(path)


class TestRules:
    """A table with foreign rules is not written to, and a repair copies its rows into a table without them."""

    @pytest.mark.parametrize("rule", RULES)
    def test_rule_is_refused_and_repaired(self, path: Path, rule: str) -> None:
        redefine(path, *RULES[rule])
        with pytest.raises(StoreCorrupt, match="another program has changed its tables"):
            SessionDB(path)
        assert status_of(path, "schema") == "error"
        assert [each.code for each in verify(path).defects if each.kind is DefectKind.DAMAGE] == ["altered"]
        assert repair(path).condition is FileCondition.REPAIRED
        assert contents(path) == ["walrus"]

    def test_backup_with_a_rule_is_not_restored(self, path: Path, tmp_path: Path) -> None:
        backup = tmp_path / "backup.db"
        back_up(path, backup)
        (tmp_path / "backup.db.sha256").unlink()
        redefine(backup, *RULES["check"])
        with pytest.raises(StoreCorrupt, match="was not restored"):
            restore(path, verify(backup, Depth.DAMAGE, is_backup=True))

    @pytest.mark.parametrize("text", ['"x"CHECK(1)', "'x'/**/CHECK(1)", "[x]check(1)", "`x` /* */ Check (1)"])
    def test_rule_hidden_behind_quotes_or_comments_is_found(self, path: Path, text: str) -> None:
        change(path, f"ALTER TABLE messages ADD COLUMN {text}")
        with pytest.raises(StoreCorrupt):
            SessionDB(path)

    def test_words_of_rules_in_quotes_and_comments_are_no_rules(self, path: Path) -> None:
        change(path, "ALTER TABLE messages ADD COLUMN \"check\" TEXT DEFAULT 'AS' /* CHECK (0) */")
        assert contents(path) == ["walrus"]

    def test_computed_column_is_not_even_read(self, path: Path) -> None:
        change(path, "ALTER TABLE messages ADD COLUMN large AS (hex(zeroblob(400000000)))")
        for read_only in (False, True):
            with pytest.raises(StoreCorrupt, match="is defined with AS"):
                SessionDB(path, read_only=read_only)

    def test_virtual_table_instead_of_a_table_is_refused(self, path: Path) -> None:
        plant(
            path,
            "DROP TABLE rewinds",
            "CREATE VIRTUAL TABLE rewinds USING fts5(session_id, action, target_message_id, message_count, at)",
        )
        for read_only in (False, True):
            with pytest.raises(StoreCorrupt, match="is a virtual table"):
                SessionDB(path, read_only=read_only)

    def test_tables_of_another_program_stay(self, path: Path) -> None:
        plant(path, TAKEN, "CREATE VIRTUAL TABLE notes USING fts5(body)", "INSERT INTO notes VALUES ('kept')")
        assert contents(path) == ["walrus"]
        assert rows(path, "SELECT body FROM notes") == [("kept",)]

    def test_search_index_with_a_rule_is_rebuilt(self, path: Path) -> None:
        redefine(path, "messages_fts_docsize", "sz BLOB", "sz BLOB CHECK (length(sz) < 0)")
        with SessionDB(path) as db:
            db.append_message("s", "user", "narwhal")
        with SessionDB(path) as db:
            assert len(db.search_messages("narwhal")) == 1
        assert verify(path).defects == ()


class TestRepair:
    """A repair runs nothing in a damaged file's definition except the creation of a table."""

    @pytest.mark.parametrize(
        "text",
        [
            "CREATE TABLE extra AS SELECT content FROM messages",
            "CREATE TABLE extra (x); DELETE FROM messages",
            "CREATE TABLE extra (x); DROP TABLE sessions",
        ],
    )
    def test_definition_that_does_more_is_left_out(self, path: Path, text: str) -> None:
        change(path, "CREATE TABLE extra (x)")
        with plain(path) as connection:
            connection.execute("PRAGMA writable_schema = ON").fetchall()
            connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = 'extra'", (text,)).fetchall()
            connection.execute("DELETE FROM messages_fts_docsize").fetchall()
        repair(path)
        assert contents(path) == ["walrus"]
