"""`hermes sessions import` under faults: each session is imported completely or not at all."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from hermes.cli.sessions.import_ import copy_bounded
from hermes.errors import InvalidValue
from hermes_state import SessionDB, StoreError
from tests.cli.conftest import COMMAND, TIMEOUT_S, Hermes
from tests.interop.files import write
from tests.support.plainsql import flaws
from tests.support.waiting import wait_until

SESSIONS, MESSAGES = 60, 200


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that takes a moment to import."""
    return write(
        tmp_path_factory.mktemp("export") / "x.jsonl",
        [
            {
                "id": f"s{number}",
                "source": "cli",
                "messages": [{"role": "user", "content": f"word{n} said", "uid": f"u{n}"} for n in range(MESSAGES)],
            }
            for number in range(SESSIONS)
        ],
    )


def count_messages(hermes: Hermes) -> list[int]:
    """Return the message count of each stored session."""
    try:
        with SessionDB(hermes.database, read_only=True) as db:
            return [row["message_count"] for row in db.search_sessions(limit=-1)]
    except StoreError:
        return []  # it is only just being made


def start_import(hermes: Hermes, export: Path) -> subprocess.Popen[bytes]:
    """Start an import and return it once the first sessions are stored."""
    process = hermes.start("sessions", "import", str(export), stdout=subprocess.PIPE)
    wait_until(lambda: hermes.database.exists() and len(count_messages(hermes)) > 0, "the first sessions are in")
    return process


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_stopped_import_leaves_whole_sessions_and_the_next_one_adds_the_rest(
    hermes: Hermes, export: Path, number: signal.Signals
) -> None:
    process = start_import(hermes, export)
    process.send_signal(number)
    _, output = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == (-signal.SIGKILL if number == signal.SIGKILL else 130)
    here = count_messages(hermes)
    if number == signal.SIGINT:
        assert (b"The rest was not imported." if len(here) < SESSIONS else b"All sessions are imported.") in output
    assert set(here) == {MESSAGES}
    done = hermes.json("sessions", "import", str(export))["item"]
    assert done["sessions"] == {"new": SESSIONS - len(here), "skipped": len(here), "merged": 0, "renamed": 0, "kept": 0}
    assert count_messages(hermes) == [MESSAGES] * SESSIONS
    assert flaws(hermes.database) == []
    # All of it is in the index by then, and found.
    assert hermes.json("sessions", "search", "word7", "--limit", "100")["total"] == SESSIONS


def test_full_disk_leaves_whole_sessions(hermes: Hermes, export: Path) -> None:
    SessionDB(hermes.database).close()
    done = subprocess.run(
        ["sh", "-c", 'ulimit -f 1024 && exec "$@"', "sh", *COMMAND, "sessions", "import", str(export)],
        env=hermes.environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 1
    assert "Error: " in done.stderr
    assert set(count_messages(hermes)) <= {MESSAGES}
    assert flaws(hermes.database) == []
    assert hermes("sessions", "import", str(export)).returncode == 0
    assert count_messages(hermes) == [MESSAGES] * SESSIONS


def test_import_of_a_device_is_refused(hermes: Hermes) -> None:
    result = hermes("sessions", "import", "/dev/zero")
    assert (result.returncode, "is a device" in result.stderr) == (2, True)


def test_endless_stream_is_refused_before_the_disk_is_full(tmp_path: Path) -> None:
    with (tmp_path / "copy").open("wb") as target, Path("/dev/zero").open("rb") as stream:
        with pytest.raises(InvalidValue, match="more than 5000000 bytes"):
            copy_bounded(stream, target, "-", 5_000_000)
        assert target.tell() <= 5_000_000
