"""`hermes sessiondb init` and `upgrade`: the tables of a store made, and brought to the present."""

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
    """Make the tables of the configured database.

    Any number of processes may do that at once, and to do it again changes nothing. It is also done when a store is
    first opened for writing; this says what was done, and whether the server can be reached.
    """
    config = read_config(as_json=as_json)
    before = applied_migrations_or_none(config)
    _apply_migrations(config, before or [], is_new=before is None, as_json=as_json)


@click.command()
@AS_JSON
def upgrade(as_json: bool) -> None:
    """Bring the tables of the database to the present.

    Only what is missing is added, and nobody has to stop meanwhile. A file of an older version is copied first, as
    state.db.pre-VERSION-TIME beside it.
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
                f"{where} belongs to another program, and is only read",
                hint="`hermes sessions import` brings its sessions into a store of our own",
            )
    added = [name for name in after if name not in before]
    if as_json:
        item = {"provider": config.sessiondb.provider, "database": where, "created": is_new, "added": added}
        write_json({"schema": SCHEMA, "item": item})
        return
    write_stdout(printable(_format_result(where, added, is_new=is_new)))


def _format_result(where: str, added: list[str], *, is_new: bool) -> str:
    if not added:
        return f"The tables in {where} are up to date; nothing was changed."
    return f"{'Made the tables' if is_new else 'Added'} in {where}: {', '.join(added)}."
