"""Permissions in chats: requested, decided later, and used once with exactly the arguments that a person saw."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hermes.agent.tools.toolbox import TOOLBOX
from hermes.errors import StaleLease
from hermes.gateway.agents.approvals import uid_of
from hermes.gateway.agents.brain import AgentBrain
from hermes.gateway.agents.workspaces import workspace_path
from hermes.state.lanes.approvals import ApprovalRow, ApprovalScope
from hermes_state import SessionDB
from tests.gateway.agents.lane import Lane, answer, blocking, brain_at, config_for
from tests.support.modelserver import Call, ModelServer, Received, Say
from tests.support.plainsql import change

COMMAND = "echo done >> made.txt; cat made.txt"
ASKS = Say("I need that.", calls=[Call("terminal", {"command": COMMAND})])


class Desk:
    """A lane with the terminal tool, and the requests that its approvers have seen."""

    def __init__(self, store: SessionDB, home: Path) -> None:
        self.store, self.home = store, home
        self.lane = Lane(store)
        self.seen: list[ApprovalRow] = []

    @asynccontextmanager
    async def brain(self, server: ModelServer) -> AsyncIterator[AgentBrain]:
        config = config_for(server, tools={"telegram": ("terminal", "files")})
        options = {"tools": TOOLBOX, "on_request": lambda row, account: self.seen.append(row)}
        async with brain_at(server, self.store, self.home, config=config, **options) as brain:
            yield brain

    def run(self, decide: Callable[[str], object], *then: Say) -> list[Received]:
        """Let the model ask for a permission, decide, and run the turn that follows, each in a gateway of its own."""

        async def use() -> list[Received]:
            with ModelServer(ASKS, Say("I have asked."), *then) as server:
                async with self.brain(server) as brain:
                    assert (await answer(brain, self.lane.request("do it"))).text == "I have asked."
                (row,) = self.seen
                await blocking(lambda: decide(row["id"]))
                async with self.brain(server) as brain:
                    result = await answer(brain, self.lane.request(approval_id=row["id"]))
                    assert (result.status, result.error) == ("done", None)
            return server.requests

        return asyncio.run(use())

    def decide(self, approve: bool, scope: ApprovalScope = "once") -> Callable[[str], object]:
        return lambda approval_id: self.store.approvals.decide(approval_id, approve, "telegram:1", scope)

    @property
    def made(self) -> list[str]:
        """The lines that the command has written."""
        folder = workspace_path(self.home, self.lane.owner)
        assert folder is not None
        return (folder / "made.txt").read_text().split() if (folder / "made.txt").exists() else []

    @property
    def told(self) -> str:
        """The last message that stands for the user."""
        return str([text for role, text in self.lane.rows() if role == "user"][-1])


@pytest.fixture
def desk(store: SessionDB, home: Path) -> Desk:
    return Desk(store, home)


def test_a_request_is_stored_and_the_turn_ends_without_it(desk: Desk) -> None:
    asked = desk.run(desk.decide(approve=False))
    (row,) = desk.seen
    assert (row["tool"], row["subject"], row["session_key"]) == ("terminal", COMMAND, desk.lane.key)
    assert (row["owner"], row["platform"]) == (desk.lane.owner.stored, "telegram")
    assert row["id"] in asked[1].last_text
    assert "has not been done" in asked[1].last_text


def test_an_approved_call_runs_after_a_restart_with_its_exact_arguments(desk: Desk) -> None:
    desk.run(desk.decide(approve=True))
    assert desk.made == ["done"]
    assert "was allowed by telegram:1 and has run now" in desk.told
    assert COMMAND in desk.told
    row = desk.store.approvals.get(desk.seen[0]["id"])
    assert row is not None
    assert row["state"] == "used"


def test_an_approved_call_runs_once_although_its_turn_is_repeated(desk: Desk) -> None:
    desk.run(desk.decide(approve=True))

    async def repeat() -> None:
        with ModelServer() as server:
            async with desk.brain(server) as brain:
                result = await answer(brain, desk.lane.request(approval_id=desk.seen[0]["id"]))
                assert result.status == "done"
            assert server.requests == []

    asyncio.run(repeat())
    assert desk.made == ["done"]


def test_a_call_whose_result_was_lost_is_not_repeated(desk: Desk) -> None:
    def use_up(approval_id: str) -> None:
        desk.decide(approve=True)(approval_id)
        row = desk.store.approvals.get(approval_id)
        assert row is not None
        assert desk.store.approvals.use(approval_id, row["digest"])

    desk.run(use_up)
    assert desk.made == []
    assert "may or may not have taken effect" in desk.told


def test_a_denied_request_is_not_run(desk: Desk) -> None:
    desk.run(desk.decide(approve=False))
    assert desk.made == []
    assert "was denied by telegram:1" in desk.told


def test_an_undecided_request_is_not_run(desk: Desk) -> None:
    desk.run(lambda _: None)
    assert desk.made == []
    assert "not decided yet" in desk.told


def test_an_expired_request_is_not_run(desk: Desk) -> None:
    desk.run(lambda _: change(desk.home / "state.db", "UPDATE approvals SET expires_at = 1"))
    assert desk.made == []
    assert "not decided in time" in desk.told


@pytest.mark.parametrize(
    "changed", ['arguments = \'{"command": "touch evil"}\'', "directory = '/'", "tool = 'process'"]
)
def test_a_changed_call_is_void(desk: Desk, changed: str) -> None:
    def decide(approval_id: str) -> None:
        desk.decide(approve=True)(approval_id)
        change(desk.home / "state.db", f"UPDATE approvals SET {changed}")

    desk.run(decide)
    assert desk.made == []
    assert "was changed after it was allowed" in desk.told


def test_a_permission_for_the_session_covers_the_next_call(desk: Desk) -> None:
    desk.run(desk.decide(approve=True, scope="session"), ASKS, Say("Done again."))
    assert desk.made == ["done", "done"]
    assert len(desk.seen) == 1


def test_a_repeated_call_gets_the_same_request(desk: Desk) -> None:
    async def use() -> None:
        with ModelServer(ASKS, ASKS, Say("I have asked twice.")) as server:
            async with desk.brain(server) as brain:
                await answer(brain, desk.lane.request("do it"))

    asyncio.run(use())
    assert len({row["id"] for row in desk.seen}) == 1
    assert len(desk.store.approvals.pending()) == 1


def test_the_request_of_another_lane_is_unknown(desk: Desk, store: SessionDB) -> None:
    other = Lane(store, user="8", session_id="s8")

    async def use() -> None:
        with ModelServer(ASKS, Say("I have asked.")) as server:
            async with desk.brain(server) as brain:
                await answer(brain, desk.lane.request("do it"))
                approval_id = desk.seen[0]["id"]
                await blocking(lambda: desk.decide(approve=True)(approval_id))
                await answer(brain, other.request(approval_id=approval_id))

    asyncio.run(use())
    assert "There is no request" in other.rows()[0][1]
    assert desk.made == []


def test_after_a_reset_the_approved_call_is_not_run(desk: Desk, store: SessionDB) -> None:
    def reset(approval_id: str) -> None:
        desk.decide(approve=True)(approval_id)
        store.turns.release(desk.lane.lease)
        desk.lane = Lane(store, session_id="s2")

    desk.run(reset)
    assert desk.made == []
    assert "belongs to an earlier session" in desk.told


def test_a_node_without_the_lease_does_not_run_the_call(desk: Desk, store: SessionDB) -> None:
    async def use() -> None:
        with ModelServer(ASKS, Say("I have asked.")) as server:
            async with desk.brain(server) as brain:
                await answer(brain, desk.lane.request("do it"))
                approval_id = desk.seen[0]["id"]
                await blocking(lambda: desk.decide(approve=True)(approval_id))
                await blocking(lambda: store.turns.release(desk.lane.lease))
                await blocking(lambda: store.turns.acquire(desk.lane.key, "n2"))
                result = await answer(brain, desk.lane.request(approval_id=approval_id))
                assert (result.status, type(result.error)) == ("failed", StaleLease)

    asyncio.run(use())
    assert desk.made == []
    row = store.approvals.get(desk.seen[0]["id"])
    assert row is not None
    assert row["state"] == "approved"


def test_the_uid_does_not_depend_on_how_the_id_was_typed() -> None:
    assert uid_of(" ab3def ") == uid_of("AB3DEF")
