"""The actions of other processes in the fault tests: `python -m tests.fault.child append state.db name 100`."""

from __future__ import annotations

import atexit
import fcntl
import os
import random
import resource
import select
import signal
import sys
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path

import apsw

from hermes.state.engine import Transaction
from hermes.state.messages.appending import add_messages
from hermes.state.messages.drafts import draft_message
from hermes.state.owner import EVERYBODY
from hermes.state.sqlite.connection import View
from hermes.state.sqlite.engine import SqliteEngine
from hermes_state import SessionDB, StoreError

SESSION = "s"
LIMIT_S = 30.0


def send_line(text: object) -> None:
    """Send the parent one line, at once."""
    os.write(1, f"{text}\n".encode())


def await_line(limit_s: float = LIMIT_S) -> None:
    """Wait for a line of the parent, or until the limit."""
    if select.select([0], [], [], limit_s)[0]:
        os.read(0, 4096)


def append(path: Path, name: str, times: str) -> None:
    """Append a message for each line of the parent, and send its uid once it is stored."""
    with SessionDB(path) as db:
        send_line("ready")
        await_line()
        for number in count() if times == "forever" else range(int(times)):
            uid = f"{name}-{number}"
            db.append_message(SESSION, "user", f"{name} says {number}", uid=uid)
            send_line(uid)


def hold_transaction(path: Path, limit_s: str) -> None:
    """Write to the file like a program that does not know our lock, and hold the transaction."""
    connection = apsw.Connection(str(path))
    connection.execute("BEGIN IMMEDIATE")
    send_line("held")
    await_line(float(limit_s))
    connection.execute("ROLLBACK")
    send_line("released")
    await_line()


