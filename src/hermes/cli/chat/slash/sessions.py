"""Slash commands about sessions: this one, another one, a new one, and what was said in all of them."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.cli.chat.farewell import ways_back
from hermes.cli.chat.resume import repr_title
from hermes.cli.chat.sitting import Sitting
from hermes.cli.hits import page_of
from hermes.cli.listing import HIDDEN_SOURCES, UNTITLED
from hermes.cli.table import Column, lay_out
from hermes.cli.terminal import printable, terminal_width
from hermes.cli.times import ago
from hermes.errors import HermesError, InvalidTitle, InvalidValue, TitleTaken
from hermes.home import ensure_private_dir, write_private_atomic
from hermes.phrases import counted
from hermes.state.naming import Purpose, find_session
from hermes.state.rows import AnyRow

if TYPE_CHECKING:
    from hermes.state.rowtypes import ListedSession

RECENT = 10
FOUND = 10
BUDGET_S = 5.0
SAVED = ("sessions", "saved")

_PAIRS = {"<": ">", "[": "]", '"': '"', "'": "'"}


def title(sitting: Sitting, text: str) -> None:
    """Show the title, or set it."""
    conversation, screen = sitting.conversation, sitting.screen
    if not text:
        screen.say(f"Session: {conversation.session_id}")
        shown = f"Title: {conversation.title}" if conversation.title else "No title; /title TEXT gives it one."
        screen.say(shown if conversation.is_stored or not conversation.title else f"{shown} (once something is said)")
        return
    name = set_title(sitting, text)
    screen.say(f"Title: {name}" if conversation.is_stored else f"Title: {name} (stored once something is said)")


def set_title(sitting: Sitting, text: str) -> str:
    """Name the session; an error tells which other session has the name."""
    if sitting.store.sanitize_title(text) is None:
        raise InvalidTitle("nothing of this title can be seen", hint="use letters, digits or signs")
    try:
        return sitting.conversation.set_title(text) or ""
    except TitleTaken as error:
        row = sitting.store.get_session_by_title(sitting.store.sanitize_title(text) or "")
        if row is None or row["id"] in error.message:
            raise
        raise TitleTaken(f"{error.message} by session {row['id']}") from error


def new(sitting: Sitting, text: str) -> None:
    """Begin anew; a title that cannot be had is told, and the session begins without."""
    left = sitting.conversation
    sitting.begin_new()
    if left.is_stored:
        sitting.screen.say_dim(f"Left session {left.session_id}; /resume {left.session_id} comes back to it.")
    name = None
    if text:
        try:
            name = set_title(sitting, text)
        except HermesError as error:
            sitting.complain(error)
    sitting.screen.say(f"New session{f' {repr_title(name)}' if name else ''}.")


def resume(sitting: Sitting, name: str) -> None:
    """Go on with another session, by its number in the list, its id or its title."""
    name = unwrapped(name)
    if not name:
        _show_recent(sitting)
    elif name.isdecimal() and sitting.listed and not _is_name(sitting, name):
        sitting.choose(int(name))
    else:
        sitting.resume(find_session(sitting.store, name, Purpose.RESUME))


def list_(sitting: Sitting, name: str) -> None:
    """List recent sessions, or go on with one of them."""
    resume(sitting, "" if name in ("list", "ls", "browse") else name)


def unwrapped(name: str) -> str:
    """A name without one pair of brackets or quotes around it."""
    name = name.strip()
    if len(name) > 1 and _PAIRS.get(name[0]) == name[-1]:
        return name[1:-1].strip()
    return name


def branch(sitting: Sitting, name: str) -> None:
    """Go on in a copy of the session."""
    left = sitting.conversation
    child = left.branch(name or None)
    sitting.conversation = child
    said = sum(each["role"] == "user" for each in child.history)
    sitting.screen.say(
        f"Branch {repr_title(child.title or '')} with {counted(said, 'user message')}.\n"
        f"Original:       {left.session_id}\nBranch:         {child.session_id}"
    )


def search(sitting: Sitting, words: str) -> None:
    """Find messages in all sessions."""
    if not words:
        raise InvalidValue("/search needs words to look for", hint="as in /search docker deploy")
    found = sitting.store.search_messages(words, exclude_sources=HIDDEN_SOURCES, limit=FOUND, budget_s=BUDGET_S)
    if not found:
        sitting.screen.say(f"Nothing was found for {words!r}.")
        return
    sitting.screen.show(page_of(found, now=time.time(), width=terminal_width()))
    sitting.screen.say_dim("/resume ID goes on with a session.")


def save(sitting: Sitting, argument: str) -> None:
    """Write the conversation to a file of JSON in the Hermes home."""
    if argument:
        raise InvalidValue("/save takes no name", hint="`hermes sessions show ID --json` writes it wherever you like")
    conversation = sitting.conversation
    row = sitting.store.get_session(conversation.session_id)
    if row is None:
        sitting.screen.say("Nothing was said yet, so there is nothing to save.")
        return
    folder = sitting.agent.home.joinpath(*SAVED)
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
    sitting.screen.say(f"Saved to {path}")
    sitting.screen.say_dim(f"{ways_back(conversation.session_id, None)[0]} resumes it.")


def _free_path(folder: Path) -> Path:
    """A name with the time in it that no file has."""
    stamp = time.strftime("%Y%m%d_%H%M%S")
    path, number = folder / f"hermes_conversation_{stamp}.json", 1
    while path.exists():
        number += 1
        path = folder / f"hermes_conversation_{stamp}_{number}.json"
    return path


def _is_name(sitting: Sitting, name: str) -> bool:
    """Whether a number is the id or the title of a session, which comes first."""
    store = sitting.store
    return store.get_session(name) is not None or store.resolve_session_by_title(name) is not None


def _show_recent(sitting: Sitting) -> None:
    rows = recent_sessions(sitting, RECENT)
    if not rows:
        sitting.screen.say("There are no other sessions.")
        return
    sitting.listed = [str(row["id"]) for row in rows]
    sitting.is_choosing = True
    sitting.screen.show(["", *table_of(rows, now=time.time(), width=terminal_width()), ""])
    sitting.screen.say_dim("Type a number to go on with that session, or /resume ID or TITLE.")


def recent_sessions(sitting: Sitting, limit: int) -> list[ListedSession]:
    """The sessions in which something was said last, but for this one and for those of agents."""
    rows = sitting.store.list_sessions_rich(exclude_sources=HIDDEN_SOURCES, limit=limit + 1, order_by_last_active=True)
    return [row for row in rows if row["id"] != sitting.conversation.session_id][:limit]


def table_of(rows: Sequence[AnyRow], *, now: float, width: int) -> list[str]:
    """Sessions with numbers to choose them by."""
    return lay_out(
        [
            Column("#", [str(number) for number in range(1, len(rows) + 1)]),
            Column("Title", [str(row["title"] or UNTITLED) for row in rows], is_elastic=True),
            Column("Preview", [str(row["preview"] or "") for row in rows], is_elastic=True),
            Column("Last Active", [ago(row["last_active"], now) for row in rows]),
            Column("ID", [printable(str(row["id"])) for row in rows]),
        ],
        width,
    )
