"""Quotas and approvals of several processes, some of which are killed: nothing is counted or used twice, or lost."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from hermes.state.provider import SessionDBProvider
from tests.contract.lanes.limits_child import DAY, SCOPES
from tests.support.lanes import KEY, start_lane
from tests.support.mysql import in_database
from tests.support.servers import dsn_of
from tests.support.stores import engine_of

ROOT = Path(__file__).parents[3]
PROCESSES = 8


def settings_of(store: SessionDBProvider) -> dict[str, str]:
    """The settings with which another process opens the same store."""
    engine: object = engine_of(store)
    if store.health()["provider"] == "sqlite":
        return {"path": str(engine.path)}  # type: ignore[attr-defined]
    if store.health()["provider"] == "postgresql":
        return {"provider": "postgresql", "dsn": dsn_of("postgresql"), "schema": engine._schema}  # type: ignore[attr-defined]
    database = engine._database.pool._address.database  # type: ignore[attr-defined]
    return {"provider": "mysql", "dsn": in_database(dsn_of("mysql"), database)}


class Child:
    """A process that uses quotas and approvals."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.contract.lanes.limits_child"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.say(json.dumps(settings))

    def say(self, line: str) -> None:
        """Write a line to the process."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def read(self, lines: int) -> list[str]:
        """Wait for this many lines."""
        assert self.process.stdout is not None
        return [self.process.stdout.readline().strip() for _ in range(lines)]

    def rest(self) -> list[str]:
        """The other lines, when the process has ended."""
        with self.process:
            assert self.process.stdout is not None
            return self.process.stdout.read().splitlines()


@pytest.mark.parametrize("killed", [0, 5])
def test_processes_count_every_turn_and_use_every_approval_once(store: SessionDBProvider, killed: int) -> None:
    start_lane(store)
    approvals = [store.approvals.request(KEY, "s1", "terminal", f"{each}", ttl_seconds=600) for each in range(15)]
    children = [Child(settings_of(store)) for _ in range(PROCESSES)]
    assert [child.read(1) for child in children] == [["ready"]] * PROCESSES
    for child in children:
        child.say("go")
    lines: list[str] = []
    for number, child in enumerate(children[:killed]):
        lines += child.read(4 + 3 * number)
        child.process.kill()
    for child in children:
        lines += child.rest()
    assert [child.process.returncode for child in children[killed:]] == [0] * (PROCESSES - killed)
    counted = Counter(line.partition(" ")[0] for line in lines)
    used = [store.quotas.read(scope, DAY) for scope in SCOPES]
    assert used[0] == used[1] == used[2]  # a call counts in all scopes or in none
    assert used[0].turns == 200
    # The call in which a process died may have been committed.
    assert 0 <= 200 - counted["begun"] <= killed
    assert 0 <= used[0].tokens // 3 - counted["added"] <= killed
    assert used[0].cost_usd == used[0].tokens // 3 * 0.5
    ids = [line.split()[1] for line in lines if line.startswith("used")]
    assert len(ids) == len(set(ids))
    states = Counter(row["state"] for row in map(store.approvals.get, [each["id"] for each in approvals]) if row)
    assert states == {"used": 15}
    assert 0 <= 15 - len(ids) <= killed
