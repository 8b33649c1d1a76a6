"""`hermes sessiondb sql`: prints the SQL statements that create the tables."""

from __future__ import annotations

import click

from hermes.cli.display.terminal import write_stdout
from hermes.cli.sessiondb.schema_versions import MODULES, server_migrations
from hermes.cli.store import read_config
from hermes.errors import ConfigError

_EPOCHS = ("indexed_upto", "index_epoch")
_TRIGRAMS = """\
-- This index finds parts of words. If the extension is not available, leave both statements out.
CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA public;
CREATE INDEX IF NOT EXISTS idx_known_words_parts ON known_words USING gin (word public.gin_trgm_ops);"""
_FOR_MYSQL = """\
-- For the clients mysql and mariadb, which need a delimiter for statements that contain other statements.
DELIMITER ;;"""


@click.command()
@click.option("--provider", type=click.Choice(list(MODULES)), help="Database provider. Default: the configured one.")
def sql(provider: str | None) -> None:
    """Print the SQL statements that create the tables.

    The command does not connect to a database. A database administrator can run the statements for a user who may not
    create tables; Hermes then uses the tables as they are.
    """
    chosen = provider or read_config(as_json=False).sessiondb.provider
    if chosen not in MODULES:
        raise ConfigError(f"the provider {chosen} creates its own tables", hint=f"choose one of {', '.join(MODULES)}")
    write_stdout(schema_script(chosen).strip())


def schema_script(provider: str) -> str:
    """Return the statements that create a store."""
    if provider == "sqlite":
        from hermes.state.sqlite.schema.definitions import schema_sql

        return schema_sql()
    return _mysql_script() if provider == "mysql" else _postgresql_script()


def _postgresql_script() -> str:
    from hermes.state.postgres.schema import SCHEMA_VERSION
    from hermes.state.server.ledger import FORMAT

    parts = ["BEGIN;"]
    for each in server_migrations("postgresql"):
        values = f"'{each.name}', '{each.checksum}', extract(epoch FROM now())"
        parts += [each.script.strip(), f"INSERT INTO hermes_ledger (name, checksum, applied_at) VALUES ({values});"]
    notes = [*((key, 0) for key in _EPOCHS), ("min_reader", FORMAT), ("min_writer", FORMAT)]
    parts += [
        f"INSERT INTO schema_version (version) VALUES ({SCHEMA_VERSION});",
        "INSERT INTO state_meta (key, value) VALUES "
        + ", ".join(f"('{key}', '{value}')" for key, value in notes)
        + ";",
        "COMMIT;",
        _TRIGRAMS,
    ]
    return "\n\n".join(parts)


def _mysql_script() -> str:
    from hermes.state.mysql.connection.statements import COLLATION
    from hermes.state.mysql.schema import notes, statements

    parts = [_FOR_MYSQL]
    for each in server_migrations("mysql"):
        values = f"'{each.name}', '{each.checksum}', UNIX_TIMESTAMP(NOW(6))"
        parts += [f"{statement};;" for statement in (*statements(each.name, COLLATION), *notes())]
        parts.append(f"INSERT INTO hermes_ledger (name, checksum, applied_at) VALUES ({values});;")
    return "\n\n".join(parts)
