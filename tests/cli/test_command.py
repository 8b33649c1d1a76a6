"""The command as a whole: help, version, errors and exit codes."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

from hermes import __version__, errors
from hermes.cli.app import COMMANDS
from hermes.cli.errors import report_error
from tests.cli.conftest import COMMAND, Hermes

NOT_FOR_A_LIST = {
    *(
        "httpx",
        "httpx2",
        "msgspec",
        "prompt_toolkit",
        "rich",
        "Stemmer",
        "sqlite3",
        "textual",
        "wcwidth",
        "yaml",
    ),
    *("asyncio", "base64", "decimal", "importlib.metadata", "logging", "random", "shlex", "shutil", "socket"),
    *("subprocess", "tempfile"),
    *("hermes.agent", "hermes.envfile", "hermes.interop", "hermes.query", "hermes.secrets", "hermes.settings"),
    *(
        "hermes.state.import_export.trust",
        "hermes.state.recall",
        "hermes.state.row_types",
        "hermes.state.search.finder",
    ),
    *("hermes.state.sqlite.files.open_by", "hermes.state.sqlite.schema.upgrade"),
}
SHOW_MODULES = """
import json, sys
from hermes.cli.app import run
code = run(sys.argv[1:])
sys.stderr.write(json.dumps(sorted(sys.modules)))
sys.exit(code)
"""


def imported_by(hermes: Hermes, *args: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", SHOW_MODULES, *args], env=hermes.environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stderr.splitlines()[-1]))


class TestHelp:
    @pytest.mark.parametrize("args", [("--help",), ("-h",)])
    def test_help_lists_the_commands(self, hermes: Hermes, args: tuple[str, ...]) -> None:
        done = hermes(*args)
        assert (done.returncode, done.stderr) == (0, "")
        assert "sessions" in done.stdout
        assert "Exit codes" in done.stdout

    @pytest.mark.parametrize("args", [(), ("--help",)])
    def test_group_alone_prints_its_help(self, hermes: Hermes, args: tuple[str, ...]) -> None:
        done = hermes("sessions", *args)
        assert (done.returncode, done.stderr) == (0, "")
        assert "list" in done.stdout
        assert "stats" in done.stdout

    def test_group_summary_equals_the_command_summary(self) -> None:
        summaries = {name: lazy.load().get_short_help_str(limit=200) for name, lazy in COMMANDS.items()}
        assert summaries == {name: lazy.summary for name, lazy in COMMANDS.items()}

    def test_the_version_is_that_of_the_package(self, hermes: Hermes) -> None:
        assert hermes("--version").stdout == f"hermes {__version__}\n"


class TestImports:
    def test_help_imports_no_command(self, hermes: Hermes) -> None:
        assert {each for each in imported_by(hermes, "--help") if each.startswith("hermes.state")} == set()

    @pytest.mark.parametrize("command", ["list", "stats"])
    def test_reading_command_imports_only_what_it_needs(self, hermes: Hermes, command: str) -> None:
        hermes.store(("a", "cli", "naïve — “quoted”", "hello"), ("b", "cli", None, "hello"))
        assert imported_by(hermes, "sessions", command) & NOT_FOR_A_LIST == set()

    def test_wide_text_and_a_config_file_import_their_libraries(self, hermes: Hermes) -> None:
        hermes.store(("a", "cli", "日本", "hello"))
        (hermes.home / "config.yaml").write_text("sessions: {retention_days: 7}")
        assert {"wcwidth", "yaml"} <= imported_by(hermes, "sessions", "list")

    def test_garbage_collector_is_on_while_a_command_runs(self) -> None:
        gc.disable()
        COMMANDS["doctor"].load()
        assert gc.isenabled()


class TestErrors:
    @pytest.mark.parametrize(
        ("error", "exit_code"),
        [
            (errors.ConfigError("x"), 1),
            (errors.StoreCorrupt("x"), 1),
            (errors.StoreBusy("x"), 1),
            (errors.QueryBudgetExceeded("x"), 1),
            (errors.InvalidValue("x"), 2),
            (click.UsageError("x"), 2),
            (errors.UnknownSession("x"), 3),
            (errors.TitleTaken("x"), 4),
            (errors.StaleLease("x"), 4),
        ],
    )
    def test_exit_code_depends_on_the_error(
        self, error: errors.HermesError | click.ClickException, exit_code: int
    ) -> None:
        assert report_error(error, as_json=False) == exit_code

    def test_error_is_printed_with_a_hint(self, capsys: pytest.CaptureFixture[str]) -> None:
        report_error(errors.UnknownSession("there is no session 'x'"), as_json=False)
        assert capsys.readouterr() == (
            "",
            "Error: there is no session 'x'\nHint: see `hermes sessions list`\n",
        )

    def test_json_error_is_an_object(self, capsys: pytest.CaptureFixture[str]) -> None:
        report_error(errors.TitleTaken("the title 'x' is already in use"), as_json=True)
        output = json.loads(capsys.readouterr().err)
        message = "the title 'x' is already in use"
        assert output == {"error": {"code": "title_taken", "message": message, "hint": "choose another title"}}

    @pytest.mark.parametrize(
        "args",
        [("nonsense",), ("sessions", "lst"), ("sessions", "list", "--limit", "0"), ("sessions", "list", "--nope")],
    )
    def test_usage_error_exits_with_2_and_names_the_help(self, hermes: Hermes, args: tuple[str, ...]) -> None:
        done = hermes(*args)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("Error: ")
        assert "Hint: see `hermes" in done.stderr

    def test_json_usage_error_is_an_object(self, hermes: Hermes) -> None:
        done = hermes("sessions", "list", "--json", "--limit", "many")
        assert (done.returncode, done.stdout) == (2, "")
        assert json.loads(done.stderr)["error"]["code"] == "usage"

    @pytest.mark.parametrize(
        ("args", "is_json"),
        [
            (("-r", "nope", "-q", "--json"), False),
            (("-Qq", "--json", "-r", "nope"), False),
            (("-q", "x", "-r", "nope", "--json"), True),
            (("sessions", "show", "--", "--json"), False),
            (("sessions", "search", "x", "--session", "--json"), False),
            (("sessions", "search", "x", "--session=nope", "--json"), True),
            (("sessions", "list", "--json", "--nope"), True),
        ],
    )
    def test_only_an_option_selects_json_errors(self, hermes: Hermes, args: tuple[str, ...], is_json: bool) -> None:
        hermes.store(("s", "cli", None, "hello"))
        done = hermes(*args)
        assert done.returncode in (2, 3), done.stderr
        assert done.stderr.startswith('{"error":' if is_json else "Error: ")

    def test_control_characters_in_arguments_are_not_echoed(self, hermes: Hermes) -> None:
        assert "\x1b" not in hermes("sessions", "\x1b[31mlist").stderr

    def test_invalid_setting_is_an_error_that_names_the_file(self, hermes: Hermes) -> None:
        hermes.home.mkdir()
        (hermes.home / "config.yaml").write_text("sessions: {retention_days: soon}")
        done = hermes("sessions", "list")
        assert (done.returncode, done.stdout) == (1, "")
        assert "config.yaml, line 1" in done.stderr


class TestWarnings:
    @pytest.fixture(autouse=True)
    def mistyped(self, hermes: Hermes) -> None:
        hermes.store(("a", "cli", None, "hello"))
        (hermes.home / "config.yaml").write_text("sesions: {}\n")

    @pytest.mark.parametrize("command", ["list", "stats"])
    def test_config_warning_is_printed_once_to_stderr(self, hermes: Hermes, command: str) -> None:
        done = hermes("sessions", command)
        assert done.returncode == 0
        assert done.stderr.count("Warning: ") == done.stderr.count("unknown key sesions") == 1
        assert "Warning" not in done.stdout

    def test_json_config_warning_is_an_object(self, hermes: Hermes) -> None:
        done = hermes("sessions", "list", "--json")
        assert "unknown key sesions" in json.loads(done.stderr)["warning"]["message"]


class TestEnding:
    @pytest.fixture(autouse=True)
    def more_than_a_pipe_holds(self, hermes: Hermes) -> None:
        hermes.store(*((f"session-{number:04}", "cli", None, "words " * 10) for number in range(400)))

    @pytest.mark.parametrize("limit", ["20", "400"])
    def test_closed_pipe_is_not_an_error(self, hermes: Hermes, limit: str) -> None:
        reading, writing = os.pipe()
        os.close(reading)
        process = hermes.start("sessions", "list", "--limit", limit, stdout=writing)
        os.close(writing)
        _, output = process.communicate(timeout=60)
        assert (process.returncode, output) == (0, b"")

    def test_ctrl_c_at_the_very_end_shows_no_traceback(self, hermes: Hermes) -> None:
        press = "import atexit, os, signal; atexit.register(os.kill, os.getpid(), signal.SIGINT); "
        done = subprocess.run(
            [sys.executable, "-c", f"{press}from hermes.cli.main import main; main()", "--version"],
            env=hermes.environment(),
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stderr) == (-signal.SIGINT, "")

    def test_ctrl_c_exits_with_130_and_no_traceback(self, hermes: Hermes) -> None:
        process = hermes.start("sessions", "list", "--json", "--limit", "400", stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stderr is not None
        with process.stdout, process.stderr:
            # It has started to write and cannot end before the rest is read.
            assert process.stdout.read(1) == b"{"
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
            assert process.stderr.read() == b""

    @pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
    def test_closed_stream_is_not_an_error(self, hermes: Hermes, closed: str) -> None:
        command = ["sh", "-c", f'exec "$@" {closed}', "sh", *COMMAND, "sessions", "list"]
        done = subprocess.run(command, env=hermes.environment(), capture_output=True, text=True, timeout=60)
        assert done.returncode == 0
        assert "Traceback" not in done.stderr

    def test_unwritable_output_is_an_error(self, hermes: Hermes) -> None:
        with Path(os.devnull).open("rb") as only_for_reading:
            process = hermes.start("sessions", "list", stdout=only_for_reading)
            _, output = process.communicate(timeout=60)
        assert process.returncode == 1
        assert output.startswith(b"Error: the output cannot be written: ")
