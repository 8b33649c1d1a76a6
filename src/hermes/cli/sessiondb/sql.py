"""`hermes sessiondb sql`: the statements that make the tables, for whoever makes them by hand."""

from __future__ import annotations

import click

from hermes.cli.display.terminal import write_stdout
from hermes.cli.sessiondb.schema_versions import MODULES, migration_scripts
from hermes.cli.store import read_config
from hermes.errors import ConfigError

_EPOCHS = ("indexed_upto", "index_epoch")
_TRIGRAMS = """\
-- Parts of words are found through this index. Where the extension cannot be had, leave both statements out.
CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA public;
CREATE INDEX IF NOT EXISTS idx_known_words_parts ON known_words USING gin (word public.gin_trgm_ops);"""
_FOR_MYSQL = """\
-- For the clients mysql and mariadb, which need to be told where a statement with others in it ends.
DELIMITER ;;"""


@click.command()
@click.option("--provider", type=click.Choice(list(MODULES)), help="Whose; default: that of the configured database.")
def sql(provider: str | None) -> None:
    """Print the statements that make the tables; connects to nothing.

    With them a store is made by somebody who may make tables, for a user who may not. Hermes finds it complete.
    """
    chosen = provider or read_config(as_json=False).sessiondb.provider
    if chosen not in MODULES:
        raise ConfigError(f"the provider {chosen} makes its own tables", hint=f"name one of {', '.join(MODULES)}")
    write_stdout(schema_script(chosen).strip())


def schema_script(provider: str) -> str:
    """The statements that make a store."""
    if provider == "sqlite":
        from hermes.state.sqlite.schema.definitions import schema_sql

        return schema_sql()
    return _mysql_script() if provider == "mysql" else _postgresql_script()


def _postgresql_script() -> str:
    from hermes.state.postgres.schema import SCHEMA_VERSION
    from hermes.state.server.ledger import FORMAT

    parts = ["BEGIN;"]
    for name, checksum, script in migration_scripts("postgresql"):
        noted = f"'{name}', '{checksum}', extract(epoch FROM now())"
        parts += [script.strip(), f"INSERT INTO hermes_ledger (name, checksum, applied_at) VALUES ({noted});"]
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
    for name, checksum, _ in migration_scripts("mysql"):
        noted = f"'{name}', '{checksum}', UNIX_TIMESTAMP(NOW(6))"
        parts += [f"{each};;" for each in statements(name, COLLATION)]
        parts += [f"{each};;" for each in notes()]
        parts.append(f"INSERT INTO hermes_ledger (name, checksum, applied_at) VALUES ({noted});;")
    return "\n\n".join(parts)
