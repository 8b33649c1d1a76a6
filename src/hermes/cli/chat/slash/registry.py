"""The registry of all slash commands."""

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
    """A slash command."""

    name: str
    summary: str
    run: Callable[[Chat, str], None]
    argument: str = ""
    aliases: tuple[str, ...] = ()
    takes_session: bool = False

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
    width = max(len(each.usage) for each in COMMANDS)
    chat.screen.print_text("\n".join(f"  {each.usage:<{width}}  {each.summary}" for each in COMMANDS))
    chat.screen.print_text(
        "\nAlt-Enter, or \\ at the end of a line, starts a new line. Tab completes. Ctrl-C stops an answer."
    )


COMMANDS = (
    Command("new", "Start a new session. This one is kept.", sessions.new, "[TITLE]", ("reset",)),
    Command("resume", "Resume another session.", sessions.resume, "[NUMBER|ID|TITLE]", takes_session=True),
    Command("sessions", "List recent sessions, or resume one.", sessions.list_, "[ID|TITLE]", takes_session=True),
    Command("title", "Show or set the title of this session.", sessions.title, "[TEXT]"),
    Command("branch", "Continue in a copy of this session.", sessions.branch, "[TITLE]", ("fork",)),
    Command("search", "Search the messages of all sessions.", sessions.search, "WORDS"),
    Command("history", "Show the messages of this session.", turns.history),
    Command("retry", "Regenerate the last answer.", turns.retry),
    Command("undo", "Undo the last turn, or the last N turns.", turns.undo, "[N]"),
    Command("compress", "Replace older messages with a summary.", turns.compress, "[FOCUS] [--keep N]"),
    Command("model", "Show or change the model.", session_info.model, "[NAME]"),
    Command("status", "Show details of this session.", session_info.status),
    Command("usage", "Show tokens and costs of this session.", session_info.usage),
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
