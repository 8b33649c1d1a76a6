"""Which waiting messages form the next turn, and what a message does that arrives while a turn runs; pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum

from hermes.gateway.engine.messages import Message
from hermes.gateway.engine.settings import BusyMode

DEBOUNCE_S = 0.35
DEBOUNCE_MOST_S = 1.0
ALBUM_S = 2.0
"""Photos that follow each other within this time belong together."""


@dataclass(frozen=True, slots=True)
class RunCommand:
    """The next step is a command."""

    message: Message


@dataclass(frozen=True, slots=True)
class RunTurn:
    """The next step is a turn that answers these messages together."""

    messages: Sequence[Message]


Step = RunCommand | RunTurn


class Arrival(Enum):
    """What a message does that arrives while a turn runs."""

    WAIT = "wait"
    INTERRUPT = "interrupt"
    STEER = "steer"
    STOP = "stop"
    RUN_NOW = "run now"


def next_step(waiting: Sequence[Message], mode: BusyMode) -> Step | None:
    """Return what to do with the messages of a lane, oldest first; None if nothing waits.

    Commands and messages of people run in the order of their arrival. Messages of `/queue` run one by one; a later
    message of a person runs before them, unless the mode is `queue`.
    """
    if not waiting:
        return None
    first = _first(waiting, mode)
    if first.kind == "command":
        return RunCommand(first)
    if first.kind in ("queue", "internal"):
        return RunTurn((first,))
    return RunTurn(_merged(first, waiting, mode))


def without_newer(step: Step | None, waiting: Sequence[Message], begun: Collection[int]) -> Step | None:
    """Let the messages of a turn that did not end run again first and alone, because its answer may be stored already.

    A message of `/queue` keeps the place that it had: if a newer one ran before it, the answer to the newer one would
    stand behind it in the history. Messages that were added to its turn run with it.
    """
    if step is None or not begun:
        return step
    queued = next((each for each in waiting if each.id in begun and each.kind == "queue"), None)
    if queued is not None:
        added = (each for each in waiting if each.id in begun and each.kind == "steer" and each.sender == queued.sender)
        return RunTurn((queued, *added))
    if isinstance(step, RunCommand):
        return step
    again = tuple(each for each in step.messages if each.id in begun)
    return RunTurn(again) if again else step


def on_arrival(
    message: Message,
    turn: Sequence[Message],
    waiting: Sequence[Message],
    mode: BusyMode,
    *,
    bypass: Collection[str],
    stops: Collection[str],
) -> Arrival:
    """Return what a message does that arrives while a turn with the messages `turn` runs.

    A message interrupts only a turn that it can be answered together with, so no interruption is for nothing.
    """
    if message.kind == "command":
        if message.command in stops:
            return Arrival.STOP
        return Arrival.RUN_NOW if message.command in bypass else Arrival.WAIT
    if message.kind == "steer":
        return Arrival.STEER if _same_sender(message, turn) else Arrival.WAIT
    if message.kind != "normal" or message.has_media or not _same_sender(message, turn):
        return Arrival.WAIT
    if mode == "steer":
        is_queued = any(each.kind == "queue" for each in turn)
        return Arrival.WAIT if is_queued or _waits_behind(message, turn, waiting) else Arrival.STEER
    if mode == "interrupt" and _would_merge(message, turn, waiting, mode):
        return Arrival.INTERRUPT
    return Arrival.WAIT


def _first(waiting: Sequence[Message], mode: BusyMode) -> Message:
    if mode != "queue":
        for each in waiting:
            if each.kind != "queue":
                return each
    return waiting[0]


def _merged(first: Message, waiting: Sequence[Message], mode: BusyMode) -> Sequence[Message]:
    """Return a message and those that are answered with it: the following ones of the same sender."""
    merged = [first]
    for each in waiting:
        if each.id <= first.id or (each.kind == "queue" and mode != "queue"):
            continue
        if each.kind not in ("normal", "steer") or each.sender != first.sender:
            break
        if each.is_background != first.is_background:
            break
        if mode == "queue" and not _is_burst(merged, each):
            break
        merged.append(each)
    return tuple(merged)


def _is_burst(merged: Sequence[Message], message: Message) -> bool:
    """Whether a message follows the others so quickly that they belong together."""
    gap_s = message.accepted_at - merged[-1].accepted_at
    if message.has_media and merged[-1].has_media:
        return gap_s <= ALBUM_S
    return gap_s <= DEBOUNCE_S and message.accepted_at - merged[0].accepted_at <= DEBOUNCE_MOST_S


def _same_sender(message: Message, turn: Sequence[Message]) -> bool:
    return all(each.sender == message.sender and each.internal is None for each in turn)


def _waits_behind(message: Message, turn: Sequence[Message], waiting: Sequence[Message]) -> bool:
    """Whether an older message of the same sender waits, which must be answered first."""
    taken = {each.id for each in turn}
    return any(
        each.kind == "normal" and each.id < message.id and each.id not in taken and each.sender == message.sender
        for each in waiting
    )


def _would_merge(message: Message, turn: Sequence[Message], waiting: Sequence[Message], mode: BusyMode) -> bool:
    everything = sorted({each.id: each for each in (*turn, *waiting, message)}.values(), key=lambda each: each.id)
    step = next_step(everything, mode)
    if not isinstance(step, RunTurn):
        return False
    chosen = {each.id for each in step.messages}
    return message.id in chosen and chosen >= {each.id for each in turn}
