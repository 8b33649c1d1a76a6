"""Files and directories without sufficient permissions."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.state.messages.spool import Spool
from hermes_state import SessionDB, StoreUnavailable
from tests.fault.use_as_guest import NOBODY

ROOT = Path(__file__).parents[2]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A directory that the guest owns and can reach."""
    for place in (tmp_path, *tmp_path.parents):
        if place.owner() == tmp_path.owner() and place != Path("/"):
            place.chmod(place.stat().st_mode | 0o011)
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    yield home
    home.chmod(0o700)


def give_to_guest(*paths: Path) -> None:
    """Make the guest the owner; a user other than root is the guest already."""
    for path in paths:
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)


def use(what: str, path: Path) -> str:
    """Use a store as a user without privileges, and return the result."""
    command = [sys.executable, "-m", "tests.fault.use_as_guest", what, str(path)]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "HERMES_HOME": str(path.parent)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=True)
    return done.stdout


def test_own_directory_is_enough(home: Path) -> None:
    give_to_guest(home)
    assert use("write", home / "state.db") == "done"


def test_directory_that_cannot_be_written_is_named(home: Path) -> None:
    give_to_guest(home)
    home.chmod(0o500)
    code, hint = use("write", home / "state.db").split(": ", 1)
    assert code in ("store_unavailable", "store_read_only")
    assert str(home) in hint


def test_directory_that_cannot_be_entered_is_an_error_of_the_store(home: Path) -> None:
    path = home / "state.db"
    SessionDB(path).close()
    give_to_guest(home)
    home.chmod(0)
    assert use("write", path).startswith("store_unavailable")
    assert use("read", path).startswith("store_unavailable")


def test_file_that_cannot_be_written_is_read_only(home: Path) -> None:
    path = home / "state.db"
    SessionDB(path).close()
    files = list(home.iterdir())
    give_to_guest(home, *files)
    for file in files:
        file.chmod(0o400)
    assert use("write", path).startswith("store_read_only")
    assert use("read", path) == "done"


def test_files_written_by_root_keep_their_owner(home: Path) -> None:
    path = home / "state.db"
    path.touch(mode=0o600)
    give_to_guest(home, path)
    SessionDB(path).close()
    assert {file.stat().st_uid for file in home.iterdir()} == {path.stat().st_uid}
    assert use("write", path) == "done"


def with_link(home: Path, suffix: str) -> tuple[Path, Path]:
    """A database of the guest, with a link next to it to a file of another user."""
    path, secret = home / "state.db", home.parent / "secret"
    with SessionDB(path) as db:
        db.create_session("s", "cli")
    secret.write_text("not yours\n")
    link = Path(f"{path}{suffix}")
    link.unlink(missing_ok=True)
    link.symlink_to(secret)
    give_to_guest(home, path)
    return path, secret


@pytest.mark.parametrize("suffix", [".gate", ".lock"])
def test_link_instead_of_a_lock_file_changes_no_owner(home: Path, suffix: str) -> None:
    path, secret = with_link(home, suffix)
    with SessionDB(path) as db, pytest.raises(StoreUnavailable, match=suffix):
        db.append_message("s", "user", "x")
    assert secret.stat().st_uid == os.geteuid()


def test_link_instead_of_the_spool_empties_nothing(home: Path) -> None:
    path, secret = with_link(home, ".spool")
    with SessionDB(path) as db:
        db.append_message("s", "user", "x")
    assert secret.read_text() == "not yours\n"


def test_hard_link_to_a_file_with_content_keeps_its_owner(home: Path) -> None:
    path, secret = with_link(home, ".gate")
    Path(f"{path}.gate").unlink()
    os.link(secret, Path(f"{path}.gate"))
    with SessionDB(path) as db:
        db.append_message("s", "user", "x")
    assert secret.stat().st_uid == os.geteuid()


def test_pipe_instead_of_the_spool_does_not_block(home: Path) -> None:
    path = home / "state.db"
    os.mkfifo(f"{path}.spool")
    assert Spool(Path(f"{path}.spool")).count() == 0


def test_store_that_cannot_be_locked_is_closed_quietly(home: Path) -> None:
    path, target = with_link(home, ".gate")
    before = target.read_bytes()
    SessionDB(path).close()
    assert target.read_bytes() == before
