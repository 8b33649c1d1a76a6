"""The log file: private to its owner, and never shown on the screen."""

from __future__ import annotations

import logging
import stat
from pathlib import Path

import pytest

from hermes.cli.log_file import MAX_BYTES, LogFile, format_record
from tests.cli.conftest import Hermes
from tests.support.modelserver import Fail, ModelServer, Say


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def record(text: str) -> logging.LogRecord:
    return logging.LogRecord("hermes.test", logging.WARNING, __file__, 1, "%s", (text,), None)


def test_failed_title_is_logged_and_not_shown(hermes: Hermes) -> None:
    with ModelServer(Say("Use a bridge."), Fail(400)) as server:
        hermes.home.mkdir()
        (hermes.home / "config.yaml").write_text(server.config)
        done = hermes("-q", "How do I connect containers?")
    assert done.returncode == 0, done.stderr
    assert "gave no title" not in done.stderr
    log = hermes.home / "logs" / "hermes.log"
    assert "WARNING hermes.agent.auto_title: test-model gave no title for session" in log.read_text()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert stat.S_IMODE(log.parent.stat().st_mode) == 0o700


def test_record_is_one_line_without_control_characters() -> None:
    line = format_record(record("two\nlines \x1b[31mred"))
    assert line.endswith("WARNING hermes.test: two lines \\x1b[31mred\n")


def test_long_log_is_rotated(home: Path) -> None:
    log = home / "logs" / "hermes.log"
    handler = LogFile()
    handler.emit(record("first"))
    log.write_text("x" * (MAX_BYTES + 1))
    handler.emit(record("second"))
    assert log.read_text().endswith("second\n")
    assert log.stat().st_size < 200
    assert (log.parent / "hermes.log.1").stat().st_size == MAX_BYTES + 1


def test_unwritable_log_is_ignored(home: Path) -> None:
    home.write_text("a file where the home should be")
    LogFile().emit(record("nowhere to go"))
    assert home.read_text() == "a file where the home should be"
