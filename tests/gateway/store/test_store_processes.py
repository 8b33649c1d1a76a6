"""Several processes with one session store."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hermes.gateway import Platform, SessionSource
from tests.gateway.store.conftest import MakeStore

PROGRAM = """
import sys
from hermes.gateway import GatewayConfig, Platform, SessionSource, SessionStore

config = GatewayConfig()
with SessionStore(config.sessions_dir, config) as store:
    sys.stdin.read(1)
    for number in range(20):
        entry = store.get_or_create_session(SessionSource(Platform.SLACK, str(number), user_id="u"))
        store.update_session(entry.session_key, number)
        print(entry.session_id)
"""


def test_first_messages_in_several_processes_make_one_session_a_lane(home: Path, make_store: MakeStore) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("x")
        process.stdin.flush()
    outputs = [process.communicate(timeout=60)[0].split() for process in processes]
    assert len(outputs[0]) == 20
    assert outputs[0] == outputs[1] == outputs[2]
    db = make_store()._db
    assert db is not None
    assert db.session_count() == 20


def test_forked_process_can_use_and_close_its_copy(home: Path, make_store: MakeStore) -> None:
    store = make_store()
    source = SessionSource(Platform.SLACK, "1", user_id="u")
    first = store.get_or_create_session(source)
    child = os.fork()
    if child == 0:
        is_right = store.get_or_create_session(source).session_id == first.session_id
        store.update_session(first.session_key, 5)
        store.close()
        os._exit(0 if is_right else 1)
    assert os.waitpid(child, 0)[1] == 0
    entry = store.peek(source)
    assert entry is not None
    assert entry.last_prompt_tokens == 5
