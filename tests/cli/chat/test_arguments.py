"""Reordering the command line before it is parsed."""

from __future__ import annotations

import click
import pytest

from hermes.cli.chat.arguments import order_arguments
from tests.cli.conftest import Hermes


def arrange(line: str, *sessions: str) -> list[str]:
    return order_arguments(line.split(), lambda name: name in sessions)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", ["chat"]),
        ("chat", ["chat"]),
        ("-c", ["chat", "--continue"]),
        ("--continue", ["chat", "--continue"]),
        ("chat -c", ["chat", "--continue"]),
        ("-c -q hi", ["chat", "--continue", "-q", "hi"]),
        ("-c chat", ["chat", "--continue"]),
        ("-c chat -q hi", ["chat", "--continue", "-q", "hi"]),
        ("-c Pokemon Agent Dev", ["chat", "--continue=Pokemon Agent Dev"]),
        ("chat -r refactoring auth -m x", ["chat", "--resume=refactoring auth", "-m", "x"]),
        ("-c my project chat -q hi", ["chat", "--continue=my project", "-q", "hi"]),
        ("-Q -r my project chat -q hi", ["chat", "-Q", "--resume=my project", "-q", "hi"]),
        ("chat -c my chat", ["chat", "--continue=my chat"]),
        ("-r chat", ["chat", "--resume=chat"]),
        ("-r", ["chat", "--resume="]),
        ("-r -q hi", ["chat", "--resume=", "-q", "hi"]),
        ("-q -c", ["chat", "-q", "-c"]),
        ("-Qq -c", ["chat", "-Qq", "-c"]),
        ("-m sessions", ["chat", "-m", "sessions"]),
        ("--continue=a -q hi", ["chat", "--continue=a", "-q", "hi"]),
        ("-q hi chat -Q", ["chat", "-q", "hi", "-Q"]),
        ("sessions list -c", ["sessions", "list", "-c"]),
        ("sessions rename abc -r x y", ["sessions", "rename", "abc", "-r", "x", "y"]),
        ("--help", ["--help"]),
        ("-h", ["-h"]),
        ("--version", ["--version"]),
        ("chat --help", ["chat", "--help"]),
        ("nonsense", ["nonsense"]),
    ],
)
def test_command_comes_first(line: str, expected: list[str]) -> None:
    assert arrange(line) == expected


@pytest.mark.parametrize("line", ["-c weekly sessions", "-c fix doctor", "-r my sessions list"])
def test_command_word_within_a_name_is_part_of_the_name(line: str) -> None:
    option, *words = line.split()
    long = "--continue" if option == "-c" else "--resume"
    assert arrange(line) == ["chat", f"{long}={' '.join(words)}"]


def test_session_name_that_ends_with_chat_wins_over_the_command() -> None:
    assert arrange("-c my project chat", "my project chat") == ["chat", "--continue=my project chat"]
    assert arrange("-c chat", "chat") == ["chat", "--continue=chat"]


def test_quoted_name_is_one_word() -> None:
    assert order_arguments(["-c", "my project chat"], lambda _: False) == ["chat", "--continue=my project chat"]


@pytest.mark.parametrize("line", ["-Q sessions list", "-m x doctor", "-q hi sessions"])
def test_chat_options_before_another_command_are_refused(line: str) -> None:
    with pytest.raises(click.UsageError, match="is an option of `hermes chat`"):
        arrange(line)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["what is this"], ["chat", "--query=what is this"]),
        (["-Q", "what is this"], ["chat", "-Q", "--query=what is this"]),
        (["what is this", "-m", "x"], ["chat", "-m", "x", "--query=what is this"]),
        (["chat", "sessions list"], ["chat", "--query=sessions list"]),
        (["--", "sessions", "-q"], ["chat", "--query=sessions -q"]),
        (["-c", "--", "go", "on"], ["chat", "--continue", "--query=go on"]),
        (["sessions", "search", "two words"], ["sessions", "search", "two words"]),
    ],
)
def test_word_with_a_blank_and_words_after_dashes_are_a_message(words: list[str], expected: list[str]) -> None:
    assert order_arguments(words, lambda _: False) == expected


