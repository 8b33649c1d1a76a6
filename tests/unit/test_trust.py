"""Homes and settings of other users are not used."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.config import load_config, load_variables
from hermes.errors import ConfigError
from hermes.trust import refuse_home_of_others
from tests.fault.use_as_guest import NOBODY

SETTINGS = "model:\n  default: chosen\n"


@pytest.fixture
def home() -> Iterator[Path]:
    """Create a Hermes home with settings."""
    with tempfile.TemporaryDirectory() as place:
        home = Path(place) / "home"
        home.mkdir(mode=0o700)
        (home / "config.yaml").write_text(SETTINGS)
        (home / ".env").write_text("KEY=1\n")
        for name in ("config.yaml", ".env"):
            (home / name).chmod(0o600)
        yield home


def test_own_home_is_used(home: Path) -> None:
    assert load_config(home).model.default == "chosen"
    assert load_variables(home, environ={})["KEY"] == "1"


@pytest.mark.parametrize(("name", "mode"), [("config.yaml", 0o606), (".env", 0o602), ("", 0o707), ("", 0o703)])
def test_settings_that_others_can_write_are_not_used(home: Path, name: str, mode: int) -> None:
    (home / name).chmod(mode)
    with pytest.raises(ConfigError, match="other users can write to") as refused:
        load_config(home)
    assert f"chmod {'600' if name else '700'} {home / name}" in refused.value.hint


@pytest.mark.parametrize("name", ["config.yaml", ".env"])
def test_link_into_a_directory_that_others_can_write_is_not_used(home: Path, name: str) -> None:
    shared = home.parent / "shared"
    shared.mkdir()
    (home / name).rename(shared / name)
    (home / name).symlink_to(shared / name)
    assert load_config(home).model.default == "chosen"
    shared.chmod(0o777)
    with pytest.raises(ConfigError, match=f"other users can write to {shared}"):
        load_config(home)


def test_sticky_directory_is_as_safe_as_its_files(home: Path) -> None:
    home.chmod(0o1777)
    assert load_config(home).model.default == "chosen"


def test_home_without_settings_may_be_open(home: Path) -> None:
    (home / "config.yaml").unlink()
    (home / ".env").unlink()
    home.chmod(0o777)
    assert load_config(home).model.default is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of others")
class TestAnotherUser:
    """A home that belongs to another user."""

    @pytest.mark.parametrize("name", ["", "config.yaml", ".env"])
    def test_home_of_another_user_is_not_used(self, home: Path, name: str) -> None:
        os.chown(home / name, NOBODY, NOBODY)
        with pytest.raises(ConfigError, match="belongs to nobody and not to you") as refused:
            load_config(home)
        assert "HERMES_HOME_OWNER=65534" in refused.value.hint

    def test_home_of_another_user_is_not_used_for_variables(self, home: Path) -> None:
        os.chown(home, NOBODY, NOBODY)
        with pytest.raises(ConfigError):
            load_variables(home)

    def test_home_of_another_user_is_used_if_the_environment_names_it(self, home: Path) -> None:
        os.chown(home, NOBODY, NOBODY)
        refuse_home_of_others(home, {"HERMES_HOME_OWNER": str(NOBODY)})
        with pytest.raises(ConfigError):
            refuse_home_of_others(home, {"HERMES_HOME_OWNER": "1234"})

    def test_link_into_a_directory_of_another_user_is_not_used(self, home: Path) -> None:
        theirs = home.parent / "theirs"
        theirs.mkdir()
        (home / "config.yaml").rename(theirs / "config.yaml")
        (home / "config.yaml").symlink_to(theirs / "config.yaml")
        os.chown(theirs, NOBODY, NOBODY)
        with pytest.raises(ConfigError, match=f"{theirs} belongs to nobody"):
            load_config(home)

    def test_link_to_a_home_of_another_user_is_not_used(self, home: Path, tmp_path: Path) -> None:
        os.chown(home, NOBODY, NOBODY)
        link = tmp_path / "link"
        link.symlink_to(home)
        with pytest.raises(ConfigError):
            load_config(link)

    def test_command_explains_what_to_do(self, home: Path) -> None:
        os.chown(home, NOBODY, NOBODY)
        done = subprocess.run(
            [str(Path(sys.executable).with_name("hermes")), "sessions", "list"],
            env={**os.environ, "HERMES_HOME": str(home)},
            capture_output=True,
            text=True,
        )
        assert done.returncode != 0
        assert "belongs to nobody" in done.stderr

    def test_root_may_provide_settings(self, home: Path) -> None:
        home.chmod(0o755)
        home.parent.chmod(0o755)
        program = (
            "import os, sys, pathlib; from hermes import trust; home = pathlib.Path(sys.argv[1]);"
            "os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]));"
            "trust.refuse_home_of_others(home); trust.refuse_settings_of_others(home / 'config.yaml')"
        )
        subprocess.run([sys.executable, "-c", program, str(home), str(NOBODY)], check=True)
