"""The verdict of Tirith in the question on the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.scanning.fake_tirith import fake_tirith
from tests.cli.chat.terminal import Terminal
from tests.cli.conftest import Hermes

ASK = '!tool terminal {"command": "touch made"}'


def scan(hermes: Hermes, tmp_path: Path, code: int, more: str = "") -> None:
    """Let a program with this exit code scan commands."""
    hermes.home.mkdir(mode=0o700, exist_ok=True)
    binary = fake_tirith(tmp_path / "programs" / "tirith", code)
    (hermes.home / "config.yaml").write_text(f"security: {{tirith_path: {binary}}}\n{more}")


@pytest.mark.parametrize(
    ("code", "heading", "scope"),
    [
        (1, "Tirith blocks this command", "Allow it? y, n or i:"),
        (2, "Tirith warns of this command", "Allow it? y, s, n or i:"),
    ],
)
def test_question_shows_the_findings(hermes: Hermes, tmp_path: Path, code: int, heading: str, scope: str) -> None:
    work = tmp_path / "work"
    work.mkdir()
    scan(hermes, tmp_path, code)
    with Terminal(hermes, columns=200, cwd=work) as terminal:
        terminal.until_prompt().enter(ASK).until("Allow it?")
        assert heading in terminal.text
        assert "curl_pipe_shell (high): Runs a download" in terminal.text
        assert scope in terminal.text
        assert "Dangerous: Hermes asks to run:" in terminal.lines
        terminal.type("y").until_prompt()
    assert (work / "made").exists()


def test_blocked_command_is_refused_without_a_terminal_even_if_all_is_allowed(hermes: Hermes, tmp_path: Path) -> None:
    scan(hermes, tmp_path, 1, "approvals: {mode: allow}\n")
    assert "cannot be asked" in hermes("-Q", "-q", ASK).stdout
    scan(hermes, tmp_path, 0, "approvals: {mode: allow}\n")
    assert "[exit code 0]" in hermes("-Q", "-q", '!tool terminal {"command": "true ; true"}').stdout