def hold_lock(path: Path) -> None:
    """Hold the writer lock for a long time, like a slow process of ours."""
    with open(f"{path}.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        send_line("held")
        await_line()
        fcntl.flock(lock, fcntl.LOCK_UN)
        send_line("released")
        await_line()


def fill_up(path: Path, room: str) -> None:
    """Append until no file may grow further, then with space again; report the result of each append."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with SessionDB(path) as db:
        db.create_session(SESSION, "cli")
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(room), hard))
        stored: list[str] = []
        refused = 0
        while refused < 3:
            try:
                db.append_message(SESSION, "user", "x" * 3000, uid=str(len(stored)))
                stored.append(str(len(stored)))
            except StoreError as exc:
                send_line(exc.code)
                refused += 1
        seen = [message["uid"] for message in db.get_messages(SESSION)]
        send_line("kept" if seen == stored else f"stored {stored}, found {seen}")
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        db.append_message(SESSION, "user", "room again", uid="last")
        send_line("written")


def fork_and_write(path: Path) -> None:
    """Write in parent and child at the same time, with a store that was open before the fork."""
    db = SessionDB(path)
    db.append_message(SESSION, "user", "before", uid="before")
    child = os.fork()
    name = "child" if child == 0 else "parent"
    for number in range(30):
        db.append_message(SESSION, "user", "both", uid=f"{name}-{number}")
    assert len(db.get_messages(SESSION)) > 30
    db.close()
    _end(child)


def fork_and_outlive(path: Path) -> None:
    """Let the parent close the store and die while the child continues to write."""
    db = SessionDB(path)
    db.append_message(SESSION, "user", "parent", uid="parent")
    closed, written = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        db.append_message(SESSION, "user", "child", uid="child-0")
        os.write(written[1], b".")
        os.read(closed[0], 1)
        for number in range(1, 6):
            db.append_message(SESSION, "user", "child", uid=f"child-{number}")
            send_line(f"child-{number}")
        send_line(f"sees {len(db.get_messages(SESSION))}")
        os.kill(os.getpid(), signal.SIGKILL)
    os.read(written[0], 1)
    db.close()
    os.write(closed[1], b".")
    os.waitpid(child, 0)


def fork_and_exit(path: Path) -> None:
    """Let the child exit like a script, closing everything, while the parent continues."""
    db = SessionDB(path)
    db.append_message(SESSION, "user", "first", uid="parent-0")
    db.get_messages(SESSION)
    child = os.fork()
    if child == 0:
        sys.exit(0)
    os.waitpid(child, 0)
    for number in range(1, 4):
        db.append_message(SESSION, "user", "more", uid=f"parent-{number}")
    send_line(f"sees {len(db.get_messages(SESSION))}")
    os.kill(os.getpid(), signal.SIGKILL)


def fork_in_a_write(path: Path) -> None:
    """Fork while another thread is in the middle of a write: the fork waits for it, then both sides write."""
    engine, db = SqliteEngine(path), SessionDB(path, write_timeout_s=10)
    inside = threading.Event()

    def work(tx: Transaction) -> None:
        inside.set()
        # Until the fork on the other thread has begun to wait, which cannot be observed.
        threading.Event().wait(0.2)
        add_messages(
            tx, SESSION, [draft_message({"role": "user", "content": "x", "uid": "in the middle"}, 1.0)], EVERYBODY
        )

    writer = threading.Thread(target=lambda: engine.write(work))
    writer.start()
    inside.wait(LIMIT_S)
    child = os.fork()
    if child == 0:
        db.append_message(SESSION, "user", "child", uid="child")
        send_line("child wrote")
        os._exit(0)
    writer.join()
    os.waitpid(child, 0)
    db.append_message(SESSION, "user", "parent", uid="parent")
    send_line("parent wrote")


def fork_inside_a_write(path: Path) -> None:
    """Fork from inside a transaction: the parent continues, the child gets an error when it uses the store."""
    engine, db = SqliteEngine(path), SessionDB(path)

    def work(tx: Transaction) -> None:
        add_messages(tx, SESSION, [draft_message({"role": "user", "content": "x", "uid": "inside"}, 1.0)], EVERYBODY)
        child = os.fork()
        if child == 0:
            try:
                SessionDB(path).get_messages(SESSION)
            except StoreError as exc:
                send_line(exc.code)
            os._exit(0)
        os.waitpid(child, 0)

    engine.write(work)
    send_line(f"sees {len(db.get_messages(SESSION))}")


def interrupted(path: Path) -> None:
    """Interrupt the main thread at random moments while it and others write; send each uid that was acknowledged."""
    db = SessionDB(path)
    stop = threading.Event()

    def write(name: str) -> None:
        for number in count():
            if stop.is_set():
                return
            db.append_message(SESSION, "user", "x", uid=f"{name}-{number}")
            send_line(f"{name}-{number}")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    threads = [threading.Thread(target=write, args=(f"thread-{n}",)) for n in range(3)]
    for thread in threads:
        thread.start()
    signal.signal(signal.SIGALRM, interrupt)
    struck = 0
    for number in count():
        try:
            signal.setitimer(signal.ITIMER_REAL, random.uniform(0.00005, 0.002))
            db.append_message(SESSION, "user", "x", uid=f"main-{number}")
            signal.setitimer(signal.ITIMER_REAL, 0)
            send_line(f"main-{number}")
        except KeyboardInterrupt:
            struck += 1
        if struck >= 300:
            break
    signal.setitimer(signal.ITIMER_REAL, 0)
    stop.set()
    for thread in threads:
        thread.join(LIMIT_S)
    db.append_message(SESSION, "user", "x", uid="at last")
    send_line("at last")


def close_in_a_signal_handler(path: Path) -> None:
    """Exit like programs do at SIGTERM, in the middle of a write of the same thread."""
    engine, db = SqliteEngine(path), SessionDB(path)

    def stop(*_: object) -> None:
        try:
            db.end_session(SESSION, "terminated")
        except StoreError as exc:
            send_line(exc.code)
        db.close()
        send_line("closed")

    def work(tx: Transaction) -> None:
        add_messages(tx, SESSION, [draft_message({"role": "user", "content": "x", "uid": "before"}, 1.0)], EVERYBODY)

    signal.signal(signal.SIGTERM, stop)
    commit = engine._shared().file().writer
    assert commit is not None
    after_commit = commit._after_commit

    def struck(view: View) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        after_commit(view)

    commit._after_commit = struck
    engine.write(work)
    send_line("written")


def write_in_an_exit_hook(path: Path) -> None:
    """Use the store in a hook that was registered before it was opened, so that it runs after everything else."""
    open_long_read: list[SessionDB] = []

    def hook() -> None:
        send_line(open_long_read[0].end_session(SESSION, "exit"))

    atexit.register(hook)
    open_long_read.append(SessionDB(path))
    open_long_read[0].append_message(SESSION, "user", "x", uid="before")


def _end(child: int) -> None:
    if child == 0:
        os._exit(0)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


ERRANDS: dict[str, Callable[..., None]] = {
    "append": append,
    "hold-transaction": hold_transaction,
    "hold-lock": hold_lock,
    "fill-up": fill_up,
    "fork-and-write": fork_and_write,
    "fork-and-outlive": fork_and_outlive,
    "fork-and-exit": fork_and_exit,
    "fork-in-a-write": fork_in_a_write,
    "fork-inside-a-write": fork_inside_a_write,
    "close-in-a-signal-handler": close_in_a_signal_handler,
    "interrupted": interrupted,
    "write-in-an-exit-hook": write_in_an_exit_hook,
}

if __name__ == "__main__":
    ERRANDS[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
