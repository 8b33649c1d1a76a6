"""`hermes sessiondb init` and `upgrade`: create the tables and upgrade the schema."""

from __future__ import annotations

import click

from hermes.cli.display.terminal import printable, write_json, write_stdout
from hermes.cli.options import AS_JSON
from hermes.cli.sessiondb.schema_versions import applied_migrations, applied_migrations_or_none
from hermes.cli.store import read_config
from hermes.config import Config
from hermes.errors import StoreReadOnly
from hermes.state.provider import open_session_db
from hermes.state.transfer.store_address import display_address

SCHEMA = "hermes.tables/1"


@click.command()
@AS_JSON
def init(as_json: bool) -> None:
    """Create the tables of the configured database.

    This is optional: opening a database for writing also creates them. The command reports what it did and whether the
    server is reachable. It is safe to repeat, and to run in several processes at once.
    """
    config = read_config(as_json=as_json)
    before = applied_migrations_or_none(config)
    _apply_migrations(config, before or [], is_new=before is None, as_json=as_json)


@click.command()
@AS_JSON
def upgrade(as_json: bool) -> None:
    """Upgrade the schema of the database.

    Other programs can keep running: the upgrade only adds what is missing. A SQLite file of an older version is first
    copied to state.db.pre-VERSION-TIME in the same directory.
    """
    config = read_config(as_json=as_json)
    with open_session_db(config, read_only=True) as store:
        before = applied_migrations(store)
    _apply_migrations(config, before, is_new=False, as_json=as_json)


def _apply_migrations(config: Config, before: list[str], *, is_new: bool, as_json: bool) -> None:
    with open_session_db(config) as store:
        where, after = display_address(store), applied_migrations(store)
        if store.read_only:
            raise StoreReadOnly(
                f"{where} belongs to another program and is read-only",
                hint="import its sessions with `hermes sessions import`",
            )
    added = [name for name in after if name not in before]
    if as_json:
        item = {"provider": config.sessiondb.provider, "database": where, "created": is_new, "added": added}
        write_json({"schema": SCHEMA, "item": item})
        return
    write_stdout(printable(_format_result(where, added, is_new=is_new)))


def _format_result(where: str, added: list[str], *, is_new: bool) -> str:
    if not added:
        return f"The schema of {where} is up to date."
    return f"{'Created the tables' if is_new else 'Upgraded the schema'} in {where}: {', '.join(added)}."
