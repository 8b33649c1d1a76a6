"""Messages are indexed in the pauses between writes, not by the calls that store them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from hermes.state.sqlite.connection import View
from hermes.state.sqlite.search import index_state
from hermes.state.sqlite.search.indexing import ORDINARY_BYTES, index_batch
from hermes.state.sqlite.store import indexer
from hermes.state.sqlite.store.writer import Writer
from hermes_state import SessionDB
from tests.support.conversations import say, start
from tests.support.plainsql import flaws, plain, rows
from tests.support.searches import finds
from tests.support.stores import engine_of
from tests.support.waiting import wait_until


@pytest.fixture(autouse=True)
def product_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexer, "MANY", 8_000)
    monkeypatch.setattr(indexer, "FEW", index_state.DUE)
    monkeypatch.setattr(indexer, "CLOSE_S", 0.05)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture
def store(path: Path) -> Iterator[SessionDB]:
    with SessionDB(path) as opened:
        start(opened, "s")
        yield opened


def mark(path: Path) -> int:
    ((found,),) = rows(path, "SELECT value FROM state_meta WHERE key = 'indexed_upto'")
    return int(found)


def fill(store: SessionDB, count: int, *, word: str = "docker", length: int = 0) -> list[int]:
    more = " x" * (length // 2)
    return store.append_messages("s", [{"role": "user", "content": f"{word} number{n}{more}"} for n in range(count)])


def never_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexer.Indexer, "_is_busy", lambda _: True)


def test_few_messages_wait(store: SessionDB, path: Path) -> None:
    fill(store, index_state.DUE - 1)
    time.sleep(3 * indexer.PAUSE_S)
    assert mark(path) == 0


def test_enough_messages_are_indexed_in_a_pause(store: SessionDB, path: Path) -> None:
    found = fill(store, index_state.DUE)
    wait_until(lambda: mark(path) == found[-1], "the messages to be indexed")


def test_no_message_is_indexed_while_others_come(store: SessionDB, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    never_pause(monkeypatch)
    found = fill(store, 10 * index_state.DUE)
    time.sleep(3 * indexer.PAUSE_S)
    assert mark(path) == 0
    assert finds(store, "number77") == [found[77]]


def test_calls_pay_when_too_many_messages_wait(store: SessionDB, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    never_pause(monkeypatch)
    monkeypatch.setattr(indexer, "MANY", 300)
    for number in range(400):
        say(store, "s", f"docker {number}")
    assert 400 - 300 - 1 <= mark(path) < 400
    assert len(finds(store, "docker", limit=10_000)) == 400


def test_a_long_batch_pays_for_itself(store: SessionDB, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    never_pause(monkeypatch)
    monkeypatch.setattr(indexer, "MANY", 300)
    fill(store, 2_000)
    assert 2_000 - mark(path) <= 300


def test_closing_leaves_few_messages_to_the_next_process(path: Path) -> None:
    with SessionDB(path) as store:
        start(store, "s")
        found = fill(store, index_state.DUE - 1)
    assert mark(path) == 0
    with SessionDB(path) as store:
        assert finds(store, "number77") == [found[77]]
        found += fill(store, 1)
        wait_until(lambda: mark(path) == found[-1], "the messages of both processes to be indexed")


def test_closing_takes_no_longer_than_a_moment_to_index(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexer, "CLOSE_S", 0.0)
    never_pause(monkeypatch)
    with SessionDB(path) as store:
        start(store, "s")
        fill(store, 2_000)
    assert mark(path) == 0
    with SessionDB(path) as store:
        assert len(finds(store, "docker", limit=10_000)) == 2_000


@pytest.mark.parametrize(
    ("length", "messages"),
    [(0, indexer.SLICE), (10 * ORDINARY_BYTES, 3), (100 * ORDINARY_BYTES, 1)],
    ids=["short", "long", "longer than a slice"],
)
def test_a_writer_does_not_wait_for_more_than_a_slice(
    store: SessionDB, path: Path, monkeypatch: pytest.MonkeyPatch, length: int, messages: int
) -> None:
    """The indexer is held inside of its first slice until a caller waits; it must end the slice, not the batch."""
    with pytest.MonkeyPatch.context() as patch:
        never_pause(patch)
        fill(store, index_state.BATCH, length=length)
    wanted = threading.Event()
    asked: list[int] = []

    def is_wanted(writer: object) -> bool:
        asked.append(1)
        wanted.wait(10)
        return bool(writer._queue)  # type: ignore[attr-defined]

    monkeypatch.setattr(Writer, "is_wanted", is_wanted)
    say(store, "s", "one more")
    wait_until(lambda: bool(asked), "the indexer to begin")
    caller = threading.Thread(target=say, args=(store, "s", "in the middle"))
    caller.start()
    writer = store._engine._shared().file().writer  # type: ignore[attr-defined]
    wait_until(lambda: bool(writer._queue), "the caller to wait")
    wanted.set()
    caller.join(10)
    assert not caller.is_alive()
    slices = [last - first + 1 for first, last in rows(path, "SELECT first_id, last_id FROM message_times")]
    assert slices[0] == messages


def test_long_messages_are_indexed_in_small_transactions(store: SessionDB, path: Path) -> None:
    found = fill(store, index_state.DUE, length=16 * ORDINARY_BYTES)
    wait_until(lambda: mark(path) == found[-1], "the messages to be indexed")
    slices = [last - first + 1 for first, last in rows(path, "SELECT first_id, last_id FROM message_times")]
    assert max(slices) <= index_state.BATCH // 16 < len(found) == sum(slices)
    assert finds(store, "number77") == [found[77]]


def test_changed_long_messages_are_indexed_in_small_transactions(store: SessionDB, path: Path) -> None:
    found = fill(store, index_state.DUE, length=16 * ORDINARY_BYTES)
    wait_until(lambda: mark(path) == found[-1], "the messages to be indexed")
    with plain(path) as connection:
        connection.execute("UPDATE messages SET content = replace(content, 'docker', 'lantern')")
    assert (
        1
        <= engine_of(store).write(lambda tx: index_batch(cast(View, tx), index_state.BATCH))
        <= index_state.BATCH // 16
    )
    store.optimize_fts()
    assert len(finds(store, "lantern", limit=999)) == len(found)


def test_fork_during_indexing_is_safe(store: SessionDB, path: Path) -> None:
    found = fill(store, 4 * index_state.DUE)
    time.sleep(indexer.PAUSE_S)
    child = os.fork()
    if child == 0:
        try:
            say(store, "s", "docker of the child")
            store.close()
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    say(store, "s", "docker of the parent")
    assert len(finds(store, "docker", limit=10_000)) == len(found) + 2
    wait_until(lambda: mark(path) > found[-1] - index_state.DUE, "most messages to be indexed")
    assert len(finds(store, "docker", limit=10_000)) == len(found) + 2


KILLED = """
import sys, time
from hermes_state import SessionDB
store = SessionDB(sys.argv[1])
store.create_session("s", "cli")
for number in range(100_000):
    store.append_message("s", "user", f"docker number{number}")
    if number % 200 == 199:
        print(number + 1, flush=True)
        time.sleep(0.06)
