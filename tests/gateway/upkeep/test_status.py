"""The state of a gateway from the database, and the lag of the event loop."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from hermes.gateway.upkeep.loop_lag import MOST_SAMPLES, LoopLag, quantile
from hermes.gateway.upkeep.status import age_s, database_figures, leases_by_node, node_of
from hermes_state import SessionDB
from tests.support.lanes import accept, claim, start_lane, turn_of


class TestDatabase:
    def test_running_turn_is_described(self, home: Path) -> None:
        with SessionDB(home / "state.db") as store:
            start_lane(store)
            accept(store, "a")
            accept(store, "b")
            taken = claim(store, "desk/0badcafe")
            store.turns.progress(taken.lease, turn_of(taken), {"steps": 1, "activity": "running terminal"})
            found = database_figures(store)
        (turn,) = found["turns"]
        assert (turn["turn_id"], turn["session_id"], turn["steps"]) == (turn_of(taken), "s1", 1)
        assert (turn["node"], turn["holder"], turn["activity"]) == ("desk", "desk/0badcafe", "running terminal")
        assert turn["seconds"] >= 0
        assert found["leases"] == [{"node": "desk", "holder": "desk/0badcafe", "lanes": 1, "ended": 0}]
        assert (found["lanes"], found["running"], found["held"]) == (1, 1, 0)
        assert (found["waiting"]["messages"], found["waiting"]["lanes"]) == (1, 1)
        assert found["waiting"]["oldest_s"] >= 0
        assert found["undelivered"] == {"messages": 0, "oldest_s": None}

    def test_note_of_another_version_is_not_an_activity(self, home: Path) -> None:
        with SessionDB(home / "state.db") as store:
            accept(store, "a")
            taken = claim(store)
            store.turns.progress(taken.lease, turn_of(taken), {"activity": ["walking"]})
            assert database_figures(store)["turns"][0]["activity"] is None

    def test_reading_writes_nothing(self, home: Path) -> None:
        with SessionDB(home / "state.db") as store:
            accept(store, "a")
        with SessionDB(home / "state.db", read_only=True) as store:
            assert database_figures(store)["waiting"]["messages"] == 1


def test_holder_names_its_node() -> None:
    assert [node_of(each) for each in ("desk/0badcafe", "desk", "")] == ["desk", "desk", ""]
    assert leases_by_node({"a/1": 2, "b/1": 1, "a/2": 3}) == {"a": 5, "b": 1}


def test_age_is_never_negative() -> None:
    assert (age_s(None, 5.0), age_s(2.0, 5.0), age_s(7.0, 5.0)) == (None, 3.0, 0.0)


class TestLoopLag:
    @pytest.mark.parametrize(
        ("part", "expected"), [(0.0, 1.0), (0.5, 50.0), (0.99, 99.0), (0.991, 100.0), (1.0, 100.0)]
    )
    def test_quantile_is_a_value_that_this_part_does_not_exceed(self, part: float, expected: float) -> None:
        assert quantile([float(number) for number in range(1, 101)], part) == expected

    def test_figures_of_no_samples_are_zero(self) -> None:
        assert LoopLag().figures().max_s == 0

    def test_oldest_samples_are_dropped(self) -> None:
        lag = LoopLag()
        lag.add(9.0)
        for _ in range(MOST_SAMPLES):
            lag.add(0.001)
        found = lag.figures()
        assert (found.samples, found.max_s, found.p50_s) == (MOST_SAMPLES, 0.001, 0.001)

    def test_recent_lag_is_that_of_the_last_samples(self) -> None:
        lag = LoopLag()
        for each in (9.0, *[0.0] * 20):
            lag.add(each)
        assert (lag.figures().max_s, lag.figures().recent_s) == (9.0, 0.0)

    def test_loop_that_is_blocked_is_late(self) -> None:
        async def measure() -> float:
            lag = LoopLag(sleep_s=0.001)
            task = asyncio.create_task(lag.run())
            await asyncio.sleep(0.01)
            time.sleep(0.2)  # this is what must be noticed
            await asyncio.sleep(0.01)
            task.cancel()
            return lag.figures().max_s

        assert asyncio.run(measure()) >= 0.15
