"""Completion of `hermes`, through its own interface and in real shells."""

from __future__ import annotations

import gzip
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pexpect  # type: ignore[import-untyped]
import pytest

from hermes.cli.app import hermes as root
from hermes.cli.completion.bash_line import parse_line, quote_word
from hermes.cli.completion.command import SHELLS
from hermes.cli.completion.cursor_context import CompletionKind, find_context
from tests.cli.conftest import COMMAND, Hermes
from tests.support import shells
from tests.support.servers import skip_or_fail

OLD_FILES = Path(__file__).parents[1] / "upgrade" / "files"
LIMIT_S = 30
NASTY = """it's "50%" of $HOME, `ls` & co!"""
TITLES = {
    "a1": "refactoring auth",
    "a2": "Refill the pool",
    "b1": "京都 旅行",
    "c1": NASTY,
    "d1": "fix: colon",
    "e1": None,
}


@pytest.fixture
def stored(hermes: Hermes) -> Hermes:
    hermes.store(
        *((each, "telegram" if each == "b1" else "cli", title, "Hello there") for each, title in TITLES.items())
    )
    return hermes


def complete(hermes: Hermes, *words: str, of: str = "zsh") -> list[str]:
    """Return the completed words without their descriptions."""
    done = hermes(*words, _HERMES_COMPLETE=of)
    assert (done.returncode, done.stderr) == (0, "")
    return [line.partition("\t")[0] for line in done.stdout.splitlines()]


class TestSituation:
    @pytest.mark.parametrize(
        ("words", "current", "kind", "choices"),
        [
            ([], "ses", CompletionKind.WORDS, {"sessions", "chat"}),
            (["sessions"], "", CompletionKind.WORDS, {"list", "browse", "tree"}),
            (["sessions", "list"], "--", CompletionKind.WORDS, {"--source", "--json", "--help"}),
            ([], "--", CompletionKind.WORDS, {"--resume", "--version"}),
            (["sessions", "list", "--sort"], "", CompletionKind.WORDS, {"active", "started"}),
            (["completion"], "", CompletionKind.WORDS, set(SHELLS)),
            (["sessions", "show"], "", CompletionKind.SESSIONS, set()),
            (["sessions", "show", "a"], "", CompletionKind.WORDS, set()),
            (["sessions", "delete", "a", "b"], "", CompletionKind.SESSIONS, set()),
            (["sessions", "rename", "a"], "", CompletionKind.WORDS, set()),
            (["sessions", "search", "x", "--session"], "", CompletionKind.SESSIONS, set()),
            (["-c"], "", CompletionKind.SESSIONS, set()),
            (["chat", "--resume"], "", CompletionKind.SESSIONS, set()),
            (["-q", "hi", "-r"], "", CompletionKind.SESSIONS, set()),
            (["-c", "my", "project"], "--", CompletionKind.WORDS, {"--query"}),
            (["sessions", "list", "--source"], "", CompletionKind.SOURCES, set()),
            (["sessions", "list", "--json", "--source"], "", CompletionKind.SOURCES, set()),
            (["sessions", "import"], "", CompletionKind.FILES, set()),
            (["insights", "--html"], "", CompletionKind.FILES, set()),
            (["sessions", "show", "--", "-x"], "-", CompletionKind.WORDS, set()),
            (["no", "such", "command"], "", CompletionKind.WORDS, {"sessions"}),
        ],
    )
    def test_context_is_found_from_the_words_before_the_cursor(
        self, words: list[str], current: str, kind: CompletionKind, choices: set[str]
    ) -> None:
        found = find_context(root, words, current)
        assert found.kind is kind
        assert choices <= {name for name, _ in found.choices}

    def test_value_after_an_equals_sign_is_completed(self) -> None:
        found = find_context(root, ["sessions", "list"], "--source=tele")
        assert (found.kind, found.typed, found.before) == (CompletionKind.SOURCES, "tele", "--source=")

    def test_context_keeps_earlier_words_of_a_session_name(self) -> None:
        found = find_context(root, ["-c", "my"], "pro")
        assert (found.kind, found.typed, found.earlier_words) == (CompletionKind.SESSIONS, "pro", "my ")


