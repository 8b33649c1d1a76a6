"""The command group `hermes sessiondb`."""

from __future__ import annotations

import click

from hermes.cli.lazy import Lazy, LazyGroup, show_help_without_command

COMMANDS = {
    "init": Lazy("hermes.cli.sessiondb.init_upgrade:init", "Create the tables of the configured database."),
    "upgrade": Lazy("hermes.cli.sessiondb.init_upgrade:upgrade", "Upgrade the schema of the database."),
    "status": Lazy("hermes.cli.sessiondb.status:status", "Show the database and its state."),
    "sql": Lazy("hermes.cli.sessiondb.sql:sql", "Print the SQL statements that create the tables."),
    "migrate": Lazy("hermes.cli.sessiondb.migrate:migrate", "Copy all sessions to another database."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS, invoke_without_command=True)
@click.pass_context
def sessiondb(context: click.Context) -> None:
    """Manage the database that stores the sessions."""
    show_help_without_command(context)
