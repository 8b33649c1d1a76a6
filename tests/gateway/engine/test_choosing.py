"""Which messages form the next turn, and what a message does that arrives while a turn runs: tables and properties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.gateway.engine.choosing import Arrival, RunCommand, RunTurn, next_step, on_arrival
from hermes.gateway.engine.messages import Message
from hermes.gateway.engine.settings import BusyMode
from hermes.state.lanes.types import MessageKind
from tests.gateway.engine.pure_messages import message

MODES: tuple[BusyMode, ...] = get_args(BusyMode)
BYPASS, STOPS = {"status", "approve"}, {"stop", "new"}


def chosen(*waiting: Message, mode: BusyMode = "interrupt") -> list[int] | str | None:
    """The ids of the next turn, or the name of the next command."""
    step = next_step(waiting, mode)
    if step is None:
        return None
    if isinstance(step, RunCommand):
        return f"/{step.message.command}"
    return [each.id for each in step.messages]


def arrival(new: Message, turn: Sequence[Message], *others: Message, mode: BusyMode = "interrupt") -> Arrival:
    return on_arrival(new, turn, (*others, new), mode, bypass=BYPASS, stops=STOPS)


@pytest.mark.parametrize("mode", MODES)
def test_nothing_waits_so_there_is_no_step(mode: BusyMode) -> None:
    assert chosen(mode=mode) is None


@pytest.mark.parametrize("mode", ["interrupt", "steer", "collect"])
@pytest.mark.parametrize(
    ("waiting", "expected"),
    [
        ([message(1)], [1]),
        ([message(1), message(2)], [1, 2]),
        ([message(1), message(2, sender="b"), message(3)], [1]),
        ([message(1), message(2, "steer"), message(3)], [1, 2, 3]),
        ([message(1, "steer"), message(2)], [1, 2]),
        ([message(1), message(2, "queue"), message(3)], [1, 3]),
        ([message(1, "queue"), message(2, "queue")], [1]),
        ([message(1, "queue"), message(2)], [2]),
        ([message(1, "queue"), message(2, "command")], "/status"),
        ([message(1), message(2, "command"), message(3)], [1]),
        ([message(1, "command"), message(2)], "/status"),
        ([message(1, "internal"), message(2)], [1]),
        ([message(1), message(2, "internal"), message(3)], [1]),
        ([message(1, "queue"), message(2, "internal")], [2]),
        ([message(1, is_background=True), message(2)], [1]),
        ([message(n, has_media=True, at=n / 10) for n in range(1, 7)], [1, 2, 3, 4, 5, 6]),
    ],
)
def test_the_next_step_where_a_new_message_overtakes_the_queue(
    mode: BusyMode, waiting: list[Message], expected: list[int] | str
) -> None:
    assert chosen(*waiting, mode=mode) == expected


@pytest.mark.parametrize(
    ("waiting", "expected"),
    [
        ([message(1), message(2)], [1]),
        ([message(1, at=0.0), message(2, at=0.35), message(3, at=0.7), message(4, at=1.0), message(5, at=1.3)], None),
        ([message(1, at=0.0), message(2, at=0.3), message(3, at=0.7)], [1, 2]),
        ([message(1, "queue"), message(2)], [1]),
        ([message(1), message(2, "queue", at=1.1), message(3, at=1.2)], [1]),
        ([message(1, at=0.0), message(2, "command", at=0.1), message(3, at=0.2)], [1]),
        ([message(1, "command"), message(2)], "/status"),
        ([message(1, at=0.0), message(2, at=0.1, sender="b")], [1]),
        ([message(n, has_media=True, at=n * 1.9) for n in range(1, 7)], [1, 2, 3, 4, 5, 6]),
        ([message(1, has_media=True, at=0.0), message(2, has_media=True, at=2.1)], [1]),
        ([message(1, has_media=True, at=0.0), message(2, at=0.5)], [1]),
        ([message(1, has_media=True, at=0.0), message(2, at=0.3)], [1, 2]),
    ],
)
def test_the_next_step_in_queue_mode_keeps_the_order_and_merges_only_bursts(
    waiting: list[Message], expected: list[int] | str | None
) -> None:
    assert chosen(*waiting, mode="queue") == (expected or [1, 2, 3, 4])


A, B = message(1), message(1, sender="b")
NORMAL, OTHER = message(9), message(9, sender="b")
PHOTO = message(9, has_media=True)
WAIT, INTERRUPT, STEER, STOP, NOW = Arrival.WAIT, Arrival.INTERRUPT, Arrival.STEER, Arrival.STOP, Arrival.RUN_NOW


@pytest.mark.parametrize(
    ("new", "turn", "expected"),
    [
        (NORMAL, [A], {"interrupt": INTERRUPT, "steer": STEER}),
        (OTHER, [A], {}),
        (NORMAL, [A, message(2, sender="b")], {}),
        (PHOTO, [A], {}),
        (message(9, sender="b", has_media=True), [A], {}),
        (message(9, "queue"), [A], {}),
        (message(9, "queue", sender="b"), [A], {}),
        (message(9, "internal"), [A], {}),
        (message(9, "steer"), [A], dict.fromkeys(MODES, STEER)),
        (message(9, "steer", sender="b"), [A], {}),
        (message(9, "steer"), [message(1, "queue")], dict.fromkeys(MODES, STEER)),
        (NORMAL, [message(1, "queue")], {}),
        (NORMAL, [message(1, "internal")], {}),
        (message(9, "steer"), [message(1, "internal")], {}),
        (NORMAL, [message(1, "command", command="retry")], {"steer": STEER}),
        (message(9, "command", command="stop"), [A], dict.fromkeys(MODES, STOP)),
        (message(9, "command", command="new", sender="b"), [A], dict.fromkeys(MODES, STOP)),
        (message(9, "command", command="status"), [A], dict.fromkeys(MODES, NOW)),
        (message(9, "command", command="undo"), [A], {}),
        (message(9, "command", command="stop"), [message(1, "internal")], dict.fromkeys(MODES, STOP)),
    ],
)
@pytest.mark.parametrize("mode", MODES)
def test_what_an_arriving_message_does(
    mode: BusyMode, new: Message, turn: list[Message], expected: dict[str, Arrival]
) -> None:
    assert arrival(new, turn, mode=mode) is expected.get(mode, WAIT)


def test_a_message_behind_that_of_another_sender_interrupts_no_turn() -> None:
    assert arrival(message(3), [A], message(2, sender="b")) is WAIT


def test_a_message_behind_a_command_interrupts_no_turn() -> None:
    assert arrival(message(3), [A], message(2, "command", command="undo")) is WAIT


def test_queued_messages_do_not_protect_a_turn_from_an_interruption() -> None:
    assert arrival(message(3), [A], message(2, "queue")) is INTERRUPT


def test_a_message_behind_a_waiting_photo_of_the_same_sender_interrupts_and_takes_the_photo_with_it() -> None:
    assert arrival(message(3), [A], message(2, has_media=True)) is INTERRUPT
    assert chosen(A, message(2, has_media=True), message(3)) == [1, 2, 3]


# --- properties -------------------------------------------------------------------------------------------------------

KINDS: tuple[MessageKind, ...] = ("normal", "queue", "steer", "command", "internal")


@st.composite
def queues(draw: st.DrawFn, min_size: int = 0) -> list[Message]:
    """Waiting messages in the order of their arrival."""
    found, at = [], 0.0
    for number in range(1, draw(st.integers(min_size, 8)) + 1):
        at += draw(st.sampled_from((0.1, 0.4, 1.5, 60.0)))
        kind = draw(st.sampled_from(KINDS))
        media = kind == "normal" and draw(st.booleans())
        command = draw(st.sampled_from(("status", "stop", "undo"))) if kind == "command" else None
        fields = {} if command is None else {"command": command}
        found.append(message(number, kind, draw(st.sampled_from("ab")), at=at, has_media=media, **fields))
    return found


@given(queues(min_size=1), st.sampled_from(MODES))
def test_a_turn_never_mixes_senders_and_never_merges_queued_or_internal_messages(
    waiting: list[Message], mode: BusyMode
) -> None:
    step = next_step(waiting, mode)
    assert step is not None
    if isinstance(step, RunTurn):
        kinds = {each.kind for each in step.messages}
        assert len({each.sender for each in step.messages}) == 1
        assert "command" not in kinds
        assert len(step.messages) == 1 or kinds <= {"normal", "steer"}
        assert [each.id for each in step.messages] == sorted({each.id for each in step.messages})


@given(queues(min_size=1), st.sampled_from(MODES))
def test_the_next_step_is_the_same_whenever_it_is_asked(waiting: list[Message], mode: BusyMode) -> None:
    assert next_step(waiting, mode) == next_step(list(waiting), mode)


@given(queues(min_size=1), st.sampled_from(MODES))
def test_every_message_gets_its_step_and_those_of_people_keep_their_order(
    waiting: list[Message], mode: BusyMode
) -> None:
    rest, done = list(waiting), []
    while (step := next_step(rest, mode)) is not None:
        ids = [step.message.id] if isinstance(step, RunCommand) else [each.id for each in step.messages]
        assert ids
        rest = [each for each in rest if each.id not in ids]
        done += ids
    kinds = {each.id: each.kind for each in waiting}
    assert sorted(done) == [each.id for each in waiting]
    queued = [number for number in done if kinds[number] == "queue"]
    others = [number for number in done if kinds[number] != "queue"]
    assert queued == sorted(queued)
    assert others == sorted(others)
    if mode == "queue":
        assert done == sorted(done)


@given(queues(min_size=1), st.sampled_from(MODES))
def test_the_oldest_command_runs_before_every_message_of_a_person_behind_it(
    waiting: list[Message], mode: BusyMode
) -> None:
    step = next_step(waiting, mode)
    commands = [each.id for each in waiting if each.kind == "command"]
    assert step is not None
    if commands and isinstance(step, RunTurn):
        assert all(each.id < commands[0] for each in step.messages)


@given(queues(min_size=2), st.sampled_from(MODES))
def test_an_interruption_is_followed_by_a_turn_that_answers_both(waiting: list[Message], mode: BusyMode) -> None:
    *before, new = waiting
    step = next_step(before, mode)
    if not isinstance(step, RunTurn):
        return
    turn = step.messages
    ids = {each.id for each in turn}
    behind = [each for each in before if each.id not in ids]
    if on_arrival(new, turn, (*behind, new), mode, bypass=BYPASS, stops=STOPS) is Arrival.INTERRUPT:
        after = next_step(waiting, mode)
        assert isinstance(after, RunTurn)
        assert {each.id for each in after.messages} >= ids | {new.id}
