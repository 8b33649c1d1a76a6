"""Messages that cannot be stored: they are spooled next to the database, and stored once it is possible."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import apsw
import pytest

from hermes.errors import MessageSpooled
from hermes.state.messages.drafts import Draft, draft_message
from hermes.state.messages.spool import Spool
from hermes.state.owner import EVERYBODY, TERMINAL, Asker, owner_of
from hermes_state import SessionDB
from tests.fault.child import SESSION
from tests.support.stores import spool_of


def damage(path: Path) -> None:
    """Overwrite the root page of the messages."""
    connection = apsw.Connection(str(path))
    (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'messages'").fetchall()[0]
    (size,) = connection.execute("PRAGMA page_size").fetchall()[0]
    connection.close()
    assert isinstance(page, int)
    assert isinstance(size, int)
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(os.urandom(size))


@pytest.fixture
def whole(path: Path, tmp_path: Path) -> Path:
    """A copy of a store, which itself is damaged now."""
    with SessionDB(path) as db:
        db.append_message(SESSION, "user", "before")
    copy = tmp_path / "whole.db"
    shutil.copy(path, copy)
    damage(path)
    return copy


def contents(db: SessionDB) -> list[object]:
    return [message["content"] for message in db.get_messages(SESSION)]


def test_a_message_for_a_damaged_store_is_kept_and_stored_when_the_store_is_whole_again(
    path: Path, whole: Path
) -> None:
    with SessionDB(path) as db:
        for text in ("first", "second"):
            with pytest.raises(MessageSpooled) as caught:
                db.append_message(SESSION, "user", text, uid=f"uid {text}")
            assert caught.value.uid == f"uid {text}"
        assert Spool(Path(f"{path}.spool")).count() == 2
        whole.replace(path)
        db.append_message(SESSION, "user", "third")
        assert contents(db) == ["before", "third", "first", "second"]
    assert Spool(Path(f"{path}.spool")).is_empty()


def test_spooled_messages_are_stored_when_the_store_is_opened(path: Path, whole: Path) -> None:
    answer = {"role": "assistant", "content": [{"type": "text", "text": "2"}]}
    with SessionDB(path) as db, pytest.raises(MessageSpooled):
        db.append_messages(SESSION, [{"role": "user", "content": "one"}, answer])
    whole.replace(path)
    for _ in range(2):
        with SessionDB(path) as db:
            assert contents(db) == ["before", "one", [{"type": "text", "text": "2"}]]


def test_only_the_owner_can_read_the_spool(path: Path, whole: Path) -> None:
    with SessionDB(path) as db, pytest.raises(MessageSpooled):
        db.append_message(SESSION, "user", "secret")
    assert Path(f"{path}.spool").stat().st_mode & 0o777 == 0o600


class TestSpool:
    @pytest.fixture
    def spool(self, tmp_path: Path) -> Spool:
        return Spool(tmp_path / "spool")

    def test_spool_returns_every_value_unchanged(self, spool: Spool) -> None:
        fields: list[dict[str, Any]] = [
            {"role": "user", "content": "\x01json:[looks stored]"},
            {"role": "user", "content": "\ud800 half \0 nothing"},
            {"role": "tool", "content": {"a": [1, None, "二"]}, "tool_name": "t", "uid": "given"},
        ]
        messages = [draft_message(each, 5.0) for each in fields]
        spool.add("s", messages, EVERYBODY)
        again: list[Draft] = []

        def collect(session_id: str, drafts: list[Draft], asker: Asker) -> bool:
            again.extend(drafts)
            return True

        assert spool.replay(collect) == 3
        assert [each.values for each in again] == [each.values for each in messages]
        assert [[type(value) for value in each.values.values()] for each in again] == [
            [type(value) for value in each.values.values()] for each in messages
        ]

    def test_spool_keeps_everything_when_storing_fails(self, spool: Spool) -> None:
        spool.add("s", [draft_message({"role": "user", "content": "x"}, 5.0)], EVERYBODY)

        def fail(session_id: str, drafts: list[Draft], asker: Asker) -> bool:
            raise OSError(28, "no room")

        with pytest.raises(OSError, match="no room"):
            spool.replay(fail)
        assert spool.count() == 1
        assert spool.may_have_messages

    def test_unreadable_line_is_set_aside_and_the_others_are_stored(self, spool: Spool) -> None:
        spool.add("s", [draft_message({"role": "user", "content": "x"}, 5.0)], EVERYBODY)
        with spool.path.open("ab") as file:
            file.write(b'{"session_id": "s", "dra')
        spool.add("s", [draft_message({"role": "user", "content": "y"}, 5.0)], EVERYBODY)
        seen: list[str] = []

        def collect(session_id: str, drafts: list[Draft], asker: Asker) -> bool:
            seen.extend(each.values["content"] for each in drafts)
            return True

        assert spool.replay(collect) == 2
        assert seen == ["x", "y"]
        assert b'"dra' in Path(f"{spool.path}.unreadable").read_bytes()

    def test_spool_keeps_the_asker_of_each_message(self, spool: Spool) -> None:
        anna = owner_of("telegram", "1")
        for asker in (anna, TERMINAL, EVERYBODY):
            spool.add("s", [draft_message({"role": "user", "content": "x"}, 5.0)], asker)
        askers: list[Asker] = []

        def collect(session_id: str, drafts: list[Draft], asker: Asker) -> bool:
            askers.append(asker)
            return True

        assert spool.replay(collect) == 3
        assert askers == [anna, TERMINAL, EVERYBODY]

    def test_messages_for_the_session_of_another_owner_are_set_aside(self, spool: Spool) -> None:
        spool.add("s", [draft_message({"role": "user", "content": "intruder"}, 5.0)], owner_of("telegram", "1"))
        assert spool.replay(lambda _, drafts, asker: False) == 0
        assert spool.is_empty()
        assert b"intruder" in spool.unreadable.read_bytes()


def test_spooled_message_is_never_stored_in_the_session_of_another_owner(path: Path, whole: Path) -> None:
    whole.replace(path)
    with SessionDB(path) as db:
        intruder = draft_message({"role": "user", "content": "intruder"}, 5.0)
        spool_of(db).add(SESSION, [intruder], owner_of("telegram", "1"))
        db.append_message(SESSION, "user", "after")
        assert contents(db) == ["before", "after"]
        assert spool_of(db).is_empty()
        assert b"intruder" in spool_of(db).unreadable.read_bytes()
