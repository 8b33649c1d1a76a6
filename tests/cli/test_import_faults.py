"""`hermes sessions import` when something comes between: each session is in whole, or not at all."""

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
    """A file that takes a moment to bring in."""
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


def counts(hermes: Hermes) -> list[int]:
    """How many messages each session has that is here."""
    try:
        with SessionDB(hermes.database, read_only=True) as db:
            return [row["message_count"] for row in db.search_sessions(limit=-1)]
    except StoreError:
        return []  # it is only just being made


def begun(hermes: Hermes, export: Path) -> subprocess.Popen[bytes]:
    """An import of which something is in already."""
    process = hermes.start("sessions", "import", str(export), stdout=subprocess.PIPE)
    wait_until(lambda: hermes.database.exists() and len(counts(hermes)) > 0, "the first sessions are in")
    return process


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_whatever_ends_it_sessions_are_whole_and_the_next_one_brings_in_the_rest(
    hermes: Hermes, export: Path, number: signal.Signals
) -> None:
    process = begun(hermes, export)
    process.send_signal(number)
    _, told = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == (-signal.SIGKILL if number == signal.SIGKILL else 130)
    here = counts(hermes)
    if number == signal.SIGINT:
        assert (b"The rest was not brought in." if len(here) < SESSIONS else b"All is brought in.") in told
    assert set(here) == {MESSAGES}
    done = hermes.json("sessions", "import", str(export))["item"]
    assert done["sessions"] == {"new": SESSIONS - len(here), "skipped": len(here), "merged": 0, "renamed": 0, "kept": 0}
    assert counts(hermes) == [MESSAGES] * SESSIONS
    assert flaws(hermes.database) == []
    # All of it is in the index by then, and found.
    assert hermes.json("sessions", "search", "word7", "--limit", "100")["total"] == SESSIONS


def test_a_full_disk_leaves_sessions_whole(hermes: Hermes, export: Path) -> None:
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
    assert set(counts(hermes)) <= {MESSAGES}
    assert flaws(hermes.database) == []
    assert hermes("sessions", "import", str(export)).returncode == 0
    assert counts(hermes) == [MESSAGES] * SESSIONS


def test_a_device_is_refused(hermes: Hermes) -> None:
    result = hermes("sessions", "import", "/dev/zero")
    assert (result.returncode, "is a device" in result.stderr) == (2, True)


def test_a_stream_that_does_not_end_is_refused_before_the_disk_is_full(tmp_path: Path) -> None:
    with (tmp_path / "copy").open("wb") as target, Path("/dev/zero").open("rb") as stream:
        with pytest.raises(InvalidValue, match="more than 5000000 bytes"):
            copy_bounded(stream, target, "-", 5_000_000)
        assert target.tell() <= 5_000_000
