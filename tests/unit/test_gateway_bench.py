"""The measurements of the gateway: what they count, and when a bar is missed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bench.gateway import report
from bench.gateway.calls import counted_calls
from bench.gateway.guarding import counted_refusals
from bench.gateway.load import measure_load
from bench.gateway.synthetic import SyntheticNode, inbound, write_settings
from bench.job import Result
from hermes_state import SessionDB

BUSY: Result = {"lag_p99": 5.0, "accepted": 240.0, "refused": 0.0, "load": 1.0}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    return tmp_path


def test_transactions_are_counted_by_operation(tmp_path: Path) -> None:
    with SessionDB(tmp_path / "state.db") as store, counted_calls() as calls:
        store.inbox.accept("lane", {"text": "hi"}, platform="telegram")
        store.inbox.depth("lane")
    assert (calls.writes["Inbox.accept"], calls.reads["Inbox.depth"]) == (1, 1)


def test_a_store_call_on_the_event_loop_is_counted_although_its_error_is_caught(tmp_path: Path) -> None:
    async def call(store: SessionDB) -> None:
        with pytest.raises(RuntimeError):
            store.lanes.count()

    with SessionDB(tmp_path / "state.db") as store, counted_refusals() as refusals:
        asyncio.run(call(store))
    assert (refusals.count, "Lanes.count" in refusals.first) == (1, True)


def test_a_busy_node_accepts_messages_and_calls_no_store_on_its_loop(home: Path) -> None:
    result = asyncio.run(measure_load(home, lanes=5, turns=2, seconds=0.4, turn_s=0.2))
    assert (result["refused"], result["first_refused"]) == (0, "")
    assert float(result["accepted"]) > 0
    assert float(result["write Inbox.accept"]) > 0


def test_a_message_is_accepted_with_one_transaction(home: Path) -> None:
    async def receive() -> tuple[str, int, dict[str, int]]:
        write_settings(home)
        node = SyntheticNode(home, turn_s=0.01)
        await node.start()
        try:
            node.drain()
            await node.intake.receive(inbound(1, 1))
            with counted_calls() as calls:
                admission = await node.intake.receive(inbound(1, 2))
            return admission.state, calls.writes["Inbox.accept"], {"depth": calls.reads["Inbox.depth"]}
        finally:
            await node.stop()

    assert asyncio.run(receive()) == ("accepted", 1, {"depth": 0})


@pytest.mark.parametrize(
    ("changed", "missed"),
    [
        ({}, []),
        ({"lag_p99": 20.5}, ["event-loop lag p99, 50 turns at a time"]),
        ({"accepted": 199.0}, ["  messages accepted meanwhile, offered 250/s"]),
        ({"refused": 1.0}, ["  store calls on the event loop, by the guard"]),
    ],
)
def test_a_missed_bar_of_a_busy_node_is_shown(changed: Result, missed: list[str]) -> None:
    lines = report.load_lines({**BUSY, **changed}, 50)
    assert [line.label for line in lines if line.is_met is False] == missed


@pytest.mark.parametrize(("writes", "changes", "is_met"), [(0, 0, True), (1, 0, False), (0, 1, False), (0, -1, False)])
def test_an_idle_node_may_write_nothing(writes: float, changes: float, is_met: bool) -> None:
    assert report.idle_line({"writes": writes, "changes": changes}, "SQLite", 65.0).is_met is is_met


@pytest.mark.parametrize(
    ("per_lane", "objects", "actors", "met"),
    [
        (100.0, 0.0, 0.0, [True, True]),
        (5000.0, 0.0, 0.0, [True, False]),
        (0.0, 3.0, 0.0, [False, True]),
        (0, 0, 1, [False, True]),
    ],
)
def test_memory_that_stays_for_idle_lanes_is_shown(
    per_lane: float, objects: float, actors: float, met: list[bool]
) -> None:
    memory: Result = {"per_lane": per_lane, "objects": objects, "actors": actors, "cached": 128.0}
    assert [line.is_met for line in report.quiet_lines({"ready": 300.0}, memory, 100_000)][1:] == met


def test_the_table_has_a_line_for_each_measurement() -> None:
    lines = [report.takeover_line({"max": 3100.0, "median": 1900.0, "load": 2.0}, "SQLite", 2.0)]
    text = report.markdown(report.GatewayReport(lines))
    assert text.splitlines()[-1].endswith("| 3.10 s at most, median 1.90 s |  | 2.0 | <= 3 s | no |")
