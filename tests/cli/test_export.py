"""`hermes sessions export`: the JSON lines and the output file."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from hermes_state import SessionDB
from tests.cli.conftest import COMMAND, TIMEOUT_S, Hermes

CALLS = [{"id": "c1", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "ls"}'}}]


@pytest.fixture
def full(hermes: Hermes) -> Hermes:
    """A store with a conversation of all kinds of messages, and a short one of another source."""
    hermes.store(("tea", "telegram", None, "How long for green tea?"))
    with SessionDB(hermes.database) as db:
        db.create_session("auth", "cli", model="m", system_prompt="Be brief.", started_at=1000.0)
        db.set_session_title("auth", "refactoring auth")
        db.append_message("auth", "user", "日本語 🎉 half \ud83d and \0", timestamp=1001.0)
        db.append_message("auth", "assistant", None, tool_calls=CALLS, reasoning="hm", timestamp=1002.0)
        db.append_message("auth", "tool", "auth.py", tool_name="terminal", tool_call_id="c1", timestamp=1003.0)
        undone = db.append_message("auth", "user", "oops", timestamp=1004.0)
        db.rewind_to_message("auth", undone)
        db.update_token_counts("auth", 10, 20)
    return hermes


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().decode().splitlines()]


def left_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.name != "home")


class TestWhatIsWritten:
    def test_export_has_one_object_per_session_latest_first(self, full: Hermes, tmp_path: Path) -> None:
        done = full("sessions", "export", str(tmp_path / "x.jsonl"))
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == f"Exported 2 sessions to {tmp_path / 'x.jsonl'}.\n"
        assert [line["id"] for line in lines_of(tmp_path / "x.jsonl")] == ["tea", "auth"]

    def test_export_has_all_columns_and_messages(self, full: Hermes, tmp_path: Path) -> None:
        full("sessions", "export", str(tmp_path / "x.jsonl"), "--session", "refactoring auth")
        (line,) = lines_of(tmp_path / "x.jsonl")
        with SessionDB(full.database, read_only=True) as db:
            row, messages = db.get_session("auth"), db.get_messages("auth", include_inactive=True)
        assert row is not None
        assert {name: line[name] for name in row} == row
        assert line["messages"] == messages
        assert [message["active"] for message in line["messages"]] == [1, 1, 1, 0]
        assert line["schema"] == "hermes.export/1"
        assert [(each["kind"], each["input_tokens"]) for each in line["usage"]] == [("delta", 10)]
        assert [(each["action"], each["target_uid"]) for each in line["rewinds"]] == [("rewind", messages[3]["uid"])]

    def test_export_is_utf8_without_needless_escapes(self, full: Hermes, tmp_path: Path) -> None:
        full("sessions", "export", str(tmp_path / "x.jsonl"), "--session", "auth", LANG="C", PYTHONUTF8="0")
        assert "日本語 🎉 half \\ud83d and \\u0000".encode() in (tmp_path / "x.jsonl").read_bytes()

    def test_export_of_one_source(self, full: Hermes, tmp_path: Path) -> None:
        full("sessions", "export", str(tmp_path / "x.jsonl"), "--source", "telegram")
        assert [line["id"] for line in lines_of(tmp_path / "x.jsonl")] == ["tea"]

    def test_export_since_a_moment(self, full: Hermes, tmp_path: Path) -> None:
        with SessionDB(full.database) as db:
            db.create_session("root", "cli", started_at=1000.0)
            db.end_session("root", "compression")
            db.create_session("tip", "cli", parent_session_id="root")
        full("sessions", "export", str(tmp_path / "x.jsonl"), "--since", "1d")
        # An active conversation is exported completely, however old its start.
        assert {line["id"] for line in lines_of(tmp_path / "x.jsonl")} == {"tea", "tip", "root"}

    def test_redacted_export_has_no_secrets(self, full: Hermes, tmp_path: Path) -> None:
        secret = {"id": "c2", "function": {"name": "terminal", "arguments": '{"command": "TOKEN=abcdefgh ls"}'}}
        with SessionDB(full.database) as db:
            db.append_message("auth", "user", "password: hunter2")
            db.append_message("auth", "assistant", [{"type": "text", "text": "api_key=abcdefgh"}], tool_calls=[secret])
            db.set_session_title("auth", "token: abcdefgh")
            db.update_system_prompt("auth", "secret=abcdefgh")
        done = full("sessions", "export", str(tmp_path / "x.jsonl"), "--redact")
        assert done.stderr == "5 secrets replaced. Check the file before you share it.\n"
        written = (tmp_path / "x.jsonl").read_text()
        assert "hunter2" not in written
        assert "abcdefgh" not in written
        auth = lines_of(tmp_path / "x.jsonl")[0]
        assert (auth["title"], auth["redacted"]) == ("token: [redacted]", True)
        arguments = json.loads(auth["messages"][-1]["tool_calls"][0]["function"]["arguments"])
        assert arguments == {"command": "TOKEN=[redacted] ls"}


class TestWhereItGoes:
    def test_export_to_stdout_prints_only_the_lines(self, full: Hermes) -> None:
        done = full("sessions", "export", "-")
        assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == ["tea", "auth"]
        assert done.stderr == ""

    def test_closed_pipe_is_not_an_error(self, full: Hermes) -> None:
        with SessionDB(full.database) as db:
            db.append_messages("auth", [{"role": "user", "content": "x" * 1000} for _ in range(3_000)])
        process = full.start("sessions", "export", "-", stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        process.stderr.close()
        assert process.wait(TIMEOUT_S) == 0

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
    @pytest.mark.parametrize("output", ["-", "/dev/full"])
    def test_export_to_a_full_device_is_an_error(self, full: Hermes, output: str) -> None:
        with open("/dev/full", "w") as device:
            process = full.start("sessions", "export", output, stdout=device)
            _, message = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 1
        assert b"cannot be written: No space left on device" in message

    def test_export_to_a_named_pipe(self, full: Hermes, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        read: list[str] = []
        reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_text()), daemon=True)
        reader.start()
        assert full("sessions", "export", str(tmp_path / "pipe"), "--source", "telegram").returncode == 0
        reader.join(TIMEOUT_S)
        assert json.loads(read[0])["id"] == "tea"
        assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)

    def test_exported_file_is_readable_only_by_its_owner(self, full: Hermes, tmp_path: Path) -> None:
        subprocess.run(
            ["sh", "-c", 'umask 000 && exec "$@"', "sh", *COMMAND, "sessions", "export", str(tmp_path / "x.jsonl")],
            env=full.environment(),
            check=True,
            capture_output=True,
            timeout=TIMEOUT_S,
        )
        assert stat.S_IMODE((tmp_path / "x.jsonl").stat().st_mode) == 0o600
        assert left_in(tmp_path) == ["x.jsonl"]

    def test_export_does_not_replace_an_existing_file(self, full: Hermes, tmp_path: Path) -> None:
        target = tmp_path / "x.jsonl"
        target.write_text("mine")
        done = full("sessions", "export", str(target))
        assert done.returncode == 4
        assert "pass --force to replace it" in done.stderr
        assert target.read_text() == "mine"
        assert full("sessions", "export", str(target), "--force").returncode == 0
        assert len(lines_of(target)) == 2

    def test_export_through_a_link_keeps_the_link(self, full: Hermes, tmp_path: Path) -> None:
        (tmp_path / "there").mkdir()
        (tmp_path / "there" / "real.jsonl").write_text("old")
        (tmp_path / "link").symlink_to(tmp_path / "there" / "real.jsonl")
        assert full("sessions", "export", str(tmp_path / "link"), "--force").returncode == 0
        assert (tmp_path / "link").is_symlink()
        assert len(lines_of(tmp_path / "there" / "real.jsonl")) == 2

    @pytest.mark.parametrize(
        ("output", "code", "message"),
        [
            ("{tmp}", 2, "is a directory"),
            ("{tmp}/no/where.jsonl", 3, "there is no directory"),
            ("{home}/state.db", 2, "belongs to the session database"),
            ("{home}/state.db-wal", 2, "belongs to the session database"),
        ],
    )
    def test_export_to_an_unusable_place_is_an_error(
        self, full: Hermes, tmp_path: Path, output: str, code: int, message: str
    ) -> None:
        before = full.database.read_bytes()
        done = full("sessions", "export", output.format(tmp=tmp_path, home=full.home), "--force")
        assert done.returncode == code
        assert message in done.stderr
        assert full.database.read_bytes() == before

    @pytest.mark.parametrize("name", ["missing", "t"])
    def test_export_of_an_unknown_session_creates_no_file(self, full: Hermes, tmp_path: Path, name: str) -> None:
        done = full("sessions", "export", str(tmp_path / "x.jsonl"), "--session", name)
        assert done.returncode == 3
        assert left_in(tmp_path) == []

    def test_export_of_an_empty_store_is_an_empty_file(self, hermes: Hermes, tmp_path: Path) -> None:
        done = hermes("sessions", "export", str(tmp_path / "x.jsonl"))
        assert done.returncode == 0
        assert "No sessions yet" in done.stderr
        assert (tmp_path / "x.jsonl").read_bytes() == b""
        assert not hermes.database.exists()


def test_export_prints_json(full: Hermes, tmp_path: Path) -> None:
    target = str(tmp_path / "x.jsonl")
    assert full.json("sessions", "export", target) == {
        "schema": "hermes.exported/1",
        "item": {"path": target, "format": "jsonl", "sessions": 2, "messages": 5, "redacted": None},
    }
    assert full("sessions", "export", "-", "--json").returncode == 2


def test_export_to_a_terminal_escapes_control_characters(full: Hermes) -> None:
    with SessionDB(full.database) as db:
        db.append_message("tea", "user", "\x1b[31m \x9b31m \x7f é")
    shown = "".join(full.on_terminal("sessions", "export", "-", "--session", "tea"))
    assert json.loads(shown)["messages"][-1]["content"] == "\x1b[31m \x9b31m \x7f é"
    assert not set("\x1b\x9b\x7f") & set(shown)
    assert "é" in shown
