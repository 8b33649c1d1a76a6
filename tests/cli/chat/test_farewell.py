"""The commands that resume a session, as a shell reads them."""

from __future__ import annotations

import shlex

import pytest

from hermes.cli.chat.arguments import order_arguments
from hermes.cli.chat.exit_summary import format_duration, resume_commands

TITLES = [
    "my project",
    "chat",
    'a "quoted" title',
    "it's $HOME and `date`",
    "back\\slash",
    "wow!",
    "-begins with a minus",
    "京都旅行 🎉",
    "--help",
]


@pytest.mark.parametrize("title", TITLES)
def test_printed_title_resumes_through_a_shell(title: str) -> None:
    _, by_title = resume_commands("20261101_101010_aaaaaaaa", title)
    command, *args = shlex.split(by_title)
    assert command == "hermes"
    assert order_arguments(args, lambda name: name == title) == ["chat", f"--continue={title}"]


@pytest.mark.parametrize("session_id", ["20261101_101010_aaaaaaaa", "-odd", "a b"])
def test_printed_id_resumes_through_a_shell(session_id: str) -> None:
    (by_id,) = resume_commands(session_id, None)
    _, *args = shlex.split(by_id)
    assert order_arguments(args, lambda _: False) == ["chat", f"--resume={session_id}"]


def test_plain_title_is_in_double_quotes() -> None:
    assert resume_commands("a1", "my project") == ["hermes -r a1", 'hermes -c "my project"']


def test_untypable_title_is_left_out() -> None:
    assert resume_commands("a1", "a\x1bb") == ["hermes -r a1"]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.9, "0s"), (59.9, "59s"), (60, "1m 0s"), (3723, "1h 2m 3s"), (3600, "1h 0m 0s"), (-5, "0s")],
)
def test_a_duration_is_short(seconds: float, expected: str) -> None:
    assert format_duration(seconds) == expected
