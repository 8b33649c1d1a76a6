"""`hermes sessions`: the commands that read and manage sessions."""

from __future__ import annotations

import click

from hermes.cli.lazy import Lazy, LazyGroup, show_help_without_command

COMMANDS = {
    "backup": Lazy("hermes.cli.sessions.file.backup:backup", "Back up the database while other programs use it."),
    "browse": Lazy("hermes.cli.browse.command:browse", "Find, manage and resume conversations in a full-screen list."),
    "delete": Lazy("hermes.cli.sessions.delete:delete", "Delete sessions with their messages and files."),
    "export": Lazy("hermes.cli.sessions.export:export", "Export sessions as JSON lines, Markdown or HTML."),
    "import": Lazy(
        "hermes.cli.sessions.import_:import_",
        "Import sessions from exports, database files, Claude Code and the Codex CLI.",
    ),
    "list": Lazy("hermes.cli.sessions.list_:list_", "List conversations, the most recently active first."),
    "optimize": Lazy("hermes.cli.sessions.file.optimize:optimize", "Merge the search index and shrink the database."),
    "prune": Lazy("hermes.cli.sessions.prune:prune", "Delete old, ended sessions."),
    "repair": Lazy("hermes.cli.sessions.file.repair:repair", "Repair a damaged database."),
    "restore": Lazy("hermes.cli.sessions.file.restore:restore", "Restore a backup, or list the backups."),
    "search": Lazy("hermes.cli.sessions.search:search", "Search the messages of all sessions."),
    "stats": Lazy("hermes.cli.sessions.file.stats:stats", "Show counts of sessions and messages, and the size."),
    "verify": Lazy("hermes.cli.sessions.file.verify:verify", "Check the database or a backup for damage."),
    "archive": Lazy(
        "hermes.cli.sessions.archive_pin:archive",
        "Hide a session from the list; it stays searchable and resumable.",
    ),
    "unarchive": Lazy("hermes.cli.sessions.archive_pin:unarchive", "Show an archived session in the list again."),
    "pin": Lazy("hermes.cli.sessions.archive_pin:pin", "Protect a session from pruning."),
    "unpin": Lazy("hermes.cli.sessions.archive_pin:unpin", "Allow pruning of a pinned session again."),
    "rename": Lazy("hermes.cli.sessions.rename:rename", "Set or remove the title of a session."),
    "show": Lazy("hermes.cli.sessions.show:show", "Show a session and its messages."),
    "lineage": Lazy("hermes.cli.sessions.lineage:lineage", "Show the ancestors and descendants of a session."),
    "tree": Lazy("hermes.cli.sessions.tree:tree", "Show how sessions relate: branches, continuations, resets."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS, invoke_without_command=True)
@click.pass_context
def sessions(context: click.Context) -> None:
    """List, search and manage sessions."""
    show_help_without_command(context)
