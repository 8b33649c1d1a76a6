"""The Hermes home is private."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import hermes_constants
from hermes.errors import ConfigError
from hermes.home import (
    create_private_file,
    ensure_private_dir,
    get_hermes_home,
    private_opener,
    write_private_atomic,
)

SRC = Path(__file__).parents[2] / "src"


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def permissive_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "hermes"
    monkeypatch.setenv("HERMES_HOME", str(path))
    return path


class TestGetHermesHome:
    @pytest.mark.parametrize("unset", ["", "  "])
    def test_empty_variable_counts_as_unset(self, unset: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("HERMES_HOME", unset)
        monkeypatch.setenv("HOME", str(tmp_path))
        assert get_hermes_home() == tmp_path / ".hermes"

    def test_missing_variable_means_dot_hermes(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.delenv("HERMES_HOME", raising=False)
        monkeypatch.setenv("HOME", str(tmp_path))
        assert get_hermes_home() == tmp_path / ".hermes"

    def test_tilde_is_expanded(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("HERMES_HOME", "~/elsewhere")
        monkeypatch.setenv("HOME", str(tmp_path))
        assert get_hermes_home() == tmp_path / "elsewhere"

    def test_relative_path_is_made_absolute(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("HERMES_HOME", "x/../here")
        monkeypatch.chdir(tmp_path)
        assert get_hermes_home() == tmp_path / "here"

    def test_get_hermes_home_creates_nothing(self, home: Path) -> None:
        assert get_hermes_home() == home
        assert not home.exists()

    def test_unknown_user_is_an_error_that_says_what_to_do(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HERMES_HOME", "~no-such-user/hermes")
        with pytest.raises(ConfigError, match=r"~no-such-user/hermes.*set HERMES_HOME to an absolute path"):
            get_hermes_home()

    def test_hermes_constants_exports_get_hermes_home(self) -> None:
        assert hermes_constants.get_hermes_home is get_hermes_home
        assert hermes_constants.__all__ == ["get_hermes_home"]


class TestEnsurePrivateDir:
    @pytest.mark.usefixtures("permissive_umask")
    def test_every_created_directory_is_private(self, tmp_path: Path) -> None:
        ensure_private_dir(tmp_path / "a" / "b")
        assert (mode_of(tmp_path / "a"), mode_of(tmp_path / "a" / "b")) == (0o700, 0o700)

    def test_a_strict_umask_keeps_the_directory_usable(self, tmp_path: Path) -> None:
        before = os.umask(0o777)
        try:
            ensure_private_dir(tmp_path / "a" / "b")
        finally:
            os.umask(before)
        assert mode_of(tmp_path / "a" / "b") == 0o700

    def test_an_open_hermes_home_is_closed_to_others(self, home: Path) -> None:
        home.mkdir()
        home.chmod(0o755)
        ensure_private_dir(home)
        assert mode_of(home) == 0o700

    def test_other_directories_keep_their_mode(self, home: Path, tmp_path: Path) -> None:
        shared = tmp_path / "shared"
        shared.mkdir()
        shared.chmod(0o755)
        ensure_private_dir(shared)
        ensure_private_dir(shared / "hermes")
        assert mode_of(shared) == 0o755

    def test_a_sticky_home_keeps_its_mode(self, home: Path) -> None:
        home.mkdir()
        home.chmod(0o1777)
        ensure_private_dir(home)
        assert mode_of(home) == 0o1777

    def test_a_person_s_own_home_directory_keeps_its_mode(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(home / "person"))
        home.mkdir()
        home.chmod(0o755)
        ensure_private_dir(home)
        assert mode_of(home) == 0o755

    def test_a_file_instead_of_the_directory_is_named(self, home: Path) -> None:
        home.write_text("")
        with pytest.raises(ConfigError, match=f"{home} should be a directory, but it is a file.*move it away"):
            ensure_private_dir(home)

    def test_a_file_above_the_directory_is_named(self, home: Path) -> None:
        home.write_text("")
        with pytest.raises(ConfigError, match=f"{home} should be a directory, but it is a file"):
            ensure_private_dir(home / "cache")

    def test_error_names_a_broken_link(self, home: Path, tmp_path: Path) -> None:
        home.symlink_to(tmp_path / "gone")
        with pytest.raises(ConfigError, match=r"is a link to .*gone, which does not exist"):
            ensure_private_dir(home)


@pytest.mark.usefixtures("permissive_umask")
class TestPrivateFiles:
    def test_a_created_file_is_private_and_empty(self, tmp_path: Path) -> None:
        assert create_private_file(tmp_path / "state.db")
        assert mode_of(tmp_path / "state.db") == 0o600
        assert (tmp_path / "state.db").read_bytes() == b""

    def test_an_existing_file_is_left_alone(self, tmp_path: Path) -> None:
        file = tmp_path / "state.db"
        file.write_bytes(b"kept")
        file.chmod(0o640)
        assert not create_private_file(file)
        assert (file.read_bytes(), mode_of(file)) == (b"kept", 0o640)

    def test_the_opener_makes_private_files(self, tmp_path: Path) -> None:
        with open(tmp_path / "log", "a", opener=private_opener) as file:
            file.write("one\n")
        with open(tmp_path / "log", "a", opener=private_opener) as file:
            file.write("two\n")
        assert mode_of(tmp_path / "log") == 0o600
        assert (tmp_path / "log").read_text() == "one\ntwo\n"

    def test_the_opener_respects_exclusive_mode(self, tmp_path: Path) -> None:
        create_private_file(tmp_path / "once")
        with pytest.raises(FileExistsError):
            open(tmp_path / "once", "x", opener=private_opener).close()

    def test_the_opener_does_not_create_what_is_only_read(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            open(tmp_path / "missing", opener=private_opener).close()


@pytest.mark.usefixtures("permissive_umask")
class TestWritePrivateAtomic:
    def test_atomic_write_sets_content_and_mode(self, tmp_path: Path) -> None:
        write_private_atomic(tmp_path / "lanes.json", b"{}")
        assert ((tmp_path / "lanes.json").read_bytes(), mode_of(tmp_path / "lanes.json")) == (b"{}", 0o600)

    def test_a_wider_file_is_replaced_by_a_private_one(self, tmp_path: Path) -> None:
        file = tmp_path / "lanes.json"
        file.write_bytes(b"old")
        file.chmod(0o644)
        write_private_atomic(file, b"new")
        assert (file.read_bytes(), mode_of(file)) == (b"new", 0o600)

    def test_no_draft_is_left_behind(self, tmp_path: Path) -> None:
        write_private_atomic(tmp_path / "lanes.json", b"{}")
        assert [each.name for each in tmp_path.iterdir()] == ["lanes.json"]

    def test_a_failure_leaves_the_old_content_and_no_draft(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = tmp_path / "lanes.json"
        file.write_bytes(b"old")

        def full_disk(fd: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full_disk)
        with pytest.raises(OSError, match="No space left"):
            write_private_atomic(file, b"new")
        assert file.read_bytes() == b"old"
        assert [each.name for each in tmp_path.iterdir()] == ["lanes.json"]

    def test_a_link_stays_a_link(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        link = tmp_path / "lanes.json"
        link.symlink_to(tmp_path / "real" / "lanes.json")
        write_private_atomic(link, b"{}")
        assert link.is_symlink()
        assert (tmp_path / "real" / "lanes.json").read_bytes() == b"{}"


def test_importing_hermes_home_loads_few_modules() -> None:
    heavy = "{'dataclasses', 'inspect', 'tempfile', 'shutil', 'subprocess', 'yaml'}"
    code = f"import sys; import hermes.home; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], env={"PYTHONPATH": str(SRC)}, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]", done.stderr
