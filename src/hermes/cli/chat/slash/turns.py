"""Slash commands about messages: /history, /retry, /undo and /compress."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from hermes.agent.compression.compress import MAX_KEPT
from hermes.agent.history.attachments import is_attached
from hermes.cli.chat.chat_loop import Chat
from hermes.cli.chat.recap import message_text, shorten, strip_reasoning
from hermes.cli.display.terminal import terminal_width
from hermes.cli.display.wrapping import wrap_text
from hermes.errors import InvalidValue, NotFound
from hermes.phrases import plural
from hermes.state.rows import AnyRow, count_tool_calls, one_line

MAX_SHOWN = 400
PREVIEW = 60
KEPT = 2
_MARGIN = len("  1. ")
_MIN_WIDTH = 20

_KEEP = re.compile(r"(?:^|\s)(?:--keep|-k)(?:\s*=\s*|\s+|$)(\S*)")
_HERE = re.compile(r"(?:up to )?here(?:\s+(.*))?", re.IGNORECASE | re.DOTALL)


def history(chat: Chat, _: str) -> None:
    """Show the messages of the session."""
    messages = chat.conversation.history if chat.conversation.is_stored else []
    if not messages:
        chat.screen.print_text("No messages yet. Type /resume to see other sessions.")
        return
    width = terminal_width()
    chat.screen.print_text("\n".join(each for line in history_lines(messages) for each in _wrap_entry(line, width)))


def history_lines(messages: Sequence[AnyRow]) -> Iterator[str]:
    """Yield the messages numbered and shortened, without tool results."""
    number = 0
    for role, group in groupby(messages, key=lambda each: each["role"]):
        if role == "tool":
            yield f"     [{plural(len(list(group)), 'tool result')} not shown]"
            continue
        for message in group:
            if is_attached(message):
                yield f"     [attached context of {plural(len(message['content']), 'character')} not shown]"
                continue
            if role == "system":
                yield f"     [summary of earlier messages] {shorten(one_line(message['content'], 800), MAX_SHOWN)}"
                continue
            number += 1
            yield f"{number:>3}. {'You' if role == 'user' else 'Hermes'}: {_format_message(message)}"


def _wrap_entry(line: str, width: int) -> list[str]:
    """Break an entry between words, with its further lines below the first word."""
    first, *others = wrap_text(line[_MARGIN:], max(_MIN_WIDTH, width - _MARGIN))
    return [line[:_MARGIN] + first, *(" " * _MARGIN + each for each in others)]


def retry(chat: Chat, _: str) -> None:
    """Regenerate the last answer."""
    questions = [each for each in chat.conversation.history if each["role"] == "user"] if _is_stored(chat) else []
    if not questions:
        raise NotFound("there is no message to retry", hint="send a message first")
    chat.screen.print_dim(f"Retrying: {one_line(questions[-1]['content'], PREVIEW)}")
    with chat.cancellable() as cancellation:
        outcome = chat.conversation.retry(chat.screen, cancellation)
    chat.show_outcome(outcome)


def undo(chat: Chat, argument: str) -> None:
    """Undo turns, and offer the first undone message for editing."""
    if argument and not (argument.isascii() and argument.isdecimal() and int(argument) > 0):
        raise InvalidValue(f"/undo needs a number of turns, not {argument!r}", hint="for example /undo 2")
    undone = chat.conversation.undo(int(argument or 1)) if _is_stored(chat) else None
    if undone is None or not undone.turns:
        raise NotFound("there is nothing to undo")
    left = len(chat.conversation.history)
    what = f"{plural(undone.turns, 'turn')} ({plural(undone.messages, 'message')})"
    lines = [
        f"Undid {what}, from: {one_line(undone.text, PREVIEW)}",
        f"{plural(left, 'message')} left.",
        *(f"File {each}." for each in undone.files),
    ]
    chat.screen.print_text("\n".join(lines))
    chat.draft = undone.text


def compress(chat: Chat, argument: str) -> None:
    """Compress the conversation."""
    focus, keep = parse_compress_argument(argument)
    conversation = chat.conversation
    if not _is_stored(chat):
        chat.screen.print_text("No messages yet, so nothing to compress.")
        return
    with chat.cancellable() as cancellation:
        done = conversation.compress(focus, keep, chat.screen, cancellation)
    if not done.is_changed:
        chat.screen.print_text(f"Not compressed: {done.reason}.")
        return
    title = f' "{done.title}"' if done.title else ""
    chat.screen.print_text(
        f"Compressed: {done.messages_before} → {done.messages_after} messages,"
        f" about {done.tokens_before:,} → {done.tokens_after:,} tokens.\n"
        f"The conversation continues in session {done.session_id}{title}."
    )


def parse_compress_argument(argument: str) -> tuple[str | None, int | None]:
    """Parse the focus of the summary and the number of exchanges to keep; None for each that is missing."""
    if here := _HERE.fullmatch(argument):
        return None, _parse_kept(here[1])
    keep = _KEEP.search(argument)
    rest = _KEEP.sub("", argument).strip()
    return rest or None, _parse_kept(keep[1]) if keep else None


def _parse_kept(text: str | None) -> int:
    """Parse the number of exchanges to keep; raise `InvalidValue` if it is not one."""
    if text is None:
        return KEPT
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:4]) <= MAX_KEPT):
        raise InvalidValue(
            f"{text!r} is not a number of exchanges; nothing was compressed",
            hint=f"give a number from 1 to {MAX_KEPT}, for example /compress here 5",
        )
    return int(text)


def _is_stored(chat: Chat) -> bool:
    return chat.conversation.is_stored


def _format_message(message: AnyRow) -> str:
    text = message_text(message["content"])
    if message["role"] == "assistant":
        text = strip_reasoning(text)
    if text:
        return shorten(text, MAX_SHOWN).replace("\n", "\n     ")
    calls = count_tool_calls(message.get("tool_calls") or None)
    return f"(asked for {plural(calls, 'tool call')})" if calls else "(no text)"
