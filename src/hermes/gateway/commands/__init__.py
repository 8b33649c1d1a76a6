"""The slash commands of chats."""

from hermes.gateway.commands.context import CommandContext, CommandServices, RunningInfo
from hermes.gateway.commands.dispatch import run_command
from hermes.gateway.commands.parsing import BYPASS, STOPS, Parsed, command_parser, parse_command
from hermes.gateway.commands.result import CommandResult, OtherMessage, TurnSpec
from hermes.gateway.commands.runner import CommandRunner

__all__ = [
    "BYPASS",
    "STOPS",
    "CommandContext",
    "CommandResult",
    "CommandRunner",
    "CommandServices",
    "OtherMessage",
    "Parsed",
    "RunningInfo",
    "TurnSpec",
    "command_parser",
    "parse_command",
    "run_command",
]
