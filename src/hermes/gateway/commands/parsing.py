"""The names of the commands, and which text is a command; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from hermes.gateway.event import MessageEvent


@dataclass(frozen=True, slots=True)
class CommandName:
    """A command as `/help` lists it."""

    name: str
    summary: str
    argument: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def usage(self) -> str:
        """The command with its argument."""
        return f"/{self.name} {self.argument}".rstrip()


COMMANDS: Final = (
    CommandName("new", "Start a new session. The present one is kept.", "[TITLE]", ("reset",)),
    CommandName("stop", "Stop the answer that is being written, and end the session."),
    CommandName("resume", "Continue an earlier session.", "[NUMBER|ID|TITLE]"),
    CommandName("sessions", "List your sessions."),
    CommandName("title", "Show or set the title of this session.", "[TEXT]"),
    CommandName("status", "Show details of this session."),
    CommandName("retry", "Regenerate the last answer."),
    CommandName("undo", "Undo the last turn, or the last N turns.", "[N]"),
    CommandName("compress", "Replace older messages with a summary.", "[FOCUS]"),
    CommandName("branch", "Continue in a copy of this session.", "[TITLE]", ("fork",)),
    CommandName("queue", "Have a message answered after the present turn, in a turn of its own.", "TEXT", ("q",)),
    CommandName("steer", "Add a message to the turn that is running.", "TEXT"),
    CommandName("background", "Work on a task in a session of its own.", "TEXT", ("bg", "btw")),
    CommandName("model", "Show or change the model of this chat.", "[NAME|default]"),
    CommandName("usage", "Show tokens and costs."),
    CommandName("approve", "Allow what an agent asked for, or list the requests.", "[ID] [session|always]"),
    CommandName("deny", "Refuse what an agent asked for.", "ID"),
    CommandName("topic", "Give each topic of this chat a session of its own.", "[on|off|ID]"),
    CommandName("restart", "Restart the gateway."),
    CommandName("help", "Show this list.", aliases=("commands", "?")),
)

ADMIN_COMMANDS: Final = frozenset({"restart"})
APPROVER_COMMANDS: Final = frozenset({"approve", "deny"})
TELEGRAM_COMMANDS: Final = frozenset({"topic"})
"""Commands for private chats on Telegram."""

BYPASS: Final = frozenset(
    {
        "approve",
        "background",
        "deny",
        "help",
        "model",
        "queue",
        "restart",
        "sessions",
        "status",
        "steer",
        "title",
        "usage",
    }
)
"""The commands that run at once while a turn runs."""

STOPS: Final = frozenset({"stop", "new", "reset"})
"""The commands before which a running turn is stopped."""

_CANONICAL: Final = {name: each.name for each in COMMANDS for name in (each.name, *each.aliases)}


@dataclass(frozen=True, slots=True)
class Parsed:
    """A command, by its own name if it was given by an alias, and the text after it."""

    name: str
    args: str = ""

    @property
    def text(self) -> str:
        """The command as a user would type it."""
        return f"/{self.name} {self.args}".rstrip()


def parse_command(text: str) -> Parsed | None:
    """Return the command of a message; None if the message is ordinary text, a path or an unknown command.

    A bot's name after the command (`/new@my_bot`) is ignored.
    """
    event = MessageEvent(text)
    name = _CANONICAL.get(event.get_command() or "")
    return None if name is None else Parsed(name, event.get_command_args())


def command_parser(reset_triggers: Iterable[str]) -> Callable[[str], Parsed | None]:
    """Return `parse_command` with further names for `/new`: those of `reset_triggers`."""
    others = {each.strip().removeprefix("/").lower() for each in reset_triggers} - {"", *_CANONICAL}

    def parse(text: str) -> Parsed | None:
        event = MessageEvent(text)
        is_reset = event.get_command() in others
        return Parsed("new", event.get_command_args()) if is_reset else parse_command(text)

    return parse if others else parse_command
