"""Accounts that allow one poller: one node of all polls, and another one when that node ends."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import pytest

from hermes.gateway.engine.ports import Receive
from hermes.platforms.base.adapter import BaseAdapter
from tests.gateway.reliability.world import LEASE_S, World
from tests.support.waiting import wait_until


@dataclass
class Account:
    """An account of a platform, and who polls it."""

    pollers: list[str] = field(default_factory=list)
    history: list[str] = field(default_factory=list)
    most: int = 0


class Poller(BaseAdapter):
    """An adapter that polls an account."""

    platform = "faulty"
    needs_one_poller = True

    def __init__(self, account: Account, name: str) -> None:
        super().__init__()
        self._pollers = account
        self._name = name

    async def start(self, receive: Receive) -> None:
        """Begin to poll."""
        await super().start(receive)
        self._pollers.pollers.append(self._name)
        self._pollers.history.append(self._name)
        self._pollers.most = max(self._pollers.most, len(self._pollers.pollers))

    async def stop(self) -> None:
        """Poll no more."""
        self._pollers.pollers.remove(self._name)
        await super().stop()


def test_22_of_two_pollers_of_one_account_one_polls_and_the_other_says_so_once(
    one: World, caplog: pytest.LogCaptureFixture
) -> None:
    account = Account()
    north = one.thread("north", adapters=lambda _: [Poller(account, "north")])
    wait_until(lambda: account.pollers == ["north"], "the first node to poll")
    south = one.thread("south", adapters=lambda _: [Poller(account, "south")])
    wait_until(lambda: "faulty" in south.runner.connectors.states, "the second node to try")
    threading.Event().wait(LEASE_S)  # it tries again several times
    assert (account.history, south.runner.connectors.states["faulty"]) == (["north"], "polled by north")
    assert [text for text in caplog.messages if "polled by" in text] == [
        "faulty is polled by north; this node waits",
    ]
    north.stop()
    wait_until(lambda: account.pollers == ["south"], "the second node to poll")
    assert (account.history, account.most) == (["north", "south"], 1)
