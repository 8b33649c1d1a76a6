"""`hermes sessiondb`: its tables, its state, and the way from one to another."""

from __future__ import annotations

import click

from hermes.cli.lazy import Lazy, LazyGroup, show_help_without_command

COMMANDS = {
    "init": Lazy("hermes.cli.sessiondb.init_upgrade:init", "Make the tables of the configured database."),
    "upgrade": Lazy("hermes.cli.sessiondb.init_upgrade:upgrade", "Bring the tables of the database to the present."),
    "status": Lazy("hermes.cli.sessiondb.status:status", "Show which database it is, and how it is."),
    "sql": Lazy("hermes.cli.sessiondb.sql:sql", "Print the statements that make the tables; connects to nothing."),
    "migrate": Lazy("hermes.cli.sessiondb.migrate:migrate", "Carry all sessions from one database to another."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS, invoke_without_command=True)
@click.pass_context
def sessiondb(context: click.Context) -> None:
    """Look after the database behind the sessions, and change to another."""
    show_help_without_command(context)
