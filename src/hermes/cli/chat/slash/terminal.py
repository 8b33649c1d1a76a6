"""Slash commands about the terminal: /clear and /copy."""

from __future__ import annotations

import re
import sys
from base64 import b64encode

from hermes.cli.chat.chat_loop import Chat
from hermes.cli.chat.recap import message_text, strip_reasoning
from hermes.cli.chat.terminal.output import write_answer
from hermes.cli.chat.terminal.style import can_move
from hermes.errors import HermesError, InvalidValue, NotFound
from hermes.phrases import plural

CLEAR = "\x1b[H\x1b[2J"
"""Empties the screen; the lines above it stay in the terminal's history."""
TO_CLIPBOARD = "\x1b]52;c;{data}\a"
"""OSC 52: the terminal puts the text into the clipboard, also through ssh."""
MAX_BYTES = 74_994
"""Terminals ignore more."""

_FENCE = re.compile(r"(`{3,}|~{3,})([^\n]*)")


def clear(chat: Chat, argument: str) -> None:
    """Empty the screen and start a new session."""
    if argument:
        raise InvalidValue("/clear takes no argument", hint="use /new TITLE for a new session with a title")
    left = chat.conversation
    chat.start_new()
    if can_move(sys.stdout):
        write_answer(CLEAR)
    if left.is_stored:
        chat.screen.print_dim(f"Left session {left.session_id}. Type /resume {left.session_id} to come back.")
    chat.screen.print_text("New session.")


def copy(chat: Chat, argument: str) -> None:
    """Copy the last answer, or the last code in it, to the clipboard of the terminal."""
    if argument not in ("", "code"):
        raise InvalidValue(f"/copy cannot copy {argument!r}", hint="type /copy for the answer, or /copy code")
    text = _last_answer(chat)
    if argument:
        text = last_code(text)
        if not text:
            raise NotFound("the last answer has no code between ``` lines", hint="type /copy for the whole answer")
    data = text.encode("utf-8", "replace")
    if len(data) > MAX_BYTES:
        raise InvalidValue(f"{len(data)} bytes are too many for the clipboard of a terminal", hint="use /save")
    if not can_move(sys.stdout):
        raise HermesError("stdout is no terminal that has a clipboard")
    write_answer(TO_CLIPBOARD.format(data=b64encode(data).decode()))
    chat.screen.print_text(f"Copied {plural(len(text), 'character')}, if this terminal allows it.")


def last_code(text: str) -> str:
    """Return the last code between fences; empty if there is none."""
    fence, last, lines = "", "", list[str]()
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if not fence:
            fence = found[1] if found else ""
            lines = []
        elif found and found[1].startswith(fence) and not found[2].strip():
            fence, last = "", "\n".join(lines)
        else:
            lines.append(line)
    return last


def _last_answer(chat: Chat) -> str:
    history = chat.conversation.history if chat.conversation.is_stored else []
    for message in reversed(history):
        if message["role"] == "assistant" and (text := strip_reasoning(message_text(message["content"])).strip()):
            return text
    raise NotFound("there is no answer to copy yet", hint="send a message first")