"""


@pytest.mark.parametrize("after", [200, 400, 1_000])
def test_killed_indexer_leaves_every_message_once(path: Path, after: int) -> None:
    child = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    while int(child.stdout.readline()) < after:
        pass
    time.sleep(0.05)
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    with SessionDB(path) as store:
        stored = len(store.get_messages("s"))
        assert stored >= after
        assert len(finds(store, "docker", limit=10_000)) == stored
        for number in (0, after // 2, after - 1):
            assert len(finds(store, f"number{number}")) == 1
    assert flaws(path) == []


def test_idle_store_writes_nothing(store: SessionDB, path: Path) -> None:
    found = fill(store, index_state.DUE)
    wait_until(lambda: mark(path) == found[-1], "the messages to be indexed")
    time.sleep(3 * indexer.PAUSE_S)
    log = Path(f"{path}-wal")
    before = log.stat()
    time.sleep(6 * indexer.PAUSE_S)
    after = log.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def test_indexer_does_not_wait_for_a_program_without_the_lock(store: SessionDB, path: Path) -> None:
    with plain(path) as other:
        fill(store, index_state.DUE)
        other.execute("BEGIN IMMEDIATE")
        time.sleep(4 * indexer.PAUSE_S)
        writer = store._engine._shared().file().writer  # type: ignore[attr-defined]
        assert writer.becomes_idle_within(0.5)
        other.execute("ROLLBACK")
    found = fill(store, 1)
    wait_until(lambda: mark(path) == found[-1], "the messages to be indexed")
