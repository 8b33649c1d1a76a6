"""Coming back to a session: which one is meant, and how it was."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.cli.chat.terminal.style import bold
from hermes.cli.display.terminal import printable, terminal_width
from hermes.errors import NotFound, UnknownSession
from hermes.phrases import counted
from hermes.state.sessions.imported import is_foreign
from hermes.state.sessions.lookup import Purpose, find_session

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes.agent.conversation import Conversation
    from hermes.cli.chat.models import Models
    from hermes.cli.chat.terminal.screen import Screen
    from hermes.config import DisplayConfig
    from hermes.state.provider import SessionDBProvider
    from hermes.state.rows import AnyRow

SOURCE = "cli"
PAGE = 50
"""So many sessions are looked at together for one that was not just imported."""


def is_session(name: str) -> bool:
    """Whether a session has this name, as far as `-c` and `-r` are concerned."""
    from hermes.cli.store import open_for_reading
    from hermes.config import load_config

    with open_for_reading(load_config()) as store:
        if store is None:
            return False
        try:
            find_session(store, name, Purpose.RESUME)
        except NotFound:
            return False
    return True


def latest_session(store: SessionDBProvider) -> str:
    """The session of the terminal in which something was said last; an imported one only if that was said here."""
    cursor: str | None = None
    while rows := store.list_sessions_rich(source=SOURCE, limit=PAGE, order_by_last_active=True, after=cursor):
        for row in rows:
            # Of a compressed conversation the list has columns of its first session too.
            newest = row if row["imported_from"] is None else store.get_session(row["id"])
            if newest is not None and not is_foreign(newest):
                return str(row["id"])
        cursor = rows[-1]["cursor"]
    raise UnknownSession(
        "there is no session of the terminal to continue",
        hint="start one with `hermes`, or name an imported one: hermes -c NAME",
    )


def restore_context(
    conversation: Conversation, asked_id: str, models: Models, screen: Screen, ask: Callable[[str], bool] | None
) -> None:
    """Make a resumed conversation what it was, as far as that is possible, and say so.

    `ask` puts a question to the person; None where there is nobody to ask.
    """
    row = conversation.agent.store.get_session(conversation.session_id)
    if row is None:
        raise UnknownSession(f"session {conversation.session_id!r} has just been deleted")
    history = conversation.history
    if asked_id != conversation.session_id:
        screen.print_dim(f"{asked_id} was compressed; it goes on in {conversation.session_id}")
    screen.print_lines([status_line(row, history)])
    if is_foreign(row):
        screen.print_dim(enter_imported_directory(row["cwd"], ask))
        conversation.cwd = current_directory()
    else:
        screen.print_dim(enter_directory(row["cwd"]))
    conversation.model, line = models.restore(row, conversation.model)
    screen.print_dim(line)


def show_recap(history: Sequence[AnyRow], display: DisplayConfig, screen: Screen) -> None:
    """Show what was said, or what may be done about what was not."""
    if display.resume_display == "full":
        from hermes.cli.chat.recap import build_recap, draw_panel

        screen.print_lines(draw_panel(build_recap(history, display), terminal_width()))
    if history and history[-1]["role"] == "user":
        screen.print_dim("The last message was not answered; /retry has it answered.")


def status_line(row: AnyRow, history: Sequence[AnyRow]) -> str:
    """The session that is gone on with: its id, its title, and how much was said."""
    title = f" {printable(quote_title(row['title']))}" if row["title"] else ""
    origin = f", imported from {printable(row['imported_from'])}" if row["imported_from"] else ""
    if not history:
        return f"↻ {bold(printable(row['id']))}{title} is there, but nothing was said in it yet{origin}"
    said = sum(each["role"] == "user" for each in history)
    counts = f"{counted(said, 'user message')}, {counted(len(history), 'total message')}"
    return f"↻ Resumed {bold(printable(row['id']))}{title} ({counts}){origin}"


def quote_title(title: str) -> str:
    """A title between quotes."""
    return f'"{title}"'


def enter_directory(path: str | None) -> str:
    """Go to the directory of a session; a line that says so, or why not."""
    if not path or path == current_directory():
        return ""
    try:
        os.chdir(path)
    except OSError as error:
        return f"Directory: {current_directory() or 'none'}; {path} of this session: {error.strerror}"
    return f"Directory: {path}"


def enter_imported_directory(path: str | None, ask: Callable[[str], bool] | None) -> str:
    """Go to the directory that a file names, if the person agrees; a line that says where the session is."""
    here = current_directory()
    if not path or path == here:
        return ""
    if ask is not None and ask(f"The imported session took place in {printable(path)}. Go there?"):
        return enter_directory(path)
    return f"Directory: {here or 'none'}; the imported session took place in {printable(path)}"


def current_directory() -> str | None:
    """Where this process is; None if somebody has deleted it."""
    try:
        return os.getcwd()
    except OSError:
        return None
