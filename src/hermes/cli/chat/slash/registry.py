"""The registry of all slash commands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum

from hermes.cli.chat.chat_loop import Chat
from hermes.cli.chat.slash import session_info, sessions, terminal, turns
from hermes.cli.chat.slash.output import output
from hermes.errors import InvalidValue

CANDIDATES = 3


class Argument(Enum):
    """What the argument of a command names, so that the Tab key can complete it."""

    TEXT = "text"
    SESSION = "session"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class Command:
    """A slash command."""

    name: str
    summary: str
    run: Callable[[Chat, str], None]
    argument: str = ""
    aliases: tuple[str, ...] = ()
    completes: Argument = Argument.TEXT

    @property
    def names(self) -> tuple[str, ...]:
        """The name and all aliases."""
        return (self.name, *self.aliases)

    @property
    def usage(self) -> str:
        """The names and the argument, as /help shows them."""
        return " ".join(each for each in ("/" + ", /".join(self.names), self.argument) if each)


def show_help(chat: Chat, _: str) -> None:
    """List the slash commands."""
    chat.screen.print_columns([(each.usage, each.summary) for each in COMMANDS])
    chat.screen.print_text(
        "\n!COMMAND runs a command of your own, and the model reads its output with your next message.\n"
        "Alt-Enter, or \\ at the end of a line, starts a new line. Ctrl-X Ctrl-E opens $EDITOR. Tab completes.\n"
        "Esc or Ctrl-C stops an answer."
    )


COMMANDS = (
    Command("new", "Start a new session. This one is kept.", sessions.new, "[TITLE]", ("reset",)),
    Command("resume", "Resume another session.", sessions.resume, "[NUMBER|ID|TITLE]", completes=Argument.SESSION),
    Command(
        "sessions", "List recent sessions, or resume one.", sessions.list_, "[ID|TITLE]", completes=Argument.SESSION
    ),
    Command("title", "Show or set the title of this session.", sessions.title, "[TEXT]"),
    Command("branch", "Continue in a copy of this session.", sessions.branch, "[TITLE]", ("fork",)),
    Command("search", "Search the messages of all sessions.", sessions.search, "WORDS"),
    Command("history", "Show the messages of this session.", turns.history),
    Command("retry", "Regenerate the last answer.", turns.retry),
    Command("undo", "Undo the last turn, or the last N turns.", turns.undo, "[N]"),
    Command("compress", "Replace older messages with a summary.", turns.compress, "[FOCUS] [--keep N]"),
    Command("model", "Show or change the model.", session_info.model, "[NAME]", completes=Argument.MODEL),
    Command("status", "Show details of this session.", session_info.status),
    Command("usage", "Show tokens and costs of this session.", session_info.usage, aliases=("cost",)),
    Command("copy", "Copy the last answer, or its code, to the clipboard.", terminal.copy, "[code]"),
    Command("clear", "Empty the screen and start a new session.", terminal.clear),
    Command("output", "Show the output of the last tool, or of tool N.", output, "[N]"),
    Command("save", "Save this conversation to a file.", sessions.save),
    Command("help", "Show this help.", show_help, aliases=("?",)),
    Command("quit", "Leave the chat. The session can be resumed.", session_info.leave, aliases=("exit",)),
)

_BY_NAME = {name: command for command in COMMANDS for name in command.names}


def find_command(name: str) -> Command:
    """Return the command of a name, ignoring case; raise `InvalidValue` if there is none."""
    found = _BY_NAME.get(name.lower())
    if found is not None:
        return found
    near = get_close_matches(name.lower(), _BY_NAME, n=CANDIDATES)
    hint = f"did you mean {' or '.join(f'/{each}' for each in near)}?" if near else "type /help for a list of commands"
    raise InvalidValue(f"there is no command /{name}", hint=hint)
