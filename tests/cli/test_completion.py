"""Completion: what the Tab key is answered, by the helper and in real shells."""

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
from tests.support.servers import pass_over

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


def asked(hermes: Hermes, *words: str, of: str = "zsh") -> list[str]:
    """The words that the helper answers, without what they mean."""
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
    def test_is_found_from_the_words_before(
        self, words: list[str], current: str, kind: CompletionKind, choices: set[str]
    ) -> None:
        found = find_context(root, words, current)
        assert found.kind is kind
        assert choices <= {name for name, _ in found.choices}

    def test_a_value_behind_an_equals_sign_is_one(self) -> None:
        found = find_context(root, ["sessions", "list"], "--source=tele")
        assert (found.kind, found.typed, found.before) == (CompletionKind.SOURCES, "tele", "--source=")

    def test_a_name_of_several_words_goes_on(self) -> None:
        found = find_context(root, ["-c", "my"], "pro")
        assert (found.kind, found.typed, found.said) == (CompletionKind.SESSIONS, "pro", "my ")


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
    def test_is_taken_apart(self, text: str, words: list[str], current: str, quote: str) -> None:
        line = parse_line(text)
        assert (line.words, line.current, line.quote) == (words, current, quote)

    @pytest.mark.parametrize(
        ("text", "settled"),
        [("hermes -r 'my pro", ""), ("hermes -r my' pro", "my"), (r"hermes -r 'it'\''s", "it'"), ("hermes 'a' b", "")],
    )
    def test_what_stands_before_an_open_quote_is_settled(self, text: str, settled: str) -> None:
        assert parse_line(text).settled == settled

    @pytest.mark.parametrize("quote", ["", '"', "'"])
    @pytest.mark.parametrize("word", [NASTY.replace("!", ""), "a b", "京都", "~x", "#x", "a;b|c", "{a,b}*?[x]", "\\"])
    def test_a_quoted_word_is_the_word_for_bash(self, word: str, quote: str) -> None:
        script = f"printf %s {quote}{quote_word(word, quote)}{quote}"
        assert subprocess.run(["bash", "-c", script], capture_output=True, text=True).stdout == word


