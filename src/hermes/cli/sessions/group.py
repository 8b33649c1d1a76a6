"""`hermes sessions`: the commands that look at what is stored, and that keep it in order."""

from __future__ import annotations

import click

from hermes.cli.lazy import Lazy, LazyGroup, show_help_without_command

COMMANDS = {
    "backup": Lazy(
        "hermes.cli.sessions.file.backup:backup", "Copy the database to a file of its own, while others use it."
    ),
    "browse": Lazy(
        "hermes.cli.browse.command:browse", "Find a conversation on a full screen, tidy up, and go on with one."
    ),
    "delete": Lazy(
        "hermes.cli.sessions.delete:delete", "Delete sessions with their messages, their index and their files."
    ),
    "export": Lazy(
        "hermes.cli.sessions.export:export",
        "Take sessions out, with all their messages: one JSON object on each line, or a document to read.",
    ),
    "import": Lazy(
        "hermes.cli.sessions.import_:import_",
        "Bring sessions in: exports, files of Claude Code and of the Codex CLI, and database files of any version.",
    ),
    "list": Lazy("hermes.cli.sessions.list_:list_", "List conversations, the most recently active first."),
    "optimize": Lazy(
        "hermes.cli.sessions.file.optimize:optimize",
        "Merge the search index, empty the log and give unused room back to the disk.",
    ),
    "prune": Lazy("hermes.cli.sessions.prune:prune", "Delete ended sessions in which nothing was said for long."),
    "repair": Lazy("hermes.cli.sessions.file.repair:repair", "Save what can be read of a damaged database."),
    "restore": Lazy("hermes.cli.sessions.file.restore:restore", "Go back to a backup, or list the backups there are."),
    "search": Lazy("hermes.cli.sessions.search:search", "Find messages by their words."),
    "stats": Lazy("hermes.cli.sessions.file.stats:stats", "Count sessions and messages, and measure the database."),
    "verify": Lazy("hermes.cli.sessions.file.verify:verify", "Check that the database, or a backup of it, is whole."),
    "archive": Lazy(
        "hermes.cli.sessions.archive_pin:archive",
        "Leave a session out of the list; it stays searchable and can be resumed.",
    ),
    "unarchive": Lazy("hermes.cli.sessions.archive_pin:unarchive", "Bring an archived session back into the list."),
    "pin": Lazy("hermes.cli.sessions.archive_pin:pin", "Keep a session from being pruned."),
    "unpin": Lazy("hermes.cli.sessions.archive_pin:unpin", "Let a pinned session be pruned again when it is old."),
    "rename": Lazy(
        "hermes.cli.sessions.rename:rename", "Give a session a title, or take its title away with an empty one."
    ),
    "show": Lazy("hermes.cli.sessions.show:show", "Show a session: what it is, and what was said."),
    "lineage": Lazy(
        "hermes.cli.sessions.lineage:lineage",
        "Show the family of a session: what it stems from, and what stems from it.",
    ),
    "tree": Lazy(
        "hermes.cli.sessions.tree:tree", "Show which sessions stem from which: branches, continuations, fresh starts."
    ),
}


@click.group(cls=LazyGroup, lazy=COMMANDS, invoke_without_command=True)
@click.pass_context
def sessions(context: click.Context) -> None:
    """Look at the sessions there are, and keep them in order."""
    show_help_without_command(context)
