"""Slash commands about what was said: shown, answered again, taken back, made shorter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from hermes.agent.compression.compress import MAX_KEPT
from hermes.cli.chat.recap import shortened, text_of, without_reasoning
from hermes.cli.chat.sitting import Sitting
from hermes.errors import InvalidValue, NotFound
from hermes.phrases import counted
from hermes.state.rows import AnyRow, count_tool_calls, one_line

MAX_SHOWN = 400
PREVIEW = 60
KEPT = 2

_KEEP = re.compile(r"(?:^|\s)(?:--keep|-k)(?:\s*=\s*|\s+|$)(\S*)")
_HERE = re.compile(r"(?:up to )?here(?:\s+(.*))?", re.IGNORECASE | re.DOTALL)


def history(sitting: Sitting, _: str) -> None:
    """Show what was said in the session."""
    messages = sitting.conversation.history if sitting.conversation.is_stored else []
    if not messages:
        sitting.screen.say("Nothing was said yet. /resume shows other sessions.")
        return
    sitting.screen.say("\n".join(history_lines(messages)))


def history_lines(messages: Sequence[AnyRow]) -> Iterator[str]:
    """A conversation with its messages numbered, each of them cut, and what tools said left out."""
    number = 0
    for role, group in groupby(messages, key=lambda each: each["role"]):
        if role == "tool":
            yield f"     [{counted(len(list(group)), 'tool result')} not shown]"
            continue
        for message in group:
            if role == "system":
                yield f"     [summary of earlier messages] {shortened(one_line(message['content'], 800), MAX_SHOWN)}"
                continue
            number += 1
            yield f"{number:>3}. {'You' if role == 'user' else 'Hermes'}: {_shown(message)}"


def retry(sitting: Sitting, _: str) -> None:
    """Have what was said last answered once more."""
    said = [each for each in sitting.conversation.history if each["role"] == "user"] if _is_stored(sitting) else []
    if not said:
        raise NotFound("nothing was said that could be answered again", hint="say something")
    sitting.screen.say_dim(f"Again: {one_line(said[-1]['content'], PREVIEW)}")
    sitting.turn(lambda listener, stop: sitting.conversation.retry(listener, stop))


def undo(sitting: Sitting, argument: str) -> None:
    """Take turns back; what was said first of them can be said in another way."""
    if argument and not (argument.isascii() and argument.isdecimal() and int(argument) > 0):
        raise InvalidValue(f"/undo does not understand {argument!r}", hint="say how many turns, as in /undo 2")
    undone = sitting.conversation.undo(int(argument or 1)) if _is_stored(sitting) else None
    if undone is None or not undone.turns:
        raise NotFound("there is nothing to take back")
    left = len(sitting.conversation.history)
    sitting.screen.say(
        f"Took back {counted(undone.turns, 'turn')} ({counted(undone.messages, 'message')}), from:"
        f" {one_line(undone.text, PREVIEW)}\n{counted(left, 'message')} left."
    )
    sitting.draft = undone.text


def compress(sitting: Sitting, argument: str) -> None:
    """Make the conversation shorter."""
    focus, keep = compress_wish(argument)
    conversation = sitting.conversation
    if not _is_stored(sitting):
        sitting.screen.say("Nothing was said yet, so there is nothing to compress.")
        return
    done = sitting.stoppable(lambda listener, stop: conversation.compress(focus, keep, listener, stop))
    if not done.is_changed:
        sitting.screen.say(f"Nothing has changed: {done.reason}.")
        return
    title = f' "{done.title}"' if done.title else ""
    sitting.screen.say(
        f"Compressed: {done.messages_before} → {done.messages_after} messages,"
        f" about {done.tokens_before:,} → {done.tokens_after:,} tokens.\n"
        f"The conversation goes on in session {done.session_id}{title}."
    )


def compress_wish(argument: str) -> tuple[str | None, int | None]:
    """What a summary should tell most about, and how many exchanges stay word for word; None for no wish."""
    if here := _HERE.fullmatch(argument):
        return None, _number(here[1])
    keep = _KEEP.search(argument)
    rest = _KEEP.sub("", argument).strip()
    return rest or None, _number(keep[1]) if keep else None


def _number(text: str | None) -> int:
    """How many exchanges are kept; raises `InvalidValue` for what is no such number."""
    if text is None:
        return KEPT
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:4]) <= MAX_KEPT):
        raise InvalidValue(
            f"{text!r} is no number of exchanges; nothing was compressed",
            hint=f"say how many to keep, from 1 to {MAX_KEPT}, as in /compress here 5",
        )
    return int(text)


def _is_stored(sitting: Sitting) -> bool:
    return sitting.conversation.is_stored


def _shown(message: AnyRow) -> str:
    text = text_of(message["content"])
    if message["role"] == "assistant":
        text = without_reasoning(text)
    if text:
        return shortened(text, MAX_SHOWN).replace("\n", "\n     ")
    calls = count_tool_calls(message.get("tool_calls") or None)
    return f"(asked for {counted(calls, 'tool call')})" if calls else "(no text)"
