"""Stores that are named by a link."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from hermes.state.sqlite.checks.checkup import examine
from hermes_state import SessionDB, StoreUnavailable


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Where the link leads to: a directory that is there, and a file that is not."""
    (tmp_path / "disk").mkdir()
    return tmp_path / "disk" / "real.db"


@pytest.fixture
def link(tmp_path: Path, target: Path) -> Path:
    """A link to a file that is not there yet."""
    link = tmp_path / "home" / "state.db"
    link.parent.mkdir()
    link.symlink_to(target)
    return link


def test_file_is_made_where_the_link_leads_to(link: Path, target: Path) -> None:
    with SessionDB(link) as db:
        db.create_session("s", "cli")
        assert {each.name for each in target.parent.iterdir()} >= {"real.db", "real.db-wal", "real.db.lock"}
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [each.name for each in link.parent.iterdir()] == ["state.db"]
    assert link.is_symlink()


def test_link_and_file_are_one_store(link: Path, target: Path) -> None:
    with SessionDB(link) as one, SessionDB(target) as other:
        one.create_session("s", "cli")
        other.append_message("s", "user", "walrus")
        assert [message["content"] for message in one.get_messages("s")] == ["walrus"]
    assert SessionDB(link, read_only=True).session_count() == 1


def test_link_through_a_link_leads_to_the_same_file(link: Path, target: Path, tmp_path: Path) -> None:
    second = tmp_path / "second.db"
    second.symlink_to(link)
    with SessionDB(second) as db:
        db.create_session("s", "cli")
    assert target.is_file()


@pytest.mark.parametrize("leads_to", ["missing/real.db", "state.db"])
def test_link_into_nowhere_is_named_and_nothing_is_made(tmp_path: Path, leads_to: str) -> None:
    link = tmp_path / "state.db"
    link.symlink_to(leads_to)
    with pytest.raises(StoreUnavailable, match=f"a link to {leads_to}") as refused:
        SessionDB(link)
    assert "mounted" in refused.value.hint
    assert list(tmp_path.iterdir()) == [link]


def test_doctor_says_that_nothing_is_there_yet(link: Path) -> None:
    (found,) = [each for each in examine(link, backups=link.parent, now=0.0) if each.name == "file"]
    assert (found.status, "nothing is stored yet" in found.summary) == ("note", True)
