"""References in chats: read in the directory of the chat, with the toolset `files`, and nowhere else."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from hermes.agent.tools.toolbox import TOOLBOX
from hermes.errors import InvalidValue
from hermes.gateway.agents.workspaces import make_workspace
from hermes.gateway.engine.ports import TurnMessage, TurnRequest, TurnResult
from hermes_state import SessionDB
from tests.gateway.agents.lane import Lane, answer, brain_at, config_for, offer
from tests.support.modelserver import ModelServer, Received, Say

FILES = {"telegram": ("files", "memory")}


def workspace_of(home: Path, lane: Lane) -> Path:
    made = make_workspace(home, lane.owner, ("files",))
    assert made is not None
    return Path(made)


def turn(
    store: SessionDB, home: Path, request: TurnRequest, tools: Mapping[str, Sequence[str]]
) -> tuple[TurnResult, list[Received]]:
    """Run one turn and return its result and the requests to the model."""

    async def use() -> TurnResult:
        config = config_for(server, tools=tools)
        async with brain_at(server, store, home, config=config, tools=TOOLBOX) as brain:
            return await answer(brain, request)

    with ModelServer(Say("I see.")) as server:
        return asyncio.run(use()), server.requests


def test_file_of_the_chat_is_attached(store: SessionDB, home: Path) -> None:
    lane = Lane(store)
    (workspace_of(home, lane) / "a.txt").write_text("zebra\n")
    result, asked = turn(store, home, lane.request("see @file:a.txt"), FILES)
    assert (result.status, result.text, result.notices) == ("done", "I see.", ())
    (_, typed), (role, context), _ = lane.rows()
    assert (typed, role) == ("see @file:a.txt", "system")
    assert context.endswith("@file:a.txt (1 line)\n```\nzebra\n```")
    assert "zebra" in asked[0].messages[1]["content"]


@pytest.mark.parametrize("text", ["@file:a.txt", "@folder:.", "@diff", "@staged", "@git:1"])
def test_chat_without_the_toolset_gets_a_notice(store: SessionDB, home: Path, text: str) -> None:
    lane = Lane(store)
    (workspace_of(home, lane) / "a.txt").write_text("zebra\n")
    result, asked = turn(store, home, lane.request(text), {"telegram": ("memory", "recall")})
    assert result.notices == (f"{text} was not attached: this chat has no `files` tools",)
    assert lane.rows()[0] == ("user", text)
    assert "zebra" not in str(asked[0].messages)


@pytest.mark.parametrize(
    "path",
    [
        "/etc/hostname",
        "~/notes.txt",
        "../other/a.txt",
        "../../state.db",
        "../../../outside.txt",
        "link.txt",
        "linked/outside.txt",
        "/proc/self/environ",
        ".env",
    ],
)
def test_files_of_the_operator_are_never_attached(
    store: SessionDB, home: Path, tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = Lane(store)
    place = workspace_of(home, lane)
    monkeypatch.setenv("HOME", str(tmp_path))
    for each in (tmp_path / "notes.txt", tmp_path / "outside.txt", place / ".env"):
        each.write_text("TOP SECRET\n")
    (place.parent / "other").mkdir()
    (place.parent / "other" / "a.txt").write_text("TOP SECRET\n")
    (place / "link.txt").symlink_to(tmp_path / "outside.txt")
    (place / "linked").symlink_to(tmp_path)
    result, asked = turn(store, home, lane.request(f"@file:{path}"), FILES)
    assert result.status == "done"
    (notice,) = result.notices
    assert "was not attached" in notice
    assert "TOP SECRET" not in f"{asked[0].messages}{lane.rows()}"
    assert store.approvals.pending() == []


def test_repository_of_the_operator_is_never_attached(store: SessionDB, home: Path) -> None:
    lane = Lane(store)
    workspace_of(home, lane)
    result, _ = turn(store, home, lane.request("@diff @staged @git:2"), FILES)
    reason = "this directory is not in a git repository"
    assert result.notices == tuple(f"{each} was not attached: {reason}" for each in ("@diff", "@staged", "@git:2"))
    assert "Author" not in str(lane.rows())


def test_too_much_context_stores_nothing(store: SessionDB, home: Path) -> None:
    lane = Lane(store)
    (workspace_of(home, lane) / "large.txt").write_text("many words\n" * 100_000)
    result, asked = turn(store, home, lane.request("first", "see @file:large.txt"), FILES)
    assert result.status == "failed"
    assert isinstance(result.error, InvalidValue)
    assert "nothing was sent" in result.error.message
    assert (asked, lane.rows()) == ([], [])


def test_messages_of_one_turn_share_the_limit(store: SessionDB, home: Path) -> None:
    lane = Lane(store)
    (workspace_of(home, lane) / "a.txt").write_text("many words\n" * 15_000)
    result, _ = turn(store, home, lane.request("one @file:a.txt"), FILES)
    assert result.status == "done"
    assert "% of what the model can read" in result.notices[0]
    result, _ = turn(store, home, lane.request("two @file:a.txt", "three @file:a.txt"), FILES)
    assert result.status == "failed"


def test_message_that_comes_again_is_stored_once(store: SessionDB, home: Path) -> None:
    lane = Lane(store)
    place = workspace_of(home, lane) / "a.txt"
    place.write_text("zebra\n")
    turn(store, home, lane.request("see @file:a.txt"), FILES)
    place.write_text("changed\n")
    result, asked = turn(store, home, lane.request("see @file:a.txt"), FILES)
    assert (result.text, asked) == ("I see.", [])
    assert [role for role, _ in lane.rows()] == ["user", "system", "assistant"]


def test_message_with_a_reference_waits_for_the_next_turn(store: SessionDB, home: Path) -> None:
    offered = TurnMessage("1", "see @diff"), TurnMessage("2", "ada@example.org")
    assert offer(store, home, *offered) == [False, True]
