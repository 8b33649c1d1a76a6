"""What a brain does when a session ends, and the directories in which its tools work."""

from __future__ import annotations

import asyncio
import stat
import threading
from pathlib import Path

import pytest

from hermes.agent.conversation import Conversation
from hermes.agent.tools.toolbox import TOOLBOX
from hermes.errors import StaleLease
from hermes.gateway.agents import brain as brain_module
from hermes.gateway.agents.workspaces import make_workspace, workspace_path
from hermes.state.owner import TERMINAL, owner_of
from hermes_state import SessionDB
from tests.gateway.agents.lane import Lane, answer, blocking, brain_at, config_for, until
from tests.support.modelserver import Call, ModelServer, Received, Say

NOTE = Say(calls=[Call("memory", {"action": "add", "text": "Likes tea."})])


def test_memories_are_saved_and_the_transcript_stays(store: SessionDB, home: Path) -> None:
    lane = Lane(store)

    async def use() -> None:
        with ModelServer(Say("Noted."), NOTE, Say("ok")) as server:
            config = config_for(server, tools={"default": ("memory",)})
            async with brain_at(server, store, home, config=config, tools=TOOLBOX) as brain:
                await answer(brain, lane.request("I like tea"))
                who = (lane.key, lane.session_id, lane.owner, lane.lease)
                assert await brain.save_memories(*who, 0) is False
                assert await brain.save_memories(*who, 30) is True
                assert "Likes tea." in await blocking(lambda: brain.agent.memory.read(lane.owner))

    asyncio.run(use())
    assert lane.rows() == [("user", "I like tea"), ("assistant", "Noted.")]


def test_saving_memories_ends_in_time(store: SessionDB, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lane, may_end = Lane(store), threading.Event()
    monkeypatch.setattr(brain_module, "MEMORY_GRACE_S", 0.1)

    def hang(*_: object) -> bool:
        return may_end.wait(60)

    monkeypatch.setattr(Conversation, "save_memories", hang)

    async def use() -> None:
        async with brain_at(None, store, home) as brain:
            assert await brain.save_memories(lane.key, lane.session_id, lane.owner, lane.lease, 0.1) is False
            assert brain.figures().abandoned == 1
            may_end.set()
            await until(lambda: brain.figures().abandoned == 0, "the thread ends")

    asyncio.run(use())


def test_saving_memories_of_an_unknown_session_is_no_failure(store: SessionDB, home: Path) -> None:
    lane = Lane(store)

    async def use() -> None:
        async with brain_at(None, store, home) as brain:
            assert await brain.save_memories(lane.key, "nothing", lane.owner, lane.lease, 5) is False

    asyncio.run(use())


def test_saving_memories_without_the_lease_is_refused(store: SessionDB, home: Path) -> None:
    lane = Lane(store)
    store.end_session("s1", "session_reset")
    store.turns.release(lane.lease)
    stale = lane.lease
    lane.take()

    async def use() -> None:
        async with brain_at(None, store, home) as brain:
            with pytest.raises(StaleLease):
                await brain.save_memories(lane.key, lane.session_id, lane.owner, stale, 5)

    asyncio.run(use())
    row = store.get_session("s1")
    assert row is not None
    assert row["ended_at"] is not None


def test_the_end_of_a_session_ends_its_processes(store: SessionDB, home: Path, tmp_path: Path) -> None:
    lane = Lane(store)

    async def use() -> None:
        async with brain_at(None, store, home) as brain:
            await answer(brain, lane.request("hi"))
            assert not await blocking(lambda: brain.has_processes(lane.key))
            processes = brain.agent.processes
            started = await blocking(lambda: processes.start("s1", "sleep 60", cwd=tmp_path, environ={}))
            assert await blocking(lambda: brain.has_processes(lane.key))
            assert not await blocking(lambda: brain.has_processes("agent:main:telegram:dm:other"))
            await brain.end_session(lane.key, "s1")
            assert not started.process.is_running
            assert brain.figures().cache.entries == 0

    asyncio.run(use())


def test_tools_work_in_a_directory_of_the_owner(store: SessionDB, home: Path) -> None:
    lane, other = Lane(store), Lane(store, user="8", session_id="s8")

    async def use() -> list[Received]:
        with ModelServer() as server:
            config = config_for(server, tools={"telegram": ("terminal", "files")})
            async with brain_at(server, store, home, config=config, tools=TOOLBOX) as brain:
                for each in (lane, other):
                    await answer(brain, each.request("hi"))
        return server.requests

    asked = asyncio.run(use())
    assert sorted(asked[0].tool_names) == ["edit_file", "process", "read_file", "terminal", "write_file"]
    folders = [workspace_path(home, each.owner) for each in (lane, other)]
    assert sorted((home / "workspaces").iterdir()) == sorted(filter(None, folders))
    for folder, request in zip(folders, asked, strict=True):
        assert folder is not None
        assert len(folder.name) == 16
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert str(folder) in request.messages[0]["content"]


def test_no_directory_is_made_for_tools_that_need_none(tmp_path: Path) -> None:
    owner = owner_of("telegram", "7")
    assert make_workspace(tmp_path, owner, {"memory", "recall"}) is None
    assert make_workspace(tmp_path, TERMINAL, {"terminal"}) is None
    assert list(tmp_path.iterdir()) == []
    assert make_workspace(tmp_path, owner, {"files"}) == str(workspace_path(tmp_path, owner))


def test_ids_that_differ_in_case_have_directories_of_their_own(tmp_path: Path) -> None:
    first, second = (workspace_path(tmp_path, owner_of("telegram", user)) for user in ("Ä", "ä"))
    assert first != second