class TestLine:
    @pytest.mark.parametrize(
        ("text", "words", "current", "quote"),
        [
            ("hermes sess", ["hermes"], "sess", ""),
            ("hermes ", ["hermes"], "", ""),
            (r"hermes -r my\ pro", ["hermes", "-r"], "my pro", ""),
            ('hermes -r "my pro', ["hermes", "-r"], "my pro", '"'),
            ("hermes -r 'my pro", ["hermes", "-r"], "my pro", "'"),
            ("hermes -r 'it'\\''s", ["hermes", "-r"], "it's", "'"),
            (r'hermes -r "a\"b\c', ["hermes", "-r"], r'a"b\c', '"'),
            ('hermes "a b" c', ["hermes", "a b"], "c", ""),
            ("hermes '' x", ["hermes", ""], "x", ""),
        ],
    )
    def test_line_is_split_as_bash_does(self, text: str, words: list[str], current: str, quote: str) -> None:
        line = parse_line(text)
        assert (line.words, line.current, line.quote) == (words, current, quote)

    @pytest.mark.parametrize(
        ("text", "settled"),
        [("hermes -r 'my pro", ""), ("hermes -r my' pro", "my"), (r"hermes -r 'it'\''s", "it'"), ("hermes 'a' b", "")],
    )
    def test_text_before_an_open_quote_is_settled(self, text: str, settled: str) -> None:
        assert parse_line(text).settled == settled

    @pytest.mark.parametrize("quote", ["", '"', "'"])
    @pytest.mark.parametrize("word", [NASTY.replace("!", ""), "a b", "京都", "~x", "#x", "a;b|c", "{a,b}*?[x]", "\\"])
    def test_bash_reads_a_quoted_word_as_the_word(self, word: str, quote: str) -> None:
        script = f"printf %s {quote}{quote_word(word, quote)}{quote}"
        assert subprocess.run(["bash", "-c", script], capture_output=True, text=True).stdout == word