@pytest.mark.parametrize("words", [["a b", "c d"], ["-q", "a", "b c"], ["a b", "sessions"], ["a b", "--query=c"]])
def test_two_messages_are_refused(words: list[str]) -> None:
    with pytest.raises(click.UsageError, match="message"):
        order_arguments(words, lambda _: False)


class TestCommand:
    def test_mistyped_command_is_no_message_and_gets_a_suggestion(self, hermes: Hermes) -> None:
        done = hermes("sesions", "list")
        assert (done.returncode, done.stdout) == (2, "")
        assert "No such command 'sesions'. Did you mean 'sessions'?" in done.stderr
        assert "-q sesions" not in done.stderr
        assert not hermes.database.exists()

    def test_single_word_is_no_message_and_the_error_says_how_to_send_it(self, hermes: Hermes) -> None:
        done = hermes("hello;")
        assert (done.returncode, done.stdout) == (2, "")
        assert "No such command 'hello;'. To send it as a message: hermes -q 'hello;'\n" in done.stderr
        assert not hermes.database.exists()

    @pytest.mark.parametrize(
        "args",
        [
            ("-c", "", "-q", "hi"),
            ("-r", "", "-q", "hi"),
            ("-r", "-q", "hi"),
            ("-c", " ", "-q", "hi"),
            ("-c", "a", "-r", "b", "-q", "hi"),
            ("-q", " "),
            ("-m", "", "-q", "hi"),
            ("chat", "hello"),
            ("-Q", "sessions", "list"),
        ],
    )
    def test_usage_error_exits_with_2_and_stores_nothing(self, hermes: Hermes, args: tuple[str, ...]) -> None:
        done = hermes(*args)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("Error: ")
        assert not hermes.database.exists()

    @pytest.mark.parametrize("option", ["-c", "-r"])
    def test_unknown_session_exits_with_3_before_anything_else(self, hermes: Hermes, option: str) -> None:
        hermes.store(("a1", "cli", "my project", "hello"))
        (hermes.home / "config.yaml").write_text("model: {default: nowhere}\n")
        done = hermes(option, "my", "projekt", "-q", "hi")
        assert (done.returncode, done.stdout) == (3, "")
        assert 'did you mean "my project"?' in done.stderr
        assert len(hermes.json("sessions", "show", "a1")["item"]["messages"]) == 1

    @pytest.mark.parametrize("args", [("-c",), ("-c", "any"), ("-r", "any"), ("chat", "-c")])
    def test_resume_without_a_database_exits_with_3(self, hermes: Hermes, args: tuple[str, ...]) -> None:
        done = hermes(*args, "-q", "hi")
        assert (done.returncode, done.stdout) == (3, "")
        assert not hermes.database.exists()

    def test_word_of_a_title_runs_no_command(self, hermes: Hermes) -> None:
        hermes.store(("a1", "cli", "weekly sessions", "hello"))
        done = hermes("-c", "weekly", "sessions", "-q", "!say here")
        assert done.returncode == 0
        assert "Resumed a1" in done.stderr
        assert hermes("-c", "my", "sessions", "list").returncode == 3

    def test_the_last_word_chat_is_the_command_unless_a_session_has_that_name(self, hermes: Hermes) -> None:
        hermes.store(("a1", "cli", "my project", "one"), ("a2", "cli", "my project chat", "two"))
        assert "Resumed a2" in hermes("-c", "my", "project", "chat", "-q", "!say x").stderr
        hermes("sessions", "delete", "a2", "--yes")
        assert "Resumed a1" in hermes("-c", "my", "project", "chat", "-q", "!say x").stderr
