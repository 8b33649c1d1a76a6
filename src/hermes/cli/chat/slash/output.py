"""The slash command /output, which shows the output of a tool."""

from __future__ import annotations

from hermes.cli.chat.chat_loop import Chat
from hermes.cli.chat.tool_display.lines import output_lines
from hermes.cli.display.terminal import printable
from hermes.errors import InvalidValue


def output(chat: Chat, argument: str) -> None:
    """Show the output of the last tool, or of the one with a number."""
    if argument and not (argument.isascii() and argument.isdecimal()):
        raise InvalidValue(f"/output needs a number, not {argument!r}", hint="for example /output 2")
    folded = chat.screen.outputs.get(int(argument[:9]) if argument else None)
    chat.screen.print_dim(f"{folded.number}. {folded.title}")
    lines = output_lines(folded.text) or ["(no output)"]
    chat.screen.print_lines([printable(line.expandtabs(4)) for line in lines])
