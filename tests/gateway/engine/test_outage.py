"""Failures that repeat are in the log once, and so is their end."""

from __future__ import annotations

import logging

import pytest

from hermes.errors import StoreUnavailable
from hermes.gateway.engine import dispatcher
from hermes.gateway.engine.outage import Outage
from hermes.state.asynchronous.lanes import AsyncTurns
from tests.gateway.engine.conftest import RunScenario
from tests.gateway.engine.engine_node import EngineNode


def test_only_the_first_failure_and_the_end_are_written_down(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    outage = Outage("hermes.test", "the well could not be reached")
    outage.worked()
    for _ in range(2):
        for _ in range(3):
            outage.failed(ValueError("dry"))
        outage.worked()
        outage.worked()
    assert [each.getMessage() for each in caplog.records] == 2 * [
        "the well could not be reached: ValueError: dry",
        "the well could not be reached, 3 times; now it works again",
    ]


def test_a_database_that_is_away_for_long_does_not_fill_the_log(
    run: RunScenario, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(dispatcher, "LOOK_S", 0.01)

    async def scenario(node: EngineNode) -> None:
        tries = 0

        async def fail(*_: object, **__: object) -> None:
            nonlocal tries
            tries += 1
            raise StoreUnavailable("the database cannot be reached")

        async def has_tried() -> bool:
            return tries > 5

        with monkeypatch.context() as patch:
            patch.setattr(AsyncTurns, "claim_next", fail)
            await node.say("one")
            await node.until(has_tried, "several tries")
        turn = await node.brain.next_turn()
        turn.answer()
        await node.idle()

    run(scenario)
    assert len([each for each in caplog.records if "no lane could be claimed" in each.getMessage()]) == 1
