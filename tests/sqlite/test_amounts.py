"""Invalid time limits and counts."""

from __future__ import annotations

from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from hermes.state.sqlite.backup.backup import back_up_into
from hermes.state.sqlite.backup.restore import restore
from hermes.state.sqlite.checks.verify import verify
from hermes.state.sqlite.repair.repair import check, repair
from hermes_state import InvalidValue, SessionDB

NO_TIMES: list[Any] = [nan, inf, -inf, -1, -0.5, "30", None, True]
NO_COUNTS: list[Any] = [0, -1, nan, inf, 1.5, "7", None, True]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with one session."""
    path = tmp_path / "state.db"
    with SessionDB(path) as db:
        db.create_session("s", "cli")
    return path


@pytest.mark.parametrize("value", NO_TIMES)
def test_invalid_write_timeout_is_refused(tmp_path: Path, value: Any) -> None:
    with pytest.raises(InvalidValue, match="write_timeout_s"):
        SessionDB(tmp_path / "other.db", write_timeout_s=value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", NO_TIMES)
def test_invalid_restore_and_repair_timeouts_are_refused(path: Path, value: Any) -> None:
    before = path.read_bytes()
    with pytest.raises(InvalidValue, match="timeout_s"):
        restore(path, verify(path), timeout_s=value)
    for work in (check, repair):
        with pytest.raises(InvalidValue, match="timeout_s"):
            work(path, timeout_s=value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("value", NO_COUNTS)
def test_invalid_number_of_backups_to_keep_is_refused(path: Path, value: Any) -> None:
    with pytest.raises(InvalidValue, match="keep"):
        back_up_into(path, path.parent / "backups", value)
    assert not (path.parent / "backups").exists()
