"""`hermes sessions`: the commands that look at what is stored, and that keep it in order."""

from __future__ import annotations

import click

from hermes.cli.lazy import Lazy, LazyGroup, show_help_without_command

COMMANDS = {
    "delete": Lazy("hermes.cli.delete:delete", "Delete sessions with their messages, their index and their files."),
    "list": Lazy("hermes.cli.listing:list_", "List conversations, the most recently active first."),
    "optimize": Lazy(
        "hermes.cli.optimize:optimize", "Merge the search index, empty the log and give unused room back to the disk."
    ),
    "prune": Lazy("hermes.cli.prune:prune", "Delete ended sessions in which nothing was said for long."),
    "search": Lazy("hermes.cli.search:search", "Find messages by their words."),
    "stats": Lazy("hermes.cli.stats:stats", "Count sessions and messages, and measure the database."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS, invoke_without_command=True)
@click.pass_context
def sessions(context: click.Context) -> None:
    """Look at the sessions there are, and keep them in order."""
    show_help_without_command(context)
