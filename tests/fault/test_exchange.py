"""A file that replaces a store while it is being opened, or that a dying process has not replaced completely."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

from hermes.state.sqlite.files import swap
from hermes.state.sqlite.schema import inspection
from hermes.state.sqlite.schema.inspection import WritableFile
from hermes_state import SessionDB
from tests.fault.child import SESSION
from tests.fault.processes import Child, assert_sound
from tests.support.plainsql import rows
from tests.torture.runner import assert_unharmed


def copied(path: Path) -> Path:
    copy = path.with_name("copy.db")
    connection = apsw.Connection(str(path))
    connection.execute("VACUUM INTO ?", (str(copy),)).fetchall()
    connection.close()
    return copy


def test_a_file_that_is_replaced_while_it_is_being_opened_is_not_written_to(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, open_long_read = copied(path), inspection.open_for_writing

    def open_and_be_replaced(database: Path) -> WritableFile | None:
        monkeypatch.undo()
        found = open_long_read(database)
        with swap.writer_lock_held(database, 5):
            swap.replace_database(database, copy)
        return found

    monkeypatch.setattr(inspection, "open_for_writing", open_and_be_replaced)
    with SessionDB(path) as db:
        db.append_message(SESSION, "user", "after", uid="after")
        assert rows(path, "SELECT uid FROM messages") == [("after",)]


@pytest.mark.parametrize("steps", range(5))
def test_interrupted_swap_loses_no_message(path: Path, monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    left = iter(range(steps))

    def dying(step: Callable[..., object]) -> Callable[..., object]:
        def take(*arguments: object, **options: object) -> object:
            if next(left, None) is None:
                raise InterruptedError
            return step(*arguments, **options)

        return take

    with Child("append", path, "writer", "forever") as writer:
        assert writer.line() == "ready"
        copy = copied(path)
        with monkeypatch.context() as patched, suppress(InterruptedError), swap.writer_lock_held(path, 5):
            for name in ("replace", "unlink"):
                patched.setattr(Path, name, dying(getattr(Path, name)))
            swap.replace_database(path, copy)
        writer.send()
        acknowledged = [writer.line() for _ in range(3)]
        writer.kill()
        acknowledged += writer.lines()
    with SessionDB(path) as db:
        stored = [message["uid"] for message in db.get_messages(SESSION)]
    assert [uid for uid in stored if uid in set(acknowledged)] == acknowledged
    assert_sound(path)


def test_processes_keep_writing_while_their_file_is_replaced(tmp_path: Path) -> None:
    assert_unharmed("exchanged-file", tmp_path)


def test_processes_keep_writing_when_a_swap_is_killed(tmp_path: Path) -> None:
    assert_unharmed("kill-exchange", tmp_path)
