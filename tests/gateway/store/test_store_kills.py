"""Processes that are killed while they use a session store."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.gateway import GatewayConfig, Platform, SessionResetPolicy, SessionSource, SessionStore
from tests.gateway.store.conftest import MakeStore
from tests.gateway.store.database import Database

NEVER = SessionResetPolicy(mode="none")
PROGRAM = """
import sys
from hermes.errors import StoreUnavailable
from hermes.gateway import GatewayConfig, Platform, SessionResetPolicy, SessionSource, SessionStore

def refuse():
    raise StoreUnavailable("no database")

config = GatewayConfig(default_reset_policy=SessionResetPolicy(mode="none"))
store = SessionStore(config.sessions_dir, config, opener=refuse if sys.argv[1] == "files" else None)
number = 0
while True:
    number += 1
    source = SessionSource(Platform.SLACK, str(number % 5), user_id="u")
    entry = store.get_or_create_session(source)
    store.append_to_transcript(entry.session_id, {"role": "user", "content": f"message {number}"})
    if number % 7 == 0:
        store.reset_session(entry.session_key)
    print(entry.session_id, number, flush=True)
"""


@pytest.mark.parametrize("place", ["database", "files"])
@pytest.mark.parametrize("count", [3, 40])
def test_killed_store_keeps_what_it_acknowledged(
    home: Path, make_store: MakeStore, database: Database, place: str, count: int
) -> None:
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, place], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = [process.stdout.readline().split() for _ in range(count)]
    os.kill(process.pid, signal.SIGKILL)
    rest, _ = process.communicate(timeout=30)
    lines += [line.split() for line in rest.splitlines() if line.count(" ") == 1]
    store = make_store(GatewayConfig(default_reset_policy=NEVER))
    db = store._db
    assert db is not None
    stored: dict[str, list[object]] = {}
    for session_id, number in lines:
        texts = stored.setdefault(session_id, [message["content"] for message in db.get_messages(session_id)])
        assert texts.count(f"message {number}") == 1
    for entry in store.list_sessions():
        assert db.get_session(entry.session_id) is not None, "a lane without a session"
    assert all(len(texts) == len(set(map(str, texts))) for texts in stored.values())


def test_killed_export_leaves_a_whole_file(home: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, "database"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    path = home / "sessions" / "sessions.json"
    while not path.exists():
        process.stdout.readline()
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=30)
    assert json.loads(path.read_text())


def test_process_that_ends_without_closing_writes_the_export(home: Path) -> None:
    program = PROGRAM.replace("while True:", "while number < 3:")
    subprocess.run([sys.executable, "-c", program, "database"], check=True, capture_output=True, timeout=60)
    config = GatewayConfig(default_reset_policy=NEVER)
    with SessionStore(config.sessions_dir, config) as store:
        exported = json.loads((home / "sessions" / "sessions.json").read_text())
        assert exported == {entry.session_key: entry.to_dict() for entry in store.list_sessions()}
    assert SessionSource(Platform.SLACK, "1", user_id="u").to_dict() in [row["origin"] for row in exported.values()]
