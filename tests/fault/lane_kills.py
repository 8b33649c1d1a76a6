"""Kill a process before every statement and commit of a message's way: `python -m tests.fault.lane_kills DIRECTORY`.

Each child works on its own copy of an empty store, and writes a line for each call that returned. After its death, the
store must have everything that was acknowledged, nothing twice, and another node must be able to continue.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hermes.state.lanes.queue.leases import turn_of_one
from hermes.state.lanes.types import NewSession, Start
from hermes.state.sqlite.connection import View
from hermes.state.sqlite.store.transaction import WritingTransaction
from hermes_state import SessionDB
from tests.support.lanes import KEY, accept, broken_rules, end_leases, reply, start_lane

NEVER = 1_000_000


class Countdown:
    """Kills the process when this many steps have begun."""

    def __init__(self, steps: int) -> None:
        self.left = steps
        self.begun = 0

    def before(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method with a step before it."""

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.step()
            return method(*args, **kwargs)

        return counted

    def around(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method with a step before and after it."""

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.step()
            result = method(*args, **kwargs)
            self.step()
            return result

        return counted

    def step(self) -> None:
        """Die if it is time."""
        self.begun += 1
        if self.begun > self.left:
            os.kill(os.getpid(), signal.SIGKILL)


def message_way(db: SessionDB, say: Callable[[str], None]) -> None:
    """Take two messages from the platform to a sent reply, and begin a new session."""
    start_lane(db)
    say("lane")
    for name in ("m1", "m2"):
        accept(db, name)
        say(name)
    taken = db.turns.claim_next("n1", choose=turn_of_one)
    assert taken is not None
    assert taken.turn_id is not None
    say("claimed")
    db.turns.renew(taken.lease)
    db.append_message("s1", "user", "m1", uid="m1")
    say("appended")
    db.turns.progress(taken.lease, taken.turn_id, {"step": 1})
    db.turns.finish(taken.lease, taken.turn_id, intents=[reply("r1")], lane={"last_prompt_tokens": 7})
    say("finished")
    (row,) = db.outbox.sending("n1")
    say("sending")
    db.outbox.sent(row["id"], row["attempts"], {"id": 1})
    say("sent")
    db.lanes.resolve(KEY, lambda *_: Start(NewSession("s2", "telegram", user_id="1")))
    say("reset")


def run_child(path: Path, steps: int, output: int) -> None:
    """Run in the child until it dies; a child that survives writes how many steps there are."""
    countdown = Countdown(steps)
    db = SessionDB(path)
    for kind, name, change in (
        *((View, name, countdown.before) for name in ("rows", "run", "send")),
        (WritingTransaction, "commit", countdown.around),
    ):
        setattr(kind, name, change(getattr(kind, name)))

    def say(text: str) -> None:
        os.write(output, f"{text}\n".encode())

    message_way(db, say)
    say(f"steps {countdown.begun}")
    os._exit(0)


def acknowledged(path: Path, steps: int) -> list[str]:
    """Return the lines of a child that is killed before a step."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        run_child(path, steps, writing)
    os.close(writing)
    with os.fdopen(reading) as lines:
        said = lines.read().splitlines()
    os.waitpid(child, 0)
    return said


def check(path: Path, said: list[str]) -> None:
    """Compare the store with what a dead child acknowledged, and let another node continue."""
    with SessionDB(path) as db:
        assert broken_rules(db) == []
        found = {name: db.inbox.find(name) for name in ("m1", "m2")}
        assert all(len(rows) == 1 for name, rows in found.items() if name in said)
        assert all(len(rows) <= 1 for rows in found.values())
        if "finished" in said:
            assert found["m1"][0]["state"] == "done"
            assert db.outbox.find("r1") is not None
        if "appended" in said:
            assert db.message_count("s1") == 1
        if "sent" in said:
            row = db.outbox.find("r1")
            assert row is not None
            assert row["state"] == "sent"
        lane = db.lanes.get(KEY)
        assert (lane is not None) >= ("lane" in said)
        assert lane is None or lane["session_id"] in ("s1", "s2")
        was_done = bool(found["m1"]) and found["m1"][0]["state"] == "done"
        continue_work(db, was_done=was_done)


def continue_work(db: SessionDB, *, was_done: bool) -> None:
    """Deliver both messages again, as a platform does without an acknowledgement, and finish what is left."""
    for name in ("m1", "m2", "m3"):
        accept(db, name)
    end_leases(db)
    order: list[str] = []
    while (taken := db.turns.claim_next("n2", choose=turn_of_one)) is not None:
        assert taken.turn_id is not None
        order += [str(row["message_id"]) for row in taken.started]
        db.turns.finish(taken.lease, taken.turn_id, intents=[reply(f"r{order[-1][1:]}")])
    assert order == (["m2", "m3"] if was_done else ["m1", "m2", "m3"])
    assert [len(db.inbox.find(name)) for name in ("m1", "m2", "m3")] == [1, 1, 1]
    replies = db._engine.read(lambda tx: tx.rows("SELECT key_ref FROM outbox ORDER BY key_ref"))
    assert [row[0] for row in replies] == ["r1", "r2", "r3"]
    assert broken_rules(db) == []


def main(directory: Path) -> None:
    SessionDB(directory / "empty.db").close()

    def copy(name: str) -> Path:
        path = directory / f"{name}.db"
        shutil.copyfile(directory / "empty.db", path)
        return path

    total = int(acknowledged(copy("whole"), NEVER)[-1].split()[1])
    seen = set()
    for steps in range(total):
        path = copy(str(steps))
        said = acknowledged(path, steps)
        seen.add(len(said))
        check(path, said)
    sys.stdout.write(f"killed {total} times, after {len(seen)} different calls\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
