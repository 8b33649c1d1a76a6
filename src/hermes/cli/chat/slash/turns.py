"""Slash commands about what was said: shown, answered again, taken back, made shorter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from hermes.agent.compression.compress import MAX_KEPT
from hermes.cli.chat.chat_loop import Chat
from hermes.cli.chat.recap import message_text, shorten, strip_reasoning
from hermes.errors import InvalidValue, NotFound
from hermes.phrases import counted
from hermes.state.rows import AnyRow, count_tool_calls, one_line

MAX_SHOWN = 400
PREVIEW = 60
KEPT = 2

_KEEP = re.compile(r"(?:^|\s)(?:--keep|-k)(?:\s*=\s*|\s+|$)(\S*)")
_HERE = re.compile(r"(?:up to )?here(?:\s+(.*))?", re.IGNORECASE | re.DOTALL)


def history(chat: Chat, _: str) -> None:
    """Show what was said in the session."""
    messages = chat.conversation.history if chat.conversation.is_stored else []
    if not messages:
        chat.screen.print_text("Nothing was said yet. /resume shows other sessions.")
        return
    chat.screen.print_text("\n".join(history_lines(messages)))


def history_lines(messages: Sequence[AnyRow]) -> Iterator[str]:
    """A conversation with its messages numbered, each of them cut, and what tools said left out."""
    number = 0
    for role, group in groupby(messages, key=lambda each: each["role"]):
        if role == "tool":
            yield f"     [{counted(len(list(group)), 'tool result')} not shown]"
            continue
        for message in group:
            if role == "system":
                yield f"     [summary of earlier messages] {shorten(one_line(message['content'], 800), MAX_SHOWN)}"
                continue
            number += 1
            yield f"{number:>3}. {'You' if role == 'user' else 'Hermes'}: {_format_message(message)}"


def retry(chat: Chat, _: str) -> None:
    """Have what was said last answered once more."""
    said = [each for each in chat.conversation.history if each["role"] == "user"] if _is_stored(chat) else []
    if not said:
        raise NotFound("nothing was said that could be answered again", hint="say something")
    chat.screen.print_dim(f"Again: {one_line(said[-1]['content'], PREVIEW)}")
    with chat.cancellable() as cancellation:
        outcome = chat.conversation.retry(chat.screen, cancellation)
    chat.show_outcome(outcome)


def undo(chat: Chat, argument: str) -> None:
    """Take turns back; what was said first of them can be said in another way."""
    if argument and not (argument.isascii() and argument.isdecimal() and int(argument) > 0):
        raise InvalidValue(f"/undo does not understand {argument!r}", hint="say how many turns, as in /undo 2")
    undone = chat.conversation.undo(int(argument or 1)) if _is_stored(chat) else None
    if undone is None or not undone.turns:
        raise NotFound("there is nothing to take back")
    left = len(chat.conversation.history)
    chat.screen.print_text(
        f"Took back {counted(undone.turns, 'turn')} ({counted(undone.messages, 'message')}), from:"
        f" {one_line(undone.text, PREVIEW)}\n{counted(left, 'message')} left."
    )
    chat.draft = undone.text


def compress(chat: Chat, argument: str) -> None:
    """Make the conversation shorter."""
    focus, keep = parse_compress_argument(argument)
    conversation = chat.conversation
    if not _is_stored(chat):
        chat.screen.print_text("Nothing was said yet, so there is nothing to compress.")
        return
    with chat.cancellable() as cancellation:
        done = conversation.compress(focus, keep, chat.screen, cancellation)
    if not done.is_changed:
        chat.screen.print_text(f"Nothing has changed: {done.reason}.")
        return
    title = f' "{done.title}"' if done.title else ""
    chat.screen.print_text(
        f"Compressed: {done.messages_before} → {done.messages_after} messages,"
        f" about {done.tokens_before:,} → {done.tokens_after:,} tokens.\n"
        f"The conversation goes on in session {done.session_id}{title}."
    )


def parse_compress_argument(argument: str) -> tuple[str | None, int | None]:
    """What a summary should tell most about, and how many exchanges stay word for word; None for no wish."""
    if here := _HERE.fullmatch(argument):
        return None, _parse_kept(here[1])
    keep = _KEEP.search(argument)
    rest = _KEEP.sub("", argument).strip()
    return rest or None, _parse_kept(keep[1]) if keep else None


def _parse_kept(text: str | None) -> int:
    """How many exchanges are kept; raises `InvalidValue` for what is no such number."""
    if text is None:
        return KEPT
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:4]) <= MAX_KEPT):
        raise InvalidValue(
            f"{text!r} is no number of exchanges; nothing was compressed",
            hint=f"say how many to keep, from 1 to {MAX_KEPT}, as in /compress here 5",
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
    return f"(asked for {counted(calls, 'tool call')})" if calls else "(no text)"