class TestHelper:
    def test_completes_sessions_by_title_and_id(self, stored: Hermes) -> None:
        assert complete(stored, "sessions", "show", "ref") == ["words", "refactoring auth", "Refill the pool"]
        assert complete(stored, "sessions", "show", "a") == ["words", "a2", "a1"]

    def test_completes_recent_sessions_without_input(self, stored: Hermes) -> None:
        assert complete(stored, "-r", "") == ["words", *(title or each for each, title in TITLES.items())]

    def test_completes_session_names_of_several_words(self, stored: Hermes) -> None:
        assert complete(stored, "-c", "refactoring", "a") == ["words", "auth"]

    def test_completes_sources(self, stored: Hermes) -> None:
        assert complete(stored, "sessions", "list", "--source", "") == ["words", "cli", "telegram"]
        assert complete(stored, "sessions", "list", "--source=t") == ["words", "telegram"]
        assert complete(stored, "sessions", "list", "--source=t", of="fish") == ["words", "--source=telegram"]

    def test_leaves_file_names_to_the_shell(self, stored: Hermes) -> None:
        assert complete(stored, "sessions", "import", "x") == ["files"]

    def test_unsafe_session_names_are_not_completed(self, hermes: Hermes) -> None:
        hermes.store(("x\x1b[31m", "cli", None, "x"), ("-rf", "cli", None, "x"), ("xy", "cli", None, "x"))
        assert complete(hermes, "-r", "") == ["words", "xy"]

    def test_completion_creates_no_database(self, hermes: Hermes) -> None:
        assert complete(hermes, "-r", "") == ["words"]
        assert not hermes.home.exists()

    def test_completion_does_not_upgrade_an_old_database(self, hermes: Hermes) -> None:
        hermes.home.mkdir()
        hermes.database.write_bytes(gzip.decompress((OLD_FILES / "v22.db.gz").read_bytes()))
        before = hermes.database.read_bytes()
        assert len(complete(hermes, "-r", "")) > 1
        assert hermes.database.read_bytes() == before

    @pytest.mark.parametrize("trouble", ["database", "config", "shell"])
    def test_completion_errors_print_nothing(self, hermes: Hermes, trouble: str) -> None:
        hermes.home.mkdir()
        if trouble == "database":
            hermes.database.write_bytes(b"this is no database, but long enough to be looked at" * 100)
        elif trouble == "config":
            (hermes.home / "config.yaml").write_text("sessiondb: {provider: [")
        args = () if trouble == "shell" else ("-r", "")
        done = hermes(*args, _HERMES_COMPLETE="bash" if trouble == "shell" else "zsh")
        assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_script_is_printed(hermes: Hermes, shell: str) -> None:
    done = hermes("completion", shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"_HERMES_COMPLETE={shell}" in done.stdout


@pytest.mark.timeout(shells.PATIENCE_S)
@pytest.mark.parametrize("shell", SHELLS)
def test_shell_accepts_the_completion_script(hermes: Hermes, shell: str) -> None:
    script = hermes("completion", shell).stdout
    read = subprocess.run([program_of(shell), "-n"], input=script, capture_output=True, text=True, timeout=LIMIT_S)
    assert (read.returncode, read.stderr) == (0, "")


def test_unknown_shell_is_a_usage_error(hermes: Hermes) -> None:
    assert hermes("completion", "tcsh").returncode == 2


STARTS = {
    "bash": (["--norc", "--noprofile", "-i"], 'PS1="$ "; bind "set bell-style none"; eval "$(hermes completion bash)"'),
    "zsh": (["-f", "-i"], 'PS1="$ "; autoload -U compinit; compinit -u -D; eval "$(hermes completion zsh)"'),
    "fish": (
        ["--no-config"],
        "function fish_prompt; echo '$ '; end; set -g fish_autosuggestion_enabled 0; hermes completion fish | source",
    ),
}


def shell_environment(hermes: Hermes, directory: Path) -> dict[str, str]:
    """The environment of a shell in which `hermes` is installed."""
    binary = directory / "bin" / "hermes"
    binary.parent.mkdir()
    binary.write_text(f'#!/bin/sh\nexec {" ".join(COMMAND)} "$@"\n')
    binary.chmod(0o755)
    return hermes.environment(PATH=f"{binary.parent}:{os.environ['PATH']}", HOME=str(directory))


def program_of(shell: str) -> str:
    """Return the path of a shell; skip the test if it is not installed."""
    try:
        return shells.find(shell)
    except OSError as exc:
        skip_or_fail(f"there is no {shell}: {exc}")


class Shell:
    """A shell with the completion script; it completes a typed line and splits it into words."""

    def __init__(self, name: str, program: str, environment: dict[str, str]) -> None:
        options, start = STARTS[name]
        self._process = pexpect.spawn(program, options, env=environment, timeout=LIMIT_S, encoding="utf-8")
        self._process.setwinsize(50, 200)
        self._process.send(f"{start}; printf 'rea''dy\\n'\r")
        self._process.expect("ready")

    def complete(self, line: str) -> list[str]:
        """Return the words of a line after the Tab key."""
        self._process.send(f"{line}\t")
        # What the shell makes of the line is asked of the shell: in front of it comes a command that shows its words.
        self._process.send("\x01printf '<%s>' \x05 'fin''ish'\r")
        self._process.expect(r"<hermes>(.*)<finish>")
        return [word for word in self._process.match.group(1).strip("<>").split("><") if word]

    def close(self) -> None:
        self._process.close(force=True)


@pytest.fixture(params=STARTS)
def shell(request: pytest.FixtureRequest, stored: Hermes, tmp_path: Path) -> Iterator[Shell]:
    started = Shell(request.param, program_of(request.param), shell_environment(stored, tmp_path))
    yield started
    started.close()


@pytest.mark.timeout(shells.PATIENCE_S)
class TestShells:
    def test_shell_completes_commands_options_sources_and_sessions(self, shell: Shell) -> None:
        assert shell.complete("hermes sessions lis") == ["sessions", "list"]
        assert shell.complete("hermes sessions list --arch") == ["sessions", "list", "--archived"]
        assert shell.complete("hermes sessions list --source tele") == ["sessions", "list", "--source", "telegram"]
        assert shell.complete("hermes sessions list --source=tele") == ["sessions", "list", "--source=telegram"]
        assert shell.complete("hermes sessions show refa") == ["sessions", "show", "refactoring auth"]
        assert shell.complete("hermes sessions show e") == ["sessions", "show", "e1"]

    def test_shell_completes_titles_exactly(self, shell: Shell) -> None:
        assert shell.complete("hermes -r 京") == ["-r", "京都 旅行"]
        assert shell.complete("hermes -r it\\'s") == ["-r", NASTY]
        assert shell.complete('hermes -r "refact') == ["-r", "refactoring auth"]
        assert shell.complete("hermes -r 'refact") == ["-r", "refactoring auth"]
        assert shell.complete("hermes -r fix") == ["-r", "fix: colon"]

    def test_shell_completes_titles_after_quotes_and_backslashes(self, shell: Shell) -> None:
        assert shell.complete("hermes -r \"it's") == ["-r", NASTY]
        assert shell.complete('hermes -r "it\'s \\"50') == ["-r", NASTY]
        assert shell.complete("hermes -r 'it'\\''s") == ["-r", NASTY]
        assert shell.complete("hermes -r refactoring\\ a") == ["-r", "refactoring auth"]

    def test_shell_completes_unquoted_names(self, shell: Shell) -> None:
        assert shell.complete("hermes -c refactoring au") == ["-c", "refactoring", "auth"]

    def test_shell_completes_file_names_itself(self, shell: Shell, tmp_path: Path) -> None:
        (tmp_path / "a page.html").write_text("")
        page = f"{tmp_path}/a page.html"
        assert shell.complete(f"hermes sessions import {tmp_path}/a") == ["sessions", "import", page]
        assert shell.complete(f"hermes insights --html {tmp_path}/a\\ p") == ["insights", "--html", page]
        assert shell.complete(f"hermes insights --html '{tmp_path}/a p") == ["insights", "--html", page]
        assert shell.complete(f"hermes insights --html={tmp_path}/a") == ["insights", f"--html={page}"]
        assert shell.complete("hermes insights --html ~/a") == ["insights", "--html", page]


@pytest.mark.timeout(shells.PATIENCE_S)
class TestFish:
    """fish lists and quotes its completions itself."""

    @pytest.mark.parametrize(
        ("line", "offered"),
        [
            ("hermes sessions lis", ["list"]),
            ("hermes sessions list --arch", ["--archived"]),
            ("hermes sessions list --source tele", ["telegram"]),
            ("hermes sessions list --source=tele", ["--source=telegram"]),
            ("hermes sessions show refa", ["refactoring auth"]),
            ("hermes -r 京", ["京都 旅行"]),
            ("hermes -r it\\'s", [NASTY]),
            ('hermes -r "refactoring a', ["refactoring auth"]),
            ("hermes -r 'refact", ["refactoring auth"]),
            ("hermes -r refactoring\\ a", ["refactoring auth"]),
            ("hermes -c refactoring au", ["auth"]),
            ("hermes sessions show e", ["e1"]),
        ],
    )
    def test_fish_completes(self, stored: Hermes, tmp_path: Path, line: str, offered: list[str]) -> None:
        script = "hermes completion fish | source; complete -C $LINE"
        done = subprocess.run(
            [program_of("fish"), "--no-config", "-c", script],
            env=shell_environment(stored, tmp_path) | {"LINE": line},
            capture_output=True,
            encoding="utf-8",
            timeout=LIMIT_S,
        )
        assert [each.partition("\t")[0] for each in done.stdout.splitlines()] == offered
