"""A chat without a terminal: single questions, piped text and lines."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import time

import pytest

from hermes.cli.chat.keyboard.piped_text import MAX_BYTES
from hermes_state import SessionDB
from tests.cli.chat.conftest import Remember
from tests.cli.chat.stored import sessions
from tests.cli.conftest import COMMAND, TIMEOUT_S, Hermes
from tests.cli.test_command import imported_by
from tests.support.modelserver import Call, Fail, ModelServer, Say
from tests.support.waiting import wait_until


def piped(hermes: Hermes, lines: str | bytes, *args: str) -> subprocess.CompletedProcess[bytes]:
    data = lines.encode() if isinstance(lines, str) else lines
    return subprocess.run(
        [*COMMAND, *args], env=hermes.environment(), input=data, capture_output=True, timeout=TIMEOUT_S
    )


class TestOneQuestion:
    def test_quiet_prints_the_answer_to_stdout_and_the_id_to_stderr(self, hermes: Hermes) -> None:
        done = hermes("-Q", "-q", "!say just this")
        (row,) = sessions(hermes)
        assert (done.returncode, done.stdout, done.stderr) == (0, "just this\n", f"session_id: {row['id']}\n")

    def test_stderr_shows_how_to_resume(self, hermes: Hermes) -> None:
        done = hermes("chat", "-q", "!say just this")
        (row,) = sessions(hermes)
        assert (done.returncode, done.stdout) == (0, "just this\n")
        assert f"  hermes -r {row['id']}\n" in done.stderr
        assert "\x1b" not in done.stderr

    def test_resumed_question_prints_only_the_answer_to_stdout(self, hermes: Hermes, remember: Remember) -> None:
        remember("a1", ("user", "hello"), ("assistant", "yes?"))
        done = hermes("-r", "a1", "-Q", "-q", "!say back")
        assert done.stdout == "back\n"
        assert done.stderr.startswith("↻ Resumed a1 ")
        assert done.stderr.endswith("session_id: a1\n")

    def test_quiet_prints_only_the_final_text(self, hermes: Hermes) -> None:
        steps = [Say("Let me look.", calls=[Call("session_search")]), Say("\tTabs\x07 stay.")]
        with ModelServer(*steps) as server:
            hermes.home.mkdir()
            (hermes.home / "config.yaml").write_text(server.config + "agent: {auto_title: false}\n")
            done = hermes("-Q", "-q", "hi")
            server.then(*steps)
            talkative = hermes("-q", "hi")
        assert done.stdout == "\tTabs\x07 stay.\n"
        assert talkative.stdout == "Let me look.\n\tTabs\x07 stay.\n"

    def test_tool_calls_are_shown_on_stderr(self, hermes: Hermes) -> None:
        done = hermes("-q", "!tool session_search {}")
        assert "→ session_search\n" in done.stderr
        assert "→" not in done.stdout

    def test_closed_pipe_is_not_an_error(self, hermes: Hermes) -> None:
        process = hermes.start("-q", "!long 5000 0.001", stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.read(5)
        process.stdout.close()
        process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 0
        (row,) = sessions(hermes)
        assert row["end_reason"] == "user_exit"

    def test_unwritable_output_is_an_error(self, hermes: Hermes) -> None:
        with open("/dev/full", "wb") as full:
            process = hermes.start("-Q", "-q", "!say hello", stdout=full)
            _, err = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 1
        assert b"cannot be written" in err

    def test_session_has_a_title_at_the_end(self, hermes: Hermes) -> None:
        hermes("-Q", "-q", "How do I tune the connection pool of the database?")
        (row,) = sessions(hermes)
        assert row["title"]

    def test_single_question_imports_no_prompt_or_network(self, hermes: Hermes) -> None:
        loaded = imported_by(hermes, "-Q", "-q", "hi")
        assert (
            loaded & {"prompt_toolkit", "rich", "httpx2", "asyncio", "yaml", "hermes.cli.chat.slash.registry"} == set()
        )

    def test_model_option_chooses_the_model(self, hermes: Hermes) -> None:
        with ModelServer(Say("Here.")) as server:
            hermes.home.mkdir()
            (hermes.home / "config.yaml").write_text(server.config)
            assert hermes("-m", "big-model", "-Q", "-q", "hi").stdout == "Here.\n"
            assert server.requests[0].body["model"] == "big-model"

    def test_unknown_model_is_an_error_before_anything_is_sent(self, hermes: Hermes) -> None:
        done = hermes("-m", "nowhere", "-q", "hi")
        assert (done.returncode, done.stdout) == (1, "")
        assert "no provider is configured for the model" in done.stderr
        assert sessions(hermes) == []


class TestJsonAnswer:
    """`--json` writes one object about the turn."""

    def ask(self, hermes: Hermes, step: Say | Fail, *args: str, data: str = "") -> subprocess.CompletedProcess[bytes]:
        with ModelServer(step) as server:
            hermes.home.mkdir()
            (hermes.home / "config.yaml").write_text(
                server.config.replace("{", "{attempts: 1, ") + "agent: {auto_title: false}\n"
            )
            return piped(hermes, data, *args, "--json")

    def test_object_has_the_answer_the_session_and_the_usage(self, hermes: Hermes) -> None:
        done = self.ask(hermes, Say("Because."), "-q", "why", data="a log\n")
        item = json.loads(done.stdout)["item"]
        (row,) = sessions(hermes)
        assert (done.returncode, done.stderr, item["answer"], item["status"]) == (0, b"", "Because.", "done")
        assert (item["session_id"], item["title"], item["error"]) == (row["id"], row["title"], None)
        assert item["usage"]["output_tokens"] > 0
        assert "cost_usd" in item

    def test_failed_turn_has_its_error_in_the_object_and_an_exit_code(self, hermes: Hermes) -> None:
        done = self.ask(hermes, Fail(400), "-q", "why")
        item = json.loads(done.stdout)["item"]
        assert (done.returncode, item["status"]) == (1, "failed")
        assert json.loads(done.stderr.splitlines()[-1])["error"] == item["error"]

    @pytest.mark.parametrize("args", [("--lines", "--json"), ("-q", " ", "--json")])
    def test_usage_errors_are_json_too(self, hermes: Hermes, args: tuple[str, ...]) -> None:
        done = hermes(*args)
        assert (done.returncode, json.loads(done.stderr)["error"]["code"]) == (2, "usage")


class TestPipedText:
    """Piped text is one message, after the question if there is one."""

    def send(
        self, hermes: Hermes, data: str | bytes, *args: str
    ) -> tuple[subprocess.CompletedProcess[bytes], list[str]]:
        """Return the finished process and the messages that reached the model."""
        with ModelServer(otherwise=lambda _: Say("Seen.")) as server:
            hermes.home.mkdir(exist_ok=True)
            (hermes.home / "config.yaml").write_text(server.config + "agent: {auto_title: false}\n")
            done = piped(hermes, data, *args)
            return done, [request.last_text for request in server.requests]

    def test_piped_text_follows_the_question(self, hermes: Hermes) -> None:
        done, texts = self.send(hermes, "line 1\nline 2\n", "-Q", "-q", "explain")
        assert (done.returncode, done.stdout, texts) == (0, b"Seen.\n", ["explain\n\nline 1\nline 2"])

    def test_piped_text_follows_a_message_without_an_option(self, hermes: Hermes) -> None:
        done, texts = self.send(hermes, "line 1\n", "-Q", "explain it all")
        assert (done.returncode, texts) == (0, ["explain it all\n\nline 1"])

    def test_piped_text_alone_is_one_message(self, hermes: Hermes) -> None:
        done, texts = self.send(hermes, "line 1\n\n/quit\nline 2\n", "-Q")
        assert (done.returncode, texts) == (0, ["line 1\n\n/quit\nline 2"])

    def test_piped_text_is_never_a_command(self, hermes: Hermes) -> None:
        _, texts = self.send(hermes, "/title mine\n")
        assert texts == ["/title mine"]

    @pytest.mark.parametrize("data", ["", "\n \n"])
    def test_empty_pipe_sends_the_question_alone(self, hermes: Hermes, data: str) -> None:
        done, texts = self.send(hermes, data, "-Q", "-q", "explain")
        assert (done.returncode, texts) == (0, ["explain"])

    def test_empty_pipe_without_a_question_is_not_an_error(self, hermes: Hermes) -> None:
        done, texts = self.send(hermes, "")
        assert (done.returncode, done.stdout, texts) == (0, b"", [])
        assert sessions(hermes) == []

    def test_too_much_piped_text_is_refused(self, hermes: Hermes) -> None:
        done, texts = self.send(hermes, b"x" * (MAX_BYTES + 1), "-q", "explain")
        assert (done.returncode, texts) == (2, [])
        assert b"Error: stdin has more than 1.0 MB; nothing was sent\nHint: " in done.stderr
        assert sessions(hermes) == []

    def test_piped_text_of_the_maximum_size_is_sent(self, hermes: Hermes) -> None:
        _, texts = self.send(hermes, b"x" * MAX_BYTES, "-q", "explain")
        assert [len(text) for text in texts] == [MAX_BYTES + len("explain\n\n")]

    def test_piped_binary_data_is_refused(self, hermes: Hermes) -> None:
        done, texts = self.send(hermes, b"\x7fELF\0\0", "-q", "explain")
        assert (done.returncode, texts) == (2, [])
        assert b"stdin is not text: byte 5 is zero" in done.stderr

    def test_piped_invalid_utf8_shows_a_note(self, hermes: Hermes) -> None:
        done, texts = self.send(hermes, b"caf\xe9", "-q", "explain")
        assert texts == ["explain\n\ncaf\ufffd"]
        assert b"Note: stdin is not valid UTF-8" in done.stderr


class TestSilentStdin:
    """Under cron, ssh or CI, stdin can be open although no program ever writes to it."""

    def test_silent_stdin_does_not_block_a_question(self, hermes: Hermes) -> None:
        process = hermes.start("-Q", "-q", "!say on my own", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.read() == b"on my own\n"
        assert process.wait(TIMEOUT_S) == 0
        _, err = process.communicate()
        assert b"Note: no input on stdin for 5 s" in err

    def test_stdin_option_waits_for_input(self, hermes: Hermes) -> None:
        process = hermes.start("-Q", "-q", "!say then:", "--stdin", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        out, err = process.communicate(b"at last", timeout=TIMEOUT_S)
        assert b"Note" not in err
        assert b"at last" in out

    def test_signal_ends_the_wait_for_stdin(self, hermes: Hermes) -> None:
        process = hermes.start("-q", "!say x", "--stdin", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        wait_until(hermes.database.exists, "the store")
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) in (143, -signal.SIGTERM)
        process.communicate()

    @pytest.mark.parametrize("args", [("-Q", "-q", "!say still here"), ("-Q",), ("--lines",)])
    def test_closed_stdin_is_not_an_error(self, hermes: Hermes, args: tuple[str, ...]) -> None:
        line = shlex.join([*COMMAND, *args])
        done = subprocess.run(
            ["/bin/sh", "-c", f"exec {line} <&-"], env=hermes.environment(), capture_output=True, timeout=TIMEOUT_S
        )
        assert (done.returncode, done.stdout) == (0, b"still here\n" if "-q" in args else b"")


class TestLines:
    def test_each_line_is_one_turn(self, hermes: Hermes) -> None:
        done = piped(hermes, "!say one\n\n!say two", "--lines", "-Q")
        assert (done.returncode, done.stdout) == (0, b"one\ntwo\n")
        (row,) = sessions(hermes)
        assert row["message_count"] == 4
        assert row["end_reason"] == "user_exit"

    def test_no_lines_store_nothing(self, hermes: Hermes) -> None:
        done = piped(hermes, "", "--lines")
        assert (done.returncode, done.stdout) == (0, b"")
        assert sessions(hermes) == []

    def test_lines_can_be_commands(self, hermes: Hermes) -> None:
        done = piped(hermes, "/title from a pipe\n!say one\n/quit\n!say two\n", "--lines")
        assert (done.returncode, done.stdout) == (0, b"one\n")
        assert sessions(hermes)[0]["title"] == "from a pipe"

    def test_path_is_not_a_command(self, hermes: Hermes) -> None:
        assert piped(hermes, "/etc/hosts: what is it?\n", "--lines").returncode == 0

    def test_invalid_line_is_an_error_and_the_rest_runs(self, hermes: Hermes) -> None:
        done = piped(hermes, "/titel x\n!say one\n", "--lines")
        assert (done.returncode, done.stdout) == (2, b"one\n")
        assert b"Error: there is no command /titel\nHint: did you mean /title" in done.stderr

    def test_failed_line_sets_the_exit_code(self, hermes: Hermes) -> None:
        with ModelServer(Fail(401), Say("after")) as server:
            hermes.home.mkdir()
            (hermes.home / "config.yaml").write_text(server.config + "agent: {auto_title: false}\n")
            done = piped(hermes, "one\ntwo\n", "--lines", "-Q")
        assert (done.returncode, done.stdout) == (1, b"after\n")

    def test_lines_may_be_invalid_utf8(self, hermes: Hermes) -> None:
        assert piped(hermes, b"\xff\xfe caf\xe9\n", "--lines").returncode == 0

    def test_too_long_line_is_refused(self, hermes: Hermes) -> None:
        done = piped(hermes, b"x" * (2 * MAX_BYTES), "--lines")
        assert (done.returncode, done.stdout) == (2, b"")
        assert b"longer than 1.0 MB" in done.stderr

    def test_lines_with_a_question_are_a_usage_error(self, hermes: Hermes) -> None:
        assert piped(hermes, "one\n", "--lines", "-q", "two").returncode == 2

    def test_locale_without_unicode_gets_plain_glyphs(self, hermes: Hermes) -> None:
        done = hermes("-q", "!tool session_search {}", PYTHONIOENCODING="ascii")
        assert done.returncode == 0
        assert "> session_search\n" in done.stderr


class TestUpkeep:
    @pytest.mark.parametrize(("is_wanted", "left"), [("true", ["new"]), ("false", ["new", "old"])])
    def test_chat_prunes_old_sessions_if_configured(self, hermes: Hermes, is_wanted: str, left: list[str]) -> None:
        with SessionDB(hermes.database) as db:
            for session_id, age_days in (("old", 200), ("new", 1)):
                moment = time.time() - age_days * 86_400
                db.create_session(session_id, "cli", started_at=moment)
                db.append_messages(session_id, [{"role": "user", "content": "hello", "timestamp": moment}])
                db.end_session(session_id, "user_exit")
        (hermes.home / "config.yaml").write_text(f"sessions: {{auto_prune: {is_wanted}}}\n")
        process = hermes.start("--lines", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None
        try:
            process.stdin.write(b"!long 30 0.05\n")
            process.communicate(timeout=TIMEOUT_S)
        finally:
            process.kill()
        listed = [row["id"] for row in sessions(hermes)]
        assert sorted(each for each in listed if each in ("old", "new")) == left
