"""Stores that are opened through a link."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from hermes.state.sqlite.checks.checkup import examine
from hermes_state import SessionDB, StoreUnavailable


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """The target of the link: an existing directory, and a file in it that does not exist."""
    (tmp_path / "disk").mkdir()
    return tmp_path / "disk" / "real.db"


@pytest.fixture
def link(tmp_path: Path, target: Path) -> Path:
    """A link to a file that does not exist yet."""
    link = tmp_path / "home" / "state.db"
    link.parent.mkdir()
    link.symlink_to(target)
    return link


def test_file_is_created_at_the_target_of_the_link(link: Path, target: Path) -> None:
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
def test_broken_link_is_an_error_and_nothing_is_created(tmp_path: Path, leads_to: str) -> None:
    link = tmp_path / "state.db"
    link.symlink_to(leads_to)
    with pytest.raises(StoreUnavailable, match=f"a link to {leads_to}") as refused:
        SessionDB(link)
    assert "mounted" in refused.value.hint
    assert list(tmp_path.iterdir()) == [link]


def test_doctor_reports_a_link_without_a_file_as_a_note(link: Path) -> None:
    (found,) = [each for each in examine(link, backups=link.parent, now=0.0) if each.name == "file"]
    assert (found.status, "no file exists yet" in found.summary) == ("note", True)
