"""Slash commands that switch, name, branch, search and save sessions."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.cli.chat.chat_loop import Chat
from hermes.cli.chat.exit_summary import resume_commands
from hermes.cli.chat.resume import quote_title
from hermes.cli.display.search_hits import format_hits
from hermes.cli.display.table import Column, format_table
from hermes.cli.display.terminal import printable, terminal_width
from hermes.cli.display.times import ago
from hermes.cli.sessions.list_ import HIDDEN_SOURCES, UNTITLED
from hermes.errors import HermesError, InvalidTitle, InvalidValue, TitleTaken
from hermes.home import ensure_private_dir, write_private_atomic
from hermes.phrases import plural
from hermes.state.rows import AnyRow
from hermes.state.sessions.lookup import Purpose, find_session

if TYPE_CHECKING:
    from hermes.agent.conversation import Conversation
    from hermes.state.row_types import ListedSession

RECENT = 10
FOUND = 10
BUDGET_S = 5.0
SAVED = ("sessions", "saved")

_PAIRS = {"<": ">", "[": "]", '"': '"', "'": "'"}


def title(chat: Chat, text: str) -> None:
    """Show or set the title."""
    conversation, screen = chat.conversation, chat.screen
    if not text:
        screen.print_text(f"Session: {conversation.session_id}")
        screen.print_text(_title_line(conversation) if conversation.title else "No title. Set one with /title TEXT.")
        return
    set_title(chat, text)
    screen.print_text(_title_line(conversation))


def _title_line(conversation: Conversation) -> str:
    """Describe the title, which is stored only with the first message."""
    line = f"Title: {conversation.title}"
    return line if conversation.is_stored else f"{line} (stored with the first message)"


def set_title(chat: Chat, text: str) -> str:
    """Set the title and return it; raise `TitleTaken`, naming the other session, if it is taken."""
    if chat.store.sanitize_title(text) is None:
        raise InvalidTitle("the title has no visible characters", hint="use letters, digits or punctuation")
    try:
        return chat.conversation.set_title(text) or ""
    except TitleTaken as error:
        row = chat.store.get_session_by_title(chat.store.sanitize_title(text) or "")
        if row is None or row["id"] in error.message:
            raise
        raise TitleTaken(f"{error.message} by session {row['id']}") from error


def new(chat: Chat, text: str) -> None:
    """Start a new session. If the title is refused, show the error and start without one."""
    left = chat.conversation
    chat.start_new()
    if left.is_stored:
        chat.screen.print_dim(f"Left session {left.session_id}. Type /resume {left.session_id} to come back.")
    name = None
    if text:
        try:
            name = set_title(chat, text)
        except HermesError as error:
            chat.show_error(error)
    chat.screen.print_text(f"New session{f' {quote_title(name)}' if name else ''}.")


def resume(chat: Chat, name: str) -> None:
    """Resume another session by its number in the list, its id or its title."""
    name = strip_brackets(name)
    if not name:
        _show_recent(chat)
    elif name.isdecimal() and chat.listed and not _is_name(chat, name):
        chat.choose_session(int(name))
    else:
        chat.resume(find_session(chat.store, name, Purpose.RESUME))


def list_(chat: Chat, name: str) -> None:
    """List recent sessions, or resume one of them."""
    resume(chat, "" if name in ("list", "ls", "browse") else name)


def strip_brackets(name: str) -> str:
    """Remove one pair of brackets or quotes around a name."""
    name = name.strip()
    if len(name) > 1 and _PAIRS.get(name[0]) == name[-1]:
        return name[1:-1].strip()
    return name


def branch(chat: Chat, name: str) -> None:
    """Continue in a copy of the session."""
    left = chat.conversation
    child = left.branch(name or None)
    chat.conversation = child
    user_messages = sum(each["role"] == "user" for each in child.history)
    chat.screen.print_text(
        f"Branch {quote_title(child.title or '')} with {plural(user_messages, 'user message')}.\n"
        f"Original:       {left.session_id}\nBranch:         {child.session_id}"
    )


def search(chat: Chat, words: str) -> None:
    """Search the messages of all sessions."""
    if not words:
        raise InvalidValue("/search needs words to search for", hint="for example /search docker deploy")
    found = chat.store.search_messages(words, exclude_sources=HIDDEN_SOURCES, limit=FOUND, budget_s=BUDGET_S)
    if not found:
        chat.screen.print_text(f"No messages match {words!r}.")
        return
    chat.screen.print_lines(format_hits(found, now=time.time(), width=terminal_width()))
    chat.screen.print_dim("Type /resume ID to resume a session.")


def save(chat: Chat, argument: str) -> None:
    """Write the conversation to a JSON file in the Hermes home."""
    if argument:
        raise InvalidValue(
            "/save takes no argument", hint="use `hermes sessions show ID --json > FILE` for your own file"
        )
    conversation = chat.conversation
    row = chat.store.get_session(conversation.session_id)
    if row is None:
        chat.screen.print_text("No messages yet, so nothing to save.")
        return
    folder = chat.agent.home.joinpath(*SAVED)
    ensure_private_dir(folder)
    path = _free_path(folder)
    began = datetime.fromtimestamp(row["started_at"], UTC).astimezone()
    data = {
        "model": conversation.model.name,
        "session_id": conversation.session_id,
        "session_start": began.isoformat(),
        "messages": conversation.history,
    }
    text = json.dumps(data, indent=2, ensure_ascii=False)
    try:
        write_private_atomic(path, text.encode("utf-8", "surrogatepass"))
    except OSError as error:
        raise HermesError(f"{path} cannot be written: {error.strerror}") from error
    chat.screen.print_text(f"Saved to {path}")
    chat.screen.print_dim(f"Resume it with: {resume_commands(conversation.session_id, None)[0]}")


def _free_path(folder: Path) -> Path:
    """Return an unused file name with the current time in it."""
    stamp = time.strftime("%Y%m%d_%H%M%S")
    path, number = folder / f"hermes_conversation_{stamp}.json", 1
    while path.exists():
        number += 1
        path = folder / f"hermes_conversation_{stamp}_{number}.json"
    return path


def _is_name(chat: Chat, name: str) -> bool:
    """Whether a number is the id or the title of a session, which takes precedence over the list."""
    store = chat.store
    return store.get_session(name) is not None or store.resolve_session_by_title(name) is not None


def _show_recent(chat: Chat) -> None:
    rows = recent_sessions(chat, RECENT)
    if not rows:
        chat.screen.print_text("No other sessions.")
        return
    chat.listed = [str(row["id"]) for row in rows]
    chat.is_choosing = True
    chat.screen.print_lines(["", *format_choices(rows, now=time.time(), width=terminal_width()), ""])
    chat.screen.print_dim("Type a number to resume that session, or /resume ID or TITLE.")


def recent_sessions(chat: Chat, limit: int) -> list[ListedSession]:
    """Return the most recently active sessions, without the current one and those of agents."""
    rows = chat.store.list_sessions_rich(exclude_sources=HIDDEN_SOURCES, limit=limit + 1, order_by_last_active=True)
    return [row for row in rows if row["id"] != chat.conversation.session_id][:limit]


def format_choices(rows: Sequence[AnyRow], *, now: float, width: int) -> list[str]:
    """Format sessions as a numbered table."""
    return format_table(
        [
            Column("#", [str(number) for number in range(1, len(rows) + 1)]),
            Column("Title", [str(row["title"] or UNTITLED) for row in rows], is_elastic=True),
            Column("Preview", [str(row["preview"] or "") for row in rows], is_elastic=True, dropped=2),
            Column("Last Active", [ago(row["last_active"], now) for row in rows]),
            Column("ID", [printable(str(row["id"])) for row in rows], dropped=1),
        ],
        width,
    )
