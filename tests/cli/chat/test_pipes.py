"""A chat without a terminal: one question, lines from elsewhere, and what goes where."""

from __future__ import annotations

import shlex
import signal
import subprocess
import time

import pytest

from hermes.cli.chat.terminal.piped_text import MAX_BYTES
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
    def test_quietly_stdout_is_the_answer_and_stderr_the_id(self, hermes: Hermes) -> None:
        done = hermes("-Q", "-q", "!say just this")
        (row,) = sessions(hermes)
        assert (done.returncode, done.stdout, done.stderr) == (0, "just this\n", f"session_id: {row['id']}\n")

    def test_otherwise_stderr_tells_how_to_come_back(self, hermes: Hermes) -> None:
        done = hermes("chat", "-q", "!say just this")
        (row,) = sessions(hermes)
        assert (done.returncode, done.stdout) == (0, "just this\n")
        assert f"  hermes -r {row['id']}\n" in done.stderr
        assert "\x1b" not in done.stderr

    def test_a_resumed_one_says_nothing_else_on_stdout(self, hermes: Hermes, remember: Remember) -> None:
        remember("a1", ("user", "hello"), ("assistant", "yes?"))
        done = hermes("-r", "a1", "-Q", "-q", "!say back")
        assert done.stdout == "back\n"
        assert done.stderr.startswith("↻ Resumed a1 ")
        assert done.stderr.endswith("session_id: a1\n")

    def test_quietly_only_the_last_words_count(self, hermes: Hermes) -> None:
        steps = [Say("Let me look.", calls=[Call("session_search")]), Say("\tTabs\x07 stay.")]
        with ModelServer(*steps) as server:
            hermes.home.mkdir()
            (hermes.home / "config.yaml").write_text(server.config + "agent: {auto_title: false}\n")
            done = hermes("-Q", "-q", "hi")
            server.then(*steps)
            talkative = hermes("-q", "hi")
        assert done.stdout == "\tTabs\x07 stay.\n"
        assert talkative.stdout == "Let me look.\n\tTabs\x07 stay.\n"

    def test_tools_are_told_on_stderr(self, hermes: Hermes) -> None:
        done = hermes("-q", "!tool session_search {}")
        assert "→ session_search {}\n" in done.stderr
        assert "→" not in done.stdout

    def test_a_reader_that_leaves_is_no_failure(self, hermes: Hermes) -> None:
        process = hermes.start("-q", "!long 5000 0.001", stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.read(5)
        process.stdout.close()
        process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 0
        (row,) = sessions(hermes)
        assert row["end_reason"] == "user_exit"

    def test_output_that_cannot_be_written_is_a_failure(self, hermes: Hermes) -> None:
        with open("/dev/full", "wb") as full:
            process = hermes.start("-Q", "-q", "!say hello", stdout=full)
            _, err = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 1
        assert b"cannot be written" in err

    def test_the_title_is_there_when_it_ends(self, hermes: Hermes) -> None:
        hermes("-Q", "-q", "How do I tune the connection pool of the database?")
        (row,) = sessions(hermes)
        assert row["title"]

    def test_loads_nothing_for_a_person_or_the_network(self, hermes: Hermes) -> None:
        loaded = imported_by(hermes, "-Q", "-q", "hi")
        assert (
            loaded & {"prompt_toolkit", "rich", "httpx2", "asyncio", "yaml", "hermes.cli.chat.slash.registry"} == set()
        )

    def test_a_model_can_be_named(self, hermes: Hermes) -> None:
        with ModelServer(Say("Here.")) as server:
            hermes.home.mkdir()
            (hermes.home / "config.yaml").write_text(server.config)
            assert hermes("-m", "big-model", "-Q", "-q", "hi").stdout == "Here.\n"
            assert server.requests[0].body["model"] == "big-model"

    def test_a_model_that_cannot_be_had_is_told_before_anything_is_said(self, hermes: Hermes) -> None:
        done = hermes("-m", "nowhere", "-q", "hi")
        assert (done.returncode, done.stdout) == (1, "")
        assert "nothing says where it is" in done.stderr
        assert sessions(hermes) == []


class TestPipedText:
    """What is piped in is one message, behind the question if there is one."""

    def asked(
        self, hermes: Hermes, data: str | bytes, *args: str
    ) -> tuple[subprocess.CompletedProcess[bytes], list[str]]:
        """What came of it, and the messages that reached the model."""
        with ModelServer(otherwise=lambda _: Say("Seen.")) as server:
            hermes.home.mkdir(exist_ok=True)
            (hermes.home / "config.yaml").write_text(server.config + "agent: {auto_title: false}\n")
            done = piped(hermes, data, *args)
            return done, [request.last_text for request in server.requests]

    def test_follows_the_question(self, hermes: Hermes) -> None:
        done, texts = self.asked(hermes, "line 1\nline 2\n", "-Q", "-q", "explain")
        assert (done.returncode, done.stdout, texts) == (0, b"Seen.\n", ["explain\n\nline 1\nline 2"])

    def test_alone_is_one_turn(self, hermes: Hermes) -> None:
        done, texts = self.asked(hermes, "line 1\n\n/quit\nline 2\n", "-Q")
        assert (done.returncode, texts) == (0, ["line 1\n\n/quit\nline 2"])

    def test_is_never_a_command(self, hermes: Hermes) -> None:
        _, texts = self.asked(hermes, "/title mine\n")
        assert texts == ["/title mine"]

    @pytest.mark.parametrize("data", ["", "\n \n"])
    def test_of_nothing_leaves_the_question(self, hermes: Hermes, data: str) -> None:
        done, texts = self.asked(hermes, data, "-Q", "-q", "explain")
        assert (done.returncode, texts) == (0, ["explain"])

    def test_of_nothing_without_a_question_is_no_failure(self, hermes: Hermes) -> None:
        done, texts = self.asked(hermes, "")
        assert (done.returncode, done.stdout, texts) == (0, b"", [])
        assert sessions(hermes) == []

    def test_too_much_is_refused_and_nothing_is_sent(self, hermes: Hermes) -> None:
        done, texts = self.asked(hermes, b"x" * (MAX_BYTES + 1), "-q", "explain")
        assert (done.returncode, texts) == (2, [])
        assert b"Error: stdin has more than 1.0 MB; nothing was sent\nHint: " in done.stderr
        assert sessions(hermes) == []

    def test_as_much_as_is_allowed_arrives(self, hermes: Hermes) -> None:
        _, texts = self.asked(hermes, b"x" * MAX_BYTES, "-q", "explain")
        assert [len(text) for text in texts] == [MAX_BYTES + len("explain\n\n")]

    def test_that_is_no_text_is_refused(self, hermes: Hermes) -> None:
        done, texts = self.asked(hermes, b"\x7fELF\0\0", "-q", "explain")
        assert (done.returncode, texts) == (2, [])
        assert b"stdin is no text: byte 5 is zero" in done.stderr

    def test_that_is_not_all_utf8_says_so(self, hermes: Hermes) -> None:
        done, texts = self.asked(hermes, b"caf\xe9", "-q", "explain")
        assert texts == ["explain\n\ncaf\ufffd"]
        assert b"Note: stdin is not all UTF-8" in done.stderr


class TestSilentStdin:
    """Under cron, ssh or CI, stdin can be open without anybody who ever writes to it."""

    def test_does_not_keep_a_question_for_ever(self, hermes: Hermes) -> None:
        process = hermes.start("-Q", "-q", "!say on my own", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.read() == b"on my own\n"
        assert process.wait(TIMEOUT_S) == 0
        _, err = process.communicate()
        assert b"Note: stdin is open, but nothing came for 5 s" in err

    def test_is_waited_for_where_that_is_wanted(self, hermes: Hermes) -> None:
        process = hermes.start("-Q", "-q", "!say then:", "--stdin", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        out, err = process.communicate(b"at last", timeout=TIMEOUT_S)
        assert b"Note" not in err
        assert b"at last" in out

    def test_a_signal_ends_the_wait(self, hermes: Hermes) -> None:
        process = hermes.start("-q", "!say x", "--stdin", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        wait_until(hermes.database.exists, "the store")
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) in (143, -signal.SIGTERM)
        process.communicate()

    @pytest.mark.parametrize("args", [("-Q", "-q", "!say still here"), ("-Q",), ("--lines",)])
    def test_that_is_closed_is_no_failure(self, hermes: Hermes, args: tuple[str, ...]) -> None:
        line = shlex.join([*COMMAND, *args])
        done = subprocess.run(
            ["/bin/sh", "-c", f"exec {line} <&-"], env=hermes.environment(), capture_output=True, timeout=TIMEOUT_S
        )
        assert (done.returncode, done.stdout) == (0, b"still here\n" if "-q" in args else b"")


class TestLines:
    def test_are_one_turn_each(self, hermes: Hermes) -> None:
        done = piped(hermes, "!say one\n\n!say two", "--lines", "-Q")
        assert (done.returncode, done.stdout) == (0, b"one\ntwo\n")
        (row,) = sessions(hermes)
        assert row["message_count"] == 4
        assert row["end_reason"] == "user_exit"

    def test_none_leave_nothing(self, hermes: Hermes) -> None:
        done = piped(hermes, "", "--lines")
        assert (done.returncode, done.stdout) == (0, b"")
        assert sessions(hermes) == []

    def test_can_be_commands(self, hermes: Hermes) -> None:
        done = piped(hermes, "/title from a pipe\n!say one\n/quit\n!say two\n", "--lines")
        assert (done.returncode, done.stdout) == (0, b"one\n")
        assert sessions(hermes)[0]["title"] == "from a pipe"

    def test_a_path_is_no_command(self, hermes: Hermes) -> None:
        assert piped(hermes, "/etc/hosts: what is it?\n", "--lines").returncode == 0

    def test_that_make_no_sense_are_told_and_the_rest_is_done(self, hermes: Hermes) -> None:
        done = piped(hermes, "/titel x\n!say one\n", "--lines")
        assert (done.returncode, done.stdout) == (2, b"one\n")
        assert b"Error: there is no command /titel\nHint: did you mean /title" in done.stderr

    def test_a_failure_is_in_the_exit_code(self, hermes: Hermes) -> None:
        with ModelServer(Fail(401), Say("after")) as server:
            hermes.home.mkdir()
            (hermes.home / "config.yaml").write_text(server.config + "agent: {auto_title: false}\n")
            done = piped(hermes, "one\ntwo\n", "--lines", "-Q")
        assert (done.returncode, done.stdout) == (1, b"after\n")

    def test_may_be_anything_but_text(self, hermes: Hermes) -> None:
        assert piped(hermes, b"\xff\xfe caf\xe9\n", "--lines").returncode == 0

    def test_do_not_grow_without_end(self, hermes: Hermes) -> None:
        done = piped(hermes, b"x" * (2 * MAX_BYTES), "--lines")
        assert (done.returncode, done.stdout) == (2, b"")
        assert b"longer than 1.0 MB" in done.stderr

    def test_go_without_a_question(self, hermes: Hermes) -> None:
        assert piped(hermes, "one\n", "--lines", "-q", "two").returncode == 2

    def test_a_locale_without_unicode_gets_plain_signs(self, hermes: Hermes) -> None:
        done = hermes("-q", "!tool session_search {}", PYTHONIOENCODING="ascii")
        assert done.returncode == 0
        assert "> session_search {}" in done.stderr


class TestUpkeep:
    @pytest.mark.parametrize(("is_wanted", "left"), [("true", ["new"]), ("false", ["new", "old"])])
    def test_old_sessions_are_pruned_where_that_is_wished(
        self, hermes: Hermes, is_wanted: str, left: list[str]
    ) -> None:
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
