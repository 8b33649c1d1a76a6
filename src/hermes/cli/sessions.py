"""`hermes sessions`: the commands that look at what is stored, and that keep it in order."""

from __future__ import annotations

import click

from hermes.cli.lazy import Lazy, LazyGroup, show_help_without_command

COMMANDS = {
    "list": Lazy("hermes.cli.listing:list_", "List conversations, the most recently active first."),
    "search": Lazy("hermes.cli.search:search", "Find messages by their words."),
    "stats": Lazy("hermes.cli.stats:stats", "Count sessions and messages, and measure the database."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS, invoke_without_command=True)
@click.pass_context
def sessions(context: click.Context) -> None:
    """List the sessions there are, count them, and search them."""
    show_help_without_command(context)
