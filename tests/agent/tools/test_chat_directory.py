"""Tools for files and commands work in a chat only with a directory of its own."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hermes.agent.conversation import Conversation
from hermes.agent.models.model import Cancellation, ToolCall
from hermes.agent.tools.toolbox import TOOLBOX
from hermes.config import Config
from hermes.state.owner import EVERYBODY, owner_of
from hermes.state.provider import SessionDBProvider
from tests.agent.talking import agent_at
from tests.agent.tools.workbench import Workbench
from tests.support.modelserver import ModelServer, Say

ME = owner_of("telegram", "1")
CONFIG = Config(tools={"telegram": ("terminal", "files", "memory")})


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Directories by name; the program runs in one of them."""
    names = {"own": "owners/one", "program": "program/here", "home": "people/me", "hermes": "data/hermes"}
    places = {name: tmp_path / path for name, path in names.items()}
    for each in places.values():
        each.mkdir(parents=True)
    monkeypatch.chdir(places["program"])
    monkeypatch.setenv("HOME", str(places["home"]))
    return places


def tools_of(store: SessionDBProvider, hermes: Path, source: str, cwd: str | None) -> tuple[Conversation, list[str]]:
    """A conversation after its first turn, and the tools that its model got."""
    with ModelServer(Say("ok")) as server:
        agent = agent_at(server, store, hermes, CONFIG, tools=TOOLBOX)
        asker = EVERYBODY if source == "cli" else ME
        conversation = Conversation.start(agent, source, asker=asker, user_id="1", cwd=cwd)
        conversation.say("hi")
        return conversation, server.requests[0].tool_names


def test_chat_with_its_own_directory_has_the_tools(store: SessionDBProvider, places: dict[str, Path]) -> None:
    conversation, tools = tools_of(store, places["hermes"], "telegram", str(places["own"]))
    assert tools == ["edit_file", "memory", "process", "read_file", "terminal", "write_file"]
    assert str(places["own"]) in conversation.session.prompt
    (places["own"] / "here").write_text("mine")
    result = conversation.agent.tools.run(
        ToolCall("c", "read_file", '{"path": "here"}'), conversation.session.tools.context(Cancellation())
    )
    assert result.text == "1\tmine"


@pytest.mark.parametrize(
    "cwd",
    [
        None, "", ".", "owners/one", "/", "{program}", "{program}/..", "{home}", "{home}/..", "{hermes}", "{hermes}/..",
        "{hermes}/sub", "{own}/missing", "/etc", "/home/me",
    ],
)  # fmt: skip
def test_chat_without_a_directory_of_its_own_has_no_such_tools(
    cwd: str | None, store: SessionDBProvider, places: dict[str, Path]
) -> None:
    (places["hermes"] / "sub").mkdir()
    given = None if cwd is None else cwd.format(**places)
    conversation, tools = tools_of(store, places["hermes"], "telegram", given)
    assert tools == ["memory"]
    assert str(places["program"]) not in conversation.session.prompt
    for name, arguments in (("terminal", '{"command": "ls"}'), ("process", '{"action": "list"}'), ("read_file", "{}")):
        context = conversation.session.tools.context(Cancellation())
        assert context.working_directory is None
        assert conversation.agent.tools.run(ToolCall("c", name, arguments), context).is_error


def test_workspace_in_the_hermes_home_is_a_directory_of_its_own(
    store: SessionDBProvider, places: dict[str, Path]
) -> None:
    workspaces = places["hermes"] / "workspaces"
    own, other = workspaces / "one", workspaces / "two"
    for each in (own, other):
        each.mkdir(parents=True)
        (each / "notes.txt").write_text(f"of {each.name}")
        (each / "id_rsa").write_text("a key")
    (places["hermes"] / "notes.txt").write_text("of Hermes")
    (own / "link").symlink_to(other / "notes.txt")
    conversation, tools = tools_of(store, places["hermes"], "telegram", str(own))
    context = conversation.session.tools.context(Cancellation())

    def read(path: str) -> str:
        return conversation.agent.tools.run(ToolCall("c", "read_file", json.dumps({"path": path})), context).text

    assert "read_file" in tools
    assert read("notes.txt") == "1\tof one"
    for path in ("id_rsa", "link", "../two/notes.txt", "../../notes.txt", str(other / "notes.txt"), ".."):
        assert "cannot be read" in read(path), path
    assert tools_of(store, places["hermes"], "telegram", str(workspaces))[1] == ["memory"]


def test_link_to_the_home_directory_is_refused(store: SessionDBProvider, places: dict[str, Path]) -> None:
    link = places["own"] / "link"
    link.symlink_to(places["home"])
    assert tools_of(store, places["hermes"], "telegram", str(link))[1] == ["memory"]


def test_terminal_uses_its_current_directory(store: SessionDBProvider, places: dict[str, Path]) -> None:
    conversation, tools = tools_of(store, places["hermes"], "cli", None)
    context = conversation.session.tools.context(Cancellation())
    assert "terminal" in tools
    assert context.directory.cwd == places["program"]


def test_resumed_chat_gets_the_directory_of_the_caller(store: SessionDBProvider, places: dict[str, Path]) -> None:
    store.create_session("lane", "telegram", user_id="1")
    with ModelServer() as server:
        agent = agent_at(server, store, places["hermes"], CONFIG, tools=TOOLBOX)
        conversation = Conversation.resume(agent, "lane", asker=ME, cwd=str(places["own"]))
        conversation.say("hi")
        assert "terminal" in server.requests[0].tool_names
    row = store.get_session("lane")
    assert row is not None
    assert row["cwd"] == str(places["own"])


def test_deleted_current_directory_of_the_program_does_not_matter(
    store: SessionDBProvider, places: dict[str, Path]
) -> None:
    os.rmdir(places["program"])
    assert "terminal" in tools_of(store, places["hermes"], "telegram", str(places["own"]))[1]


@pytest.mark.parametrize("name", ["terminal", "process", "read_file"])
def test_tool_refuses_a_context_without_a_directory(name: str, bench: Workbench) -> None:
    arguments = {"terminal": {"command": "ls"}, "process": {"action": "list"}, "read_file": {"path": "x"}}[name]
    bench.change(working_directory=None)
    assert "no directory of its own" in bench.refused(name, **arguments)