class TestHelper:
    def test_names_sessions_by_title_and_id(self, stored: Hermes) -> None:
        assert asked(stored, "sessions", "show", "ref") == ["words", "refactoring auth", "Refill the pool"]
        assert asked(stored, "sessions", "show", "a") == ["words", "a2", "a1"]

    def test_without_a_beginning_names_the_most_recent(self, stored: Hermes) -> None:
        assert asked(stored, "-r", "") == ["words", *(title or each for each, title in TITLES.items())]

    def test_goes_on_with_a_name_of_several_words(self, stored: Hermes) -> None:
        assert asked(stored, "-c", "refactoring", "a") == ["words", "auth"]

    def test_names_sources(self, stored: Hermes) -> None:
        assert asked(stored, "sessions", "list", "--source", "") == ["words", "cli", "telegram"]
        assert asked(stored, "sessions", "list", "--source=t") == ["words", "telegram"]
        assert asked(stored, "sessions", "list", "--source=t", of="fish") == ["words", "--source=telegram"]

    def test_leaves_files_to_the_shell(self, stored: Hermes) -> None:
        assert asked(stored, "sessions", "import", "x") == ["files"]

    def test_a_name_that_could_act_on_a_terminal_or_as_an_option_is_left_out(self, hermes: Hermes) -> None:
        hermes.store(("x\x1b[31m", "cli", None, "x"), ("-rf", "cli", None, "x"), ("xy", "cli", None, "x"))
        assert asked(hermes, "-r", "") == ["words", "xy"]

    def test_makes_no_database(self, hermes: Hermes) -> None:
        assert asked(hermes, "-r", "") == ["words"]
        assert not hermes.home.exists()

    def test_leaves_an_old_database_as_it_is(self, hermes: Hermes) -> None:
        hermes.home.mkdir()
        hermes.database.write_bytes(gzip.decompress((OLD_FILES / "v22.db.gz").read_bytes()))
        before = hermes.database.read_bytes()
        assert len(asked(hermes, "-r", "")) > 1
        assert hermes.database.read_bytes() == before

    @pytest.mark.parametrize("trouble", ["database", "config", "shell"])
    def test_no_trouble_is_written_into_the_prompt(self, hermes: Hermes, trouble: str) -> None:
        hermes.home.mkdir()
        if trouble == "database":
            hermes.database.write_bytes(b"this is no database, but long enough to be looked at" * 100)
        elif trouble == "config":
            (hermes.home / "config.yaml").write_text("sessiondb: {provider: [")
        args = () if trouble == "shell" else ("-r", "")
        done = hermes(*args, _HERMES_COMPLETE="bash" if trouble == "shell" else "zsh")
        assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_written(hermes: Hermes, shell: str) -> None:
    done = hermes("completion", shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"_HERMES_COMPLETE={shell}" in done.stdout


@pytest.mark.timeout(shells.PATIENCE_S)
@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_can_read_the_script(hermes: Hermes, shell: str) -> None:
    script = hermes("completion", shell).stdout
    read = subprocess.run([program_of(shell), "-n"], input=script, capture_output=True, text=True, timeout=LIMIT_S)
    assert (read.returncode, read.stderr) == (0, "")


def test_another_shell_is_a_usage_error(hermes: Hermes) -> None:
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
    """What a shell finds in which `hermes` is installed."""
    binary = directory / "bin" / "hermes"
    binary.parent.mkdir()
    binary.write_text(f'#!/bin/sh\nexec {" ".join(COMMAND)} "$@"\n')
    binary.chmod(0o755)
    return hermes.environment(PATH=f"{binary.parent}:{os.environ['PATH']}", HOME=str(directory))


def program_of(shell: str) -> str:
    """The program of a shell; without one the test is passed over."""
    try:
        return shells.find(shell)
    except OSError as exc:
        pass_over(f"there is no {shell}: {exc}")


class Shell:
    """A shell with the script in it; a line is typed, completed, and then taken apart by the shell itself."""

    def __init__(self, name: str, program: str, environment: dict[str, str]) -> None:
        options, start = STARTS[name]
        self._process = pexpect.spawn(program, options, env=environment, timeout=LIMIT_S, encoding="utf-8")
        self._process.setwinsize(50, 200)
        self._process.send(f"{start}; printf 'rea''dy\\n'\r")
        self._process.expect("ready")

    def complete(self, line: str) -> list[str]:
        """The words of a line after the Tab key."""
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
    def test_complete_commands_options_sources_and_sessions(self, shell: Shell) -> None:
        assert shell.complete("hermes sessions lis") == ["sessions", "list"]
        assert shell.complete("hermes sessions list --arch") == ["sessions", "list", "--archived"]
        assert shell.complete("hermes sessions list --source tele") == ["sessions", "list", "--source", "telegram"]
        assert shell.complete("hermes sessions list --source=tele") == ["sessions", "list", "--source=telegram"]
        assert shell.complete("hermes sessions show refa") == ["sessions", "show", "refactoring auth"]
        assert shell.complete("hermes sessions show e") == ["sessions", "show", "e1"]

    def test_titles_come_out_as_they_are(self, shell: Shell) -> None:
        assert shell.complete("hermes -r 京") == ["-r", "京都 旅行"]
        assert shell.complete("hermes -r it\\'s") == ["-r", NASTY]
        assert shell.complete('hermes -r "refact') == ["-r", "refactoring auth"]
        assert shell.complete("hermes -r 'refact") == ["-r", "refactoring auth"]
        assert shell.complete("hermes -r fix") == ["-r", "fix: colon"]

    def test_a_title_goes_on_behind_quotes_and_backslashes(self, shell: Shell) -> None:
        assert shell.complete("hermes -r \"it's") == ["-r", NASTY]
        assert shell.complete('hermes -r "it\'s \\"50') == ["-r", NASTY]
        assert shell.complete("hermes -r 'it'\\''s") == ["-r", NASTY]
        assert shell.complete("hermes -r refactoring\\ a") == ["-r", "refactoring auth"]

    def test_an_unquoted_name_goes_on(self, shell: Shell) -> None:
        assert shell.complete("hermes -c refactoring au") == ["-c", "refactoring", "auth"]

    def test_files_are_left_to_the_shell(self, shell: Shell, tmp_path: Path) -> None:
        (tmp_path / "a page.html").write_text("")
        page = f"{tmp_path}/a page.html"
        assert shell.complete(f"hermes sessions import {tmp_path}/a") == ["sessions", "import", page]
        assert shell.complete(f"hermes insights --html {tmp_path}/a\\ p") == ["insights", "--html", page]
        assert shell.complete(f"hermes insights --html '{tmp_path}/a p") == ["insights", "--html", page]
        assert shell.complete(f"hermes insights --html={tmp_path}/a") == ["insights", f"--html={page}"]
        assert shell.complete("hermes insights --html ~/a") == ["insights", "--html", page]


@pytest.mark.timeout(shells.PATIENCE_S)
class TestFish:
    """fish tells by itself what it would offer, and quotes that by itself."""

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
    def test_offers(self, stored: Hermes, tmp_path: Path, line: str, offered: list[str]) -> None:
        script = "hermes completion fish | source; complete -C $LINE"
        done = subprocess.run(
            [program_of("fish"), "--no-config", "-c", script],
            env=shell_environment(stored, tmp_path) | {"LINE": line},
            capture_output=True,
            encoding="utf-8",
            timeout=LIMIT_S,
        )
        assert [each.partition("\t")[0] for each in done.stdout.splitlines()] == offered
