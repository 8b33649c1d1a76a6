"""The paths that a store can be opened at."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes.errors import InvalidValue
from hermes_state import SessionDB


@pytest.mark.parametrize("path", ["", "a\0b", ":memory:", "file:state.db?mode=ro", os.fsdecode(b"/tmp/\xff.db"), 7])
def test_an_invalid_path_is_refused(path: object) -> None:
    with pytest.raises(InvalidValue):
        SessionDB(path)  # type: ignore[arg-type]


def test_a_path_may_have_any_other_character(tmp_path: Path) -> None:
    path = tmp_path / "a b%20#?&日本é\n;x" / "st ate?.db"
    with SessionDB(path) as db:
        db.create_session("s", "cli")
    with SessionDB(path, read_only=True) as db:
        assert db.session_count() == 1
    assert path.exists()
