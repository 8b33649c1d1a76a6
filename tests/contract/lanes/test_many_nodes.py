"""Many nodes at once, some of which lose their leases in the middle: every message is done exactly once, in order."""

from __future__ import annotations

import random
import threading
from collections import defaultdict

from hermes.errors import StaleLease
from hermes.state.lanes.queue.leases import turn_of_one
from hermes.state.provider import SessionDBProvider
from tests.support.lanes import accept, broken_rules, names, reply
from tests.support.stores import Opener
from tests.support.waiting import LIMIT_S

LANES, MESSAGES, NODES = 4, 60, 4


class Node:
    """Accepts messages, some of them twice, and works on lanes until nothing waits."""

    def __init__(self, store: SessionDBProvider, number: int, finished: list[tuple[str, int]]) -> None:
        self.store, self.name, self.finished = store, f"n{number}", finished
        self.random = random.Random(number)
        self.errors: list[BaseException] = []
        own = [each for each in range(MESSAGES) if each % NODES in (number, (number + 1) % NODES)]
        self.thread = threading.Thread(target=self.run, args=(own,))

    def run(self, own: list[int]) -> None:
        """Work, and note an unexpected error."""
        try:
            for each in own:
                accept(self.store, f"m{each}", f"lane {each % LANES}", node=self.name)
                self.take_a_turn()
            while self.store.inbox.totals().waiting or self.store.turns.running(limit=1):
                self.take_a_turn()
        except BaseException as exc:
            self.errors.append(exc)
            raise

    def take_a_turn(self) -> None:
        """Claim a lane; sometimes lose the lease at once, and sometimes give the lane back."""
        seconds = 0.0 if self.random.random() < 0.3 else 60.0
        taken = self.store.turns.claim_next(self.name, seconds, choose=turn_of_one)
        if taken is None:
            return
        try:
            if taken.turn_id is None:
                self.store.turns.release(taken.lease)
                return
            self.store.turns.progress(taken.lease, taken.turn_id)
            if self.random.random() < 0.1:
                self.store.turns.release(taken.lease)
                return
            (name,) = names(taken.started)
            self.store.turns.finish(taken.lease, taken.turn_id, intents=[reply(f"{name} by {taken.turn_id}")])
            self.finished.append((name, taken.started[0]["id"]))
        except StaleLease:
            assert seconds == 0.0


def test_many_nodes_do_every_message_once_and_in_order(open_store: Opener) -> None:
    finished: list[tuple[str, int]] = []
    store = open_store()
    nodes = [Node(open_store(), number, finished) for number in range(NODES)]
    for node in nodes:
        node.thread.start()
    for node in nodes:
        node.thread.join(LIMIT_S)
    assert [error for node in nodes for error in node.errors] == []
    # A message whose nodes lost their leases three times before its first progress is given up.
    dead = names([row for row in store.inbox.dead(limit=None) if row["attempts"] == 3 or row["starts"] == 25])
    assert sorted([*dead, *(name for name, _ in finished)]) == sorted(f"m{number}" for number in range(MESSAGES))
    assert len(store.outbox.pending(limit=None)) == len(finished)
    assert broken_rules(store) == []
    by_lane = defaultdict(list)
    for row in store.outbox.pending(limit=None):
        (message,) = store.inbox.find(row["key"].split()[0])
        by_lane[row["session_key"]].append(message["id"])
    assert all(ids == sorted(ids) for ids in by_lane.values())
