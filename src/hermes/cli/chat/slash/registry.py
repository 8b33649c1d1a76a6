"""Every slash command with its names and the line that explains it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from hermes.cli.chat.chat_loop import Chat
from hermes.cli.chat.slash import session_info, sessions, turns
from hermes.errors import InvalidValue

CANDIDATES = 3


@dataclass(frozen=True, slots=True)
class Command:
    """Something that can be done within a chat."""

    name: str
    summary: str
    run: Callable[[Chat, str], None]
    argument: str = ""
    aliases: tuple[str, ...] = ()
    takes_session: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """All that it can be called by."""
        return (self.name, *self.aliases)

    @property
    def usage(self) -> str:
        """How it is written."""
        return " ".join(each for each in ("/" + ", /".join(self.names), self.argument) if each)


def show_help(chat: Chat, _: str) -> None:
    """Say what can be said."""
    width = max(len(each.usage) for each in COMMANDS)
    chat.screen.print_text("\n".join(f"  {each.usage:<{width}}  {each.summary}" for each in COMMANDS))
    chat.screen.print_text(
        "\nAlt-Enter, or \\ at the end of a line, begins a new line; Tab completes. Ctrl-C stops an answer."
    )


COMMANDS = (
    Command("new", "Begin a new session; this one is kept.", sessions.new, "[TITLE]", ("reset",)),
    Command("resume", "Go on with another session.", sessions.resume, "[NUMBER|ID|TITLE]", takes_session=True),
    Command("sessions", "List recent sessions, or go on with one.", sessions.list_, "[ID|TITLE]", takes_session=True),
    Command("title", "Show the title of this session, or give it one.", sessions.title, "[TEXT]"),
    Command("branch", "Go on in a copy; this session stays as it is.", sessions.branch, "[TITLE]", ("fork",)),
    Command("search", "Find messages of all sessions by their words.", sessions.search, "WORDS"),
    Command("history", "Show what was said in this session.", turns.history),
    Command("retry", "Have what you said last answered once more.", turns.retry),
    Command("undo", "Take back the last turn, or the last N.", turns.undo, "[N]"),
    Command("compress", "Put a summary in the place of older messages.", turns.compress, "[FOCUS] [--keep N]"),
    Command("model", "Show the model, or use another one.", session_info.model, "[NAME]"),
    Command("status", "Show what this session is.", session_info.status),
    Command("usage", "Show what this session has cost.", session_info.usage),
    Command("save", "Write this conversation to a file.", sessions.save),
    Command("help", "Show these commands.", show_help, aliases=("?",)),
    Command("quit", "Leave; the session can be resumed.", session_info.leave, aliases=("exit",)),
)

_BY_NAME = {name: command for command in COMMANDS for name in command.names}


def find_command(name: str) -> Command:
    """The command of a name, in any capitals."""
    found = _BY_NAME.get(name.lower())
    if found is not None:
        return found
    near = get_close_matches(name.lower(), _BY_NAME, n=CANDIDATES)
    hint = f"did you mean {' or '.join(f'/{each}' for each in near)}?" if near else "/help shows the commands there are"
    raise InvalidValue(f"there is no command /{name}", hint=hint)
