"""Resuming a session: finding it and restoring its directory and model."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.agent.history.attachments import is_attached
from hermes.cli.display.terminal import printable, terminal_width
from hermes.errors import NotFound, UnknownSession
from hermes.phrases import plural
from hermes.state.sessions.imported import is_foreign
from hermes.state.sessions.lookup import Purpose, find_session

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes.agent.conversation import Conversation
    from hermes.agent.models.selection import Models
    from hermes.cli.chat.terminal.screen import Screen
    from hermes.config import DisplayConfig
    from hermes.state.provider import SessionDBProvider
    from hermes.state.rows import AnyRow

SOURCE = "cli"
PAGE = 50
"""The number of sessions per query in the search for one that was not only imported."""


def is_session(name: str) -> bool:
    """Whether `-c` and `-r` would find a session by this name."""
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
    """Return the most recently active terminal session; imported ones count only if they were continued here."""
    cursor: str | None = None
    while rows := store.list_sessions_rich(source=SOURCE, limit=PAGE, order_by_last_active=True, after=cursor):
        for row in rows:
            # The row of a compressed conversation also has columns of its first session.
            newest = row if row["imported_from"] is None else store.get_session(row["id"])
            if newest is not None and not is_foreign(newest):
                return str(row["id"])
        cursor = rows[-1]["cursor"]
    raise UnknownSession(
        "there is no terminal session to continue",
        hint="start one with `hermes`, or continue an imported one with `hermes -c NAME`",
    )


def restore_context(
    conversation: Conversation, asked_id: str, models: Models, screen: Screen, ask: Callable[[str], bool] | None
) -> None:
    """Restore the directory and the model of a resumed conversation, and show what changed.

    `ask` asks the user a yes-or-no question; None if there is no terminal.
    """
    row = conversation.agent.store.get_session(conversation.session_id)
    if row is None:
        raise UnknownSession(f"session {conversation.session_id!r} was just deleted")
    history = conversation.history
    if asked_id != conversation.session_id:
        screen.print_dim(f"{asked_id} was compressed and continues in {conversation.session_id}")
    screen.print_text(status_line(row, history), in_bold=printable(row["id"]))
    if is_foreign(row):
        screen.print_dim(enter_imported_directory(row["cwd"], ask))
        conversation.session.cwd = current_directory()
    else:
        screen.print_dim(enter_directory(row["cwd"]))
    from hermes.cli.chat.models import restored_model_line

    restored = models.restore(row, conversation.model)
    conversation.session.model = restored.model
    screen.print_dim(restored_model_line(restored))


def show_recap(history: Sequence[AnyRow], display: DisplayConfig, screen: Screen) -> None:
    """Show the recap, and a hint if the last message has no answer."""
    if display.resume_display == "full":
        from hermes.cli.chat.recap import build_recap, draw_panel

        screen.print_lines(draw_panel(build_recap(history, display), terminal_width()))
    last = next((each for each in reversed(history) if not is_attached(each)), None)
    if last is not None and last["role"] == "user":
        screen.print_dim("The last message has no answer. Type /retry to get one.")


def status_line(row: AnyRow, history: Sequence[AnyRow]) -> str:
    """Describe the resumed session: its id, its title and its message counts."""
    title = f" {printable(quote_title(row['title']))}" if row["title"] else ""
    origin = f", imported from {printable(row['imported_from'])}" if row["imported_from"] else ""
    if not history:
        return f"↻ Session {printable(row['id'])}{title} has no messages yet{origin}"
    user_messages = sum(each["role"] == "user" for each in history)
    counts = f"{plural(user_messages, 'user message')}, {plural(len(history), 'total message')}"
    return f"↻ Resumed {printable(row['id'])}{title} ({counts}){origin}"


def quote_title(title: str) -> str:
    """Put a title in quotes."""
    return f'"{title}"'


def enter_directory(path: str | None) -> str:
    """Change to the directory of a session and return a line about it."""
    if not path or path == current_directory():
        return ""
    try:
        os.chdir(path)
    except OSError as error:
        return f"Directory: {current_directory() or 'none'} (this session used {path}: {error.strerror})"
    return f"Directory: {path}"


def enter_imported_directory(path: str | None, ask: Callable[[str], bool] | None) -> str:
    """Ask whether to change to the directory of an imported session, and return a line about the directory."""
    here = current_directory()
    if not path or path == here:
        return ""
    if ask is not None and ask(f"This imported session used the directory {printable(path)}. Change to it?"):
        return enter_directory(path)
    return f"Directory: {here or 'none'} (this imported session used {printable(path)})"


def current_directory() -> str | None:
    """Return the working directory; None if it was deleted."""
    try:
        return os.getcwd()
    except OSError:
        return None
