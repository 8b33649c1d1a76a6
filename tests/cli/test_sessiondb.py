"""`hermes sessiondb init`, `upgrade`, `status` and `sql`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import psycopg
import pytest

from hermes.state.postgres.schema import LEDGER as SERVER_LEDGER
from hermes.state.sqlite.schema.definitions import ledger
from hermes_state import SessionDB
from tests.cli.conftest import Hermes
from tests.support.plainsql import rows
from tests.support.schemas import empty_schema
from tests.upgrade import oldfiles
from tests.upgrade.build_files import NEWEST, build
from tests.upgrade.checks import backups, digest

ADDITIONS = ", ".join(ledger())
SECRET = "hunter2-and-more"


@pytest.fixture
def dsn(tmp_path: Path) -> Iterator[str]:
    """A DSN of a server without a store."""
    with empty_schema(tmp_path) as dsn:
        yield dsn


def configure(hermes: Hermes, dsn: str, provider: str = "postgresql") -> None:
    hermes.home.mkdir(mode=0o700, exist_ok=True)
    (hermes.home / "config.yaml").write_text(f"sessiondb:\n  provider: {provider}\n  dsn: {dsn}\n")
    (hermes.home / "config.yaml").chmod(0o600)


class TestInit:
    def test_init_creates_a_file(self, hermes: Hermes) -> None:
        done = hermes("sessiondb", "init")
        assert done.returncode == 0
        assert done.stdout == f"Created the tables in {hermes.database}: {ADDITIONS}.\n"
        with SessionDB(hermes.database, read_only=True) as store:
            assert store.session_count() == 0

    def test_second_init_changes_nothing(self, hermes: Hermes) -> None:
        hermes("sessiondb", "init")
        again = hermes.json("sessiondb", "init")
        assert again["schema"] == "hermes.tables/1"
        assert again["item"] == {
            "provider": "sqlite",
            "database": str(hermes.database),
            "created": False,
            "added": [],
        }

    def test_init_creates_tables_on_a_server(self, hermes: Hermes, dsn: str) -> None:
        configure(hermes, dsn)
        assert hermes.json("sessiondb", "init")["item"]["added"] == list(SERVER_LEDGER)
        assert hermes.json("sessiondb", "init")["item"]["added"] == []

    def test_init_reports_an_unreachable_server(self, hermes: Hermes, tmp_path: Path) -> None:
        configure(hermes, f"postgresql://u:{SECRET}@/db?host={tmp_path}")
        done = hermes("sessiondb", "init")
        assert done.returncode == 1
        assert done.stderr.startswith("Error: ")
        assert SECRET not in done.stderr + done.stdout

    def test_init_does_not_change_a_foreign_file(self, hermes: Hermes) -> None:
        hermes.home.mkdir(mode=0o700)
        oldfiles.real(22, hermes.database)
        before = digest(hermes.database)
        done = hermes("sessiondb", "init")
        assert done.returncode == 1
        assert "belongs to another program" in done.stderr
        assert digest(hermes.database) == before


class TestUpgrade:
    def test_upgrade_of_an_old_file_keeps_a_copy(self, hermes: Hermes) -> None:
        hermes.home.mkdir(mode=0o700)
        build(NEWEST, hermes.database)
        assert hermes.json("sessiondb", "status")["item"]["pending"] == list(ledger())
        done = hermes("sessiondb", "upgrade")
        assert done.stdout == f"Upgraded the schema in {hermes.database}: {ADDITIONS}.\n"
        assert len(backups(hermes.database)) == 1
        assert hermes.json("sessiondb", "status")["item"]["pending"] == []

    def test_upgrade_of_a_current_file_changes_nothing(self, hermes: Hermes) -> None:
        hermes("sessiondb", "init")
        done = hermes("sessiondb", "upgrade")
        assert (done.returncode, done.stdout) == (
            0,
            f"The schema of {hermes.database} is up to date.\n",
        )

    def test_upgrade_creates_no_store(self, hermes: Hermes) -> None:
        done = hermes("sessiondb", "upgrade")
        assert done.returncode == 1
        assert "there is no session database" in done.stderr
        assert not hermes.database.exists()


class TestStatus:
    def test_status_of_a_file(self, hermes: Hermes) -> None:
        hermes.store(("one", "cli", None, "hello"))
        lines = hermes("sessiondb", "status").stdout.splitlines()
        assert lines[:8] == [
            "Provider: sqlite",
            f"Database: {hermes.database}",
            "Schema version: 11",
            f"Applied: {ADDITIONS}",
            "Pending: none",
            "Sessions: 1",
            "Messages: 1",
            "Not indexed yet: 0",
        ]
        assert lines[8].startswith("Health: ok, responds in ")

    def test_status_without_a_store(self, hermes: Hermes) -> None:
        done = hermes("sessiondb", "status")
        assert done.returncode == 1
        assert done.stdout.splitlines()[0] == "Provider: sqlite"
        assert "there is no session database" in done.stdout
        assert not hermes.database.exists()

    def test_status_of_a_server_shows_no_password(self, hermes: Hermes, dsn: str) -> None:
        configure(hermes, f"{dsn}&password={SECRET}")
        hermes("sessiondb", "init")
        done = hermes("sessiondb", "status")
        assert done.returncode == 0, done.stdout
        assert "Server: PostgreSQL " in done.stdout
        assert f"Applied: {', '.join(SERVER_LEDGER)}\nPending: none\n" in done.stdout
        assert SECRET not in done.stdout + done.stderr

    def test_status_of_a_server_without_a_store(self, hermes: Hermes, dsn: str) -> None:
        configure(hermes, dsn)
        done = hermes("sessiondb", "status", "--json")
        assert done.returncode == 1
        assert '"code": "store_unavailable"' in done.stdout


class TestSql:
    @pytest.mark.parametrize("provider", ["sqlite", "postgresql", "mysql"])
    def test_sql_is_printed_without_a_connection(self, hermes: Hermes, provider: str) -> None:
        configure(hermes, "postgresql://user@127.0.0.1:1/nowhere")
        done = hermes("sessiondb", "sql", "--provider", provider)
        assert done.returncode == 0, done.stderr
        assert "hermes_ledger" in done.stdout
        assert "$" not in done.stdout or provider == "postgresql"
        assert not hermes.database.exists()

    def test_sql_is_for_the_configured_provider(self, hermes: Hermes) -> None:
        configure(hermes, "postgresql://user@127.0.0.1:1/nowhere")
        assert "tsvector" in hermes("sessiondb", "sql").stdout

    def test_sql_creates_a_complete_postgresql_store(self, hermes: Hermes, dsn: str) -> None:
        configure(hermes, dsn)
        script = hermes("sessiondb", "sql").stdout
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(script.encode())
            before = connection.execute("SELECT * FROM hermes_ledger").fetchall()
            notes = connection.execute("SELECT * FROM state_meta ORDER BY key").fetchall()
            assert hermes.json("sessiondb", "init")["item"]["added"] == []
            assert connection.execute("SELECT * FROM hermes_ledger").fetchall() == before
        assert dict(notes).keys() == {"indexed_upto", "index_epoch", "min_reader", "min_writer"}

    def test_sql_creates_a_complete_file(self, hermes: Hermes, tmp_path: Path) -> None:
        connection = apsw.Connection(str(tmp_path / "made.db"))
        connection.execute(hermes("sessiondb", "sql", "--provider", "sqlite").stdout).fetchall()
        connection.close()
        with SessionDB(tmp_path / "made.db") as store:
            store.create_session("s", "cli")
        assert rows(tmp_path / "made.db", "SELECT count(*) FROM hermes_ledger") == [(len(ledger()),)]
