"""The command group `hermes config`."""

from __future__ import annotations

import click

from hermes.cli.lazy import Lazy, LazyGroup, show_help_without_command

COMMANDS = {
    "get": Lazy("hermes.cli.config.get:get", "Print settings with their values."),
    "set": Lazy("hermes.cli.config.set_:set_", "Change one setting."),
    "unset": Lazy("hermes.cli.config.set_:unset", "Give one setting its default again."),
    "path": Lazy("hermes.cli.config.get:path", "Print where the settings are."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS, invoke_without_command=True)
@click.pass_context
def config(context: click.Context) -> None:
    """Show and change settings."""
    show_help_without_command(context)
