"""The files `migrations/NNNN_name.sql` of every engine, and the rules that a new one follows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hermes.state.sql.migration_files import Migration, checksum, read_migrations

STATE = Path(__file__).parents[2] / "src" / "hermes" / "state"
ENGINES = ("sqlite", "postgres", "mysql")

SHIPPED = {
    "sqlite": {
        "0001_store": ("d9dfaba7", "7e377328"),
        "0002_search": ("9c4b128e", "c408d00c"),
        "0003_insights": ("2cdd8e29", "55f7da56"),
        "0004_parts": ("3433750f", "00000000"),
        "0005_owners": ("d60c8ecc", "6d32b503"),
        "0006_replaced": ("935e72c1", "57b5078f"),
    },
    "postgres": {"0001_store": ("52b9ab48", "e66200df"), "0002_owners": ("4fc4759b", "8c251584")},
    "mysql": {"0001_store": ("bcb1ffb9", "a554705e"), "0002_owners": ("35a2b383", "c757f3ff")},
}
"""The checksum in the ledger and the checksum of the statements; a release adds the migrations that it brings."""

NAMED = {"sqlite": 6, "postgres": 2, "mysql": 2}
"""How many migrations name the checksum that stores have recorded; a new one does not."""


def migrations(engine: str) -> dict[str, Migration]:
    return read_migrations(STATE / engine / "migrations")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_shipped_migration_never_changes(engine: str) -> None:
    found = {name: (each.checksum, checksum(each.script)) for name, each in migrations(engine).items()}
    assert {name: found.get(name) for name in SHIPPED[engine]} == SHIPPED[engine], "add a new file instead"
    assert list(found)[: len(SHIPPED[engine])] == list(SHIPPED[engine])


@pytest.mark.parametrize("engine", ENGINES)
def test_names_are_numbered_without_a_gap(engine: str) -> None:
    files = sorted(path.name for path in (STATE / engine / "migrations").iterdir())
    assert all(re.fullmatch(r"\d{4}_[a-z][a-z_]*\.sql", name) for name in files), files
    assert [int(name[:4]) for name in files] == list(range(1, len(files) + 1))
    assert [name.removesuffix(".sql") for name in files] == list(migrations(engine))


@pytest.mark.parametrize("engine", ENGINES)
def test_the_first_line_says_what_a_migration_does(engine: str) -> None:
    for each in migrations(engine).values():
        assert re.match(r"-- [A-Z][^\n]{20,}\.\n", each.script), f"{each.name}: begin with a comment of one sentence"


@pytest.mark.parametrize("engine", ENGINES)
def test_only_the_migrations_of_old_stores_name_a_checksum(engine: str) -> None:
    for each in migrations(engine).values():
        assert ("Checksum in the ledger" in each.script) == (int(each.name[:4]) <= NAMED[engine]), each.name


def test_the_ledger_of_a_server_has_exactly_the_files() -> None:
    from hermes.state.mysql.schema import LEDGER as MYSQL
    from hermes.state.postgres.schema import LEDGER as POSTGRES

    for engine, ledger in (("postgres", POSTGRES), ("mysql", MYSQL)):
        assert list(ledger.items()) == [(name, each.checksum) for name, each in migrations(engine).items()]


class TestChecksum:
    def test_comment_lines_and_empty_lines_do_not_count(self) -> None:
        assert checksum("-- Create t.\n\nCREATE TABLE t (a TEXT);\n") == checksum("CREATE TABLE t (a TEXT);  \n")

    def test_checksum_changes_with_a_statement(self) -> None:
        assert checksum("CREATE TABLE t (a TEXT);\n") != checksum("CREATE TABLE t (b TEXT);\n")

    def test_a_new_file_has_the_checksum_of_its_statements(self, tmp_path: Path) -> None:
        script = "-- Create t.\nCREATE TABLE t (a TEXT);\n"
        (tmp_path / "0001_new.sql").write_text(script)
        assert read_migrations(tmp_path) == {"0001_new": Migration("0001_new", checksum(script), script)}

    def test_a_file_can_name_the_checksum_that_stores_have_recorded(self, tmp_path: Path) -> None:
        (tmp_path / "0001_old.sql").write_text(
            "-- Create t.\n-- Checksum in the ledger: 0123abcd\nCREATE TABLE t (a);\n"
        )
        assert read_migrations(tmp_path)["0001_old"].checksum == "0123abcd"
