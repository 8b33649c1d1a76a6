"""Settings and secrets are written one by one, and everything else in the files stays."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from hermes.cli.config.settings_writer import set_secret, set_setting
from hermes.config import load_config, load_variables
from hermes.errors import ConfigError, InvalidValue

WRITTEN = """\
# who answers
model:  # one of many
  # the big one
  default: gpt-4.1   # good
  base_url: "https://models.test/v1"
  timeouts: {connect_s: 5}

display:
  busy_input_mode: queue
sessions:
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    path.mkdir(mode=0o700)
    return path


def write(home: Path, text: str) -> Path:
    file = home / "config.yaml"
    file.write_text(text)
    file.chmod(0o600)
    return file


def test_value_is_replaced_and_its_comment_stays(home: Path) -> None:
    file = write(home, WRITTEN)
    set_setting(home, "model.default", "claude-x")
    assert file.read_text() == WRITTEN.replace("gpt-4.1", "claude-x")


def test_missing_settings_are_added_where_they_belong(home: Path) -> None:
    file = write(home, WRITTEN)
    set_setting(home, "model.api_key", "${KEY}")
    set_setting(home, "model.timeouts.total_s", 60)
    set_setting(home, "sessions.auto_prune", True)
    set_setting(home, "memory.max_characters", 500)
    config = load_config(home, environ={"KEY": "k"})
    assert (config.model.api_key, config.model.timeouts.total_s, config.model.timeouts.connect_s) == ("k", 60.0, 5.0)
    assert (config.sessions.auto_prune, config.memory.max_characters) == (True, 500)
    assert set(WRITTEN.splitlines()) - set(file.read_text().splitlines()) == {"  timeouts: {connect_s: 5}"}


def test_first_setting_creates_a_private_file(home: Path) -> None:
    set_setting(home, "model.prices.gpt-4.1.input", 2)
    file = home / "config.yaml"
    assert load_config(home).model.prices["gpt-4.1"].input == 2
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("value", ["a: b # c", "${KEY}", "yes", "1", "'", 'two\nlines "x"', "ünïcode 🙂", "- a", ""])
def test_text_is_read_back_as_it_was_given(home: Path, value: str) -> None:
    set_setting(home, "timezone", "UTC")
    set_setting(home, "model.default", value)
    assert load_config(home, environ={}).model.default == value


@pytest.mark.parametrize("value", ["${KEY}", "a, b", "[a]", "a: b # c", "x{y", "-", 'two\nlines "x"', ""])
@pytest.mark.parametrize("before", ["model: {attempts: 3}\n", "model: {default: old, attempts: 3} # why\n", "{}\n"])
def test_text_between_braces_is_read_back_as_it_was_given(home: Path, before: str, value: str) -> None:
    file = write(home, before)
    set_setting(home, "model.default", value)
    assert load_config(home, environ={}).model.default == value
    assert ("# why" in file.read_text()) == ("# why" in before)


def test_lists_and_blocks_are_replaced_whole(home: Path) -> None:
    file = write(home, "terminal:\n  env_passthrough:\n    - A\n    - B\n  # why\n  kill_at_exit: true\n")
    set_setting(home, "terminal.env_passthrough", ["C", "D"])
    config = load_config(home)
    assert (config.terminal.env_passthrough, config.terminal.kill_at_exit) == (("C", "D"), True)
    assert "  # why\n" in file.read_text()


def test_windows_line_ends_and_byte_order_mark_stay(home: Path) -> None:
    file = home / "config.yaml"
    file.write_bytes(b"\xef\xbb\xbfmodel:\r\n  default: a\r\n")
    set_setting(home, "model.provider", "custom")
    assert file.read_bytes() == b"\xef\xbb\xbfmodel:\r\n  provider: custom\r\n  default: a\r\n"


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("model.defualt", "x", InvalidValue),
        ("model.attempts", "many", ConfigError),
        ("model.attempts", 0, ConfigError),
        ("model", "x", ConfigError),
        ("", "x", InvalidValue),
        ("warnings", "x", InvalidValue),
    ],
)
def test_what_would_be_invalid_is_refused_and_nothing_is_written(
    home: Path, name: str, value: object, error: type[Exception]
) -> None:
    file = write(home, WRITTEN)
    with pytest.raises(error):
        set_setting(home, name, value)
    assert file.read_text() == WRITTEN


@pytest.mark.parametrize("text", ["model: [1", "- a\n", "a: &x {default: b}\nmodel: *x\n", "model: 5\n"])
def test_a_file_that_cannot_be_changed_line_by_line_stays(home: Path, text: str) -> None:
    file = write(home, text)
    with pytest.raises(ConfigError):
        set_setting(home, "model.default", "x")
    assert file.read_text() == text


def test_file_that_others_can_write_is_refused(home: Path) -> None:
    file = write(home, WRITTEN)
    file.chmod(0o666)
    with pytest.raises(ConfigError, match="other users can write"):
        set_setting(home, "model.default", "x")


def test_secret_replaces_its_line_only(home: Path) -> None:
    file = home / ".env"
    file.write_text("# keys\nA=1\nexport B='old'\nC=3")
    file.chmod(0o600)
    set_secret(home, "B", "new $x 'y' \"z\"")
    assert load_variables(home, environ={}) == {"A": "1", "B": "new $x 'y' \"z\"", "C": "3"}
    assert file.read_text().startswith("# keys\nA=1\nC=3\nB=")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(os.listdir(home)) == [".env", ".env.lock"]


@pytest.mark.parametrize(("name", "value"), [("A B", "x"), ("A", ""), ("A", "x\ny"), ("A", "x" * 9_000), ("", "x")])
def test_secret_that_is_no_single_line_is_refused(home: Path, name: str, value: str) -> None:
    with pytest.raises(InvalidValue):
        set_secret(home, name, value)
    assert not (home / ".env").exists()
