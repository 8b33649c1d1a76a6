"""The command group `hermes skills`."""

from __future__ import annotations

import click

from hermes.cli.lazy import Lazy, LazyGroup, show_help_without_command

COMMANDS = {
    "list": Lazy("hermes.cli.skills.list_:list_", "List the skills, and why some are hidden."),
    "show": Lazy("hermes.cli.skills.show:show", "Show a skill: its conditions, variables, files and text."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS, invoke_without_command=True)
@click.pass_context
def skills(context: click.Context) -> None:
    """List and show the skills of the agent."""
    show_help_without_command(context)
