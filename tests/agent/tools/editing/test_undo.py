"""Undoing turns puts back the former contents of files, unless they have changed since."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.agent.conversation import Conversation
from hermes.agent.safety.approval import Decision
from hermes.agent.tools.toolbox import TOOLBOX
from hermes.state.owner import EVERYBODY
from hermes.state.provider import SessionDBProvider
from tests.agent.talking import agent_at
from tests.support.modelserver import Call, ModelServer, Say


@pytest.fixture
def home(tmp_path: Path, store: SessionDBProvider) -> Path:
    """The Hermes home, in which the store is."""
    return tmp_path / "person" / ".hermes"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The directory of the session."""
    work = tmp_path / "person" / "work"
    work.mkdir(parents=True)
    return work


def edit(path: str, old: str, new: str) -> Call:
    return Call("edit_file", {"path": path, "old": old, "new": new})


def write(path: str, content: str) -> Call:
    return Call("write_file", {"path": path, "content": content})


class Talk:
    """A conversation at the terminal, whose user allows everything."""

    def __init__(self, server: ModelServer, store: SessionDBProvider, home: Path, work: Path) -> None:
        self.agent = agent_at(server, store, home, tools=TOOLBOX)
        self.server = server
        self.conversation = Conversation.start(
            self.agent, asker=EVERYBODY, cwd=str(work), approve=lambda _: Decision.ONCE
        )

    def turn(self, *steps: Call) -> None:
        self.server.then(*(Say(calls=[each]) for each in steps), Say("Done."))
        assert self.conversation.say("Do it.").status == "done"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """The model's server."""
    with ModelServer() as server:
        yield server


def test_undo_puts_back_what_the_turn_changed(
    server: ModelServer, store: SessionDBProvider, home: Path, work: Path
) -> None:
    (work / "a.txt").write_bytes(b"one\r\n")
    (work / "a.txt").chmod(0o640)
    talk = Talk(server, store, home, work)
    talk.turn(edit("a.txt", "one", "two"), edit("a.txt", "two", "three"), write("new/deep/b.txt", "new\n"))
    assert (work / "a.txt").read_bytes() == b"three\r\n"
    undone = talk.conversation.undo()
    assert (work / "a.txt").read_bytes() == b"one\r\n"
    assert (work / "a.txt").stat().st_mode & 0o777 == 0o640
    assert os.listdir(work) == ["a.txt"]
    assert undone.files == (
        f"{work}/new/deep/b.txt is removed",
        f"{work}/a.txt has its former content",
        f"{work}/a.txt has its former content",
    )


def test_undo_leaves_a_file_that_has_changed_since(
    server: ModelServer, store: SessionDBProvider, home: Path, work: Path
) -> None:
    (work / "a.txt").write_text("one\n")
    talk = Talk(server, store, home, work)
    talk.turn(edit("a.txt", "one", "two"), write("b.txt", "b\n"), write("c.txt", "c\n"))
    (work / "a.txt").write_text("two, and mine\n")
    (work / "b.txt").unlink()
    (work / "c.txt").rename(work / "d.txt")
    (work / "c.txt").symlink_to("d.txt")
    undone = talk.conversation.undo()
    assert (work / "a.txt").read_text() == "two, and mine\n"
    assert (work / "d.txt").read_text() == "c\n"
    assert undone.files == (
        f"{work}/c.txt stays as it is: {work}/c.txt is not a regular file",
        f"{work}/b.txt stays as it is: it was removed meanwhile",
        f"{work}/a.txt stays as it is: it has changed since",
    )


def test_only_the_undone_turns_are_put_back(
    server: ModelServer, store: SessionDBProvider, home: Path, work: Path
) -> None:
    talk = Talk(server, store, home, work)
    for text in ("1\n", "2\n", "3\n"):
        talk.turn(write("a.txt", text))
    talk.conversation.undo()
    assert (work / "a.txt").read_text() == "2\n"
    talk.turn(write("a.txt", "4\n"))
    talk.conversation.undo(2)
    assert (work / "a.txt").read_text() == "1\n"


def test_failed_change_is_nothing_to_undo(
    server: ModelServer, store: SessionDBProvider, home: Path, work: Path
) -> None:
    (work / "a.txt").write_text("one\n")
    talk = Talk(server, store, home, work)
    talk.turn(edit("a.txt", "two", "three"))
    assert talk.conversation.undo().files == ()
    assert (work / "a.txt").read_text() == "one\n"


def test_undo_works_in_another_process_and_in_a_branch(
    server: ModelServer, store: SessionDBProvider, home: Path, work: Path
) -> None:
    (work / "a.txt").write_text("one\n")
    talk = Talk(server, store, home, work)
    talk.turn(edit("a.txt", "one", "two"))
    branch = talk.conversation.branch()
    resumed = Conversation.resume(talk.agent, branch.session_id, asker=EVERYBODY)
    assert resumed.undo().files == (f"{work}/a.txt has its former content",)
    assert (work / "a.txt").read_text() == "one\n"


def test_undo_does_not_follow_a_link_put_in_the_way(
    server: ModelServer, store: SessionDBProvider, home: Path, work: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("two\n")
    talk = Talk(server, store, home, work)
    talk.turn(write("src/a.txt", "one\n"), write("src/a.txt", "two\n"))
    (work / "src").rename(work / "moved")
    (work / "src").symlink_to(outside)
    undone = talk.conversation.undo()
    assert (outside / "a.txt").read_text() == "two\n"
    assert all("stays as it is" in each for each in undone.files)


def test_former_contents_are_private_and_deleted_with_the_session(
    server: ModelServer, store: SessionDBProvider, home: Path, work: Path
) -> None:
    talk = Talk(server, store, home, work)
    talk.turn(write("a.txt", "one\n"))
    session_id = talk.conversation.session_id
    kept = home / "sessions" / f"{session_id}.changes"
    assert kept.stat().st_mode & 0o777 == 0o600
    store.delete_session(session_id, sessions_dir=home / "sessions")
    assert not kept.exists()


@pytest.mark.parametrize("damage", [b"", b"\xff\n", b'{"id": "x"}\n', b"[]\n", b'{"id": 1, "path": "zz"'])
def test_damaged_record_undoes_nothing(
    server: ModelServer, store: SessionDBProvider, home: Path, work: Path, damage: bytes
) -> None:
    talk = Talk(server, store, home, work)
    talk.turn(write("a.txt", "one\n"))
    (home / "sessions" / f"{talk.conversation.session_id}.changes").write_bytes(damage)
    undone = talk.conversation.undo()
    assert (undone.turns, undone.files) == (1, ())
    assert (work / "a.txt").read_text() == "one\n"
