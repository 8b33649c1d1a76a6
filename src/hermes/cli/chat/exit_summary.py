"""The summary at the end of a chat: which session it was and how to resume it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from hermes.agent.safety.visible_text import make_visible
from hermes.cli.display.terminal import ELLIPSIS, clip, printable
from hermes.cli.display.totals import format_totals
from hermes.errors import NotFound
from hermes.phrases import plural
from hermes.state.sessions.lookup import Purpose, find_session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.agent.conversation import Conversation
    from hermes.agent.tools.shell.background_processes import BackgroundProcess
    from hermes.state.owner_view import OwnerView

LABEL_WIDTH = 16
MAX_COMMAND = 200
NO_MESSAGES = "No messages sent, so no session was saved."


def exit_summary_lines(conversation: Conversation, seconds: float) -> list[str]:
    """Return the lines of the summary; a session without messages has nothing to resume."""
    row = conversation.agent.store.get_session(conversation.session_id) if conversation.is_stored else None
    if row is None:
        return [NO_MESSAGES]
    session_id, title = str(row["id"]), row["title"]
    way_title = title if title and session_resumed_by(conversation.agent.store, title) == session_id else None
    history = conversation.history
    user_messages = sum(each["role"] == "user" for each in history)
    counts = f"{len(history)} ({user_messages} user, {plural(row['tool_call_count'] or 0, 'tool call')})"
    facts = {"Session": session_id, "Title": title, "Duration": format_duration(seconds), "Messages": counts}
    facts["Tokens"] = format_totals(row)
    return [
        "",
        "Resume this session with:",
        *(f"  {each}" for each in resume_commands(session_id, way_title)),
        "",
        *(f"{f'{label}:':<{LABEL_WIDTH}}{printable(fact)}" for label, fact in facts.items() if fact),
    ]


def running_process_lines(processes: Sequence[BackgroundProcess], *, was_asked_to_end: bool) -> list[str]:
    """Return the lines about background processes that outlive Hermes, with their pids and commands."""
    if not processes:
        return []
    what = "1 background process" if len(processes) == 1 else f"{len(processes)} background processes"
    state = "could not be stopped" if was_asked_to_end else "still running"
    return [
        f"{what} {state}; to stop one and its children: `kill -- -PID`",
        *(f"  pid {each.process.pid}  {_first_line(each.command)}" for each in processes),
    ]


def resume_commands(session_id: str, title: str | None) -> list[str]:
    """Return command lines that resume a session, ready to copy."""
    ways = [
        f"hermes -r {shlex.quote(session_id)}" if session_id[:1] != "-" else _option_with_value("resume", session_id)
    ]
    if title and printable(title) == title:
        ways.append(_option_with_value("continue", title) if title[0] == "-" else f"hermes -c {_quote_title(title)}")
    return [printable(each) for each in ways]


def session_resumed_by(store: OwnerView, title: str) -> str | None:
    """Return the session that `hermes -c TITLE` would resume, if any."""
    try:
        return store.get_compression_tip(find_session(store, title, Purpose.RESUME))
    except NotFound:
        return None


def format_duration(seconds: float) -> str:
    """`1h 2m 3s`, `2m 3s`, `3s`."""
    minutes, rest = divmod(int(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h {minutes}m {rest}s"
    return f"{minutes}m {rest}s" if minutes else f"{rest}s"


def _first_line(command: str) -> str:
    line, _, rest = command.strip().partition("\n")
    return clip(printable(make_visible(line)), MAX_COMMAND) + (f" {ELLIPSIS}" if rest else "")


def _quote_title(title: str) -> str:
    """Quote a title for a shell, in double quotes if no character in it is special there."""
    return shlex.quote(title) if any(char in title for char in '"$`\\!') else f'"{title}"'


def _option_with_value(option: str, name: str) -> str:
    return f"hermes --{option}={shlex.quote(name)}"
