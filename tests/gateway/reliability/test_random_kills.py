"""Nodes that are killed, frozen and restarted at random while users write: every message has exactly one answer."""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import pytest

from hermes.state.lanes.types import InboxRow
from tests.gateway.reliability.nodes import NodeProcess
from tests.gateway.reliability.world import LEASE_S, World
from tests.support.modelserver import Call, Received, Say

KILLS = int(os.environ.get("RELIABILITY_KILLS", "3"))
MODES = ("interrupt", "queue", "steer", "collect")
SEEDS = range(int(os.environ.get("RELIABILITY_SEED", "0")), int(os.environ.get("RELIABILITY_SEEDS", "1")))


@pytest.mark.parametrize("place", ["one", "many"])
@pytest.mark.parametrize("seed", SEEDS)
def test_random_kills_under_load_lose_nothing_and_repeat_nothing(
    place: str, seed: int, request: pytest.FixtureRequest
) -> None:
    world: World = request.getfixturevalue(place)
    chance = random.Random(seed)
    world.model.otherwise = lambda asked, words: slow_answer(asked, words, chance)
    names = ("north", "south", "west") if place == "many" else ("north", "south")
    nodes = {name: start(world, place, name, seed) for name in names}
    words: list[str] = []
    is_over = threading.Event()
    writer = threading.Thread(target=write, args=(nodes, words, is_over, random.Random(seed + 1)))
    writer.start()
    try:
        for _ in range(KILLS):
            is_over.wait(chance.choice((0.05, 0.3, 0.6)))
            name = chance.choice(names)
            match chance.choice(("kill", "kill", "freeze", "restart")):
                case "kill":
                    nodes[name].kill()
                    is_over.wait(chance.choice((0.0, 0.2, LEASE_S)))
                    nodes[name] = start(world, place, name, seed)
                case "freeze" if place == "many":
                    nodes[name].freeze()
                    is_over.wait(1.3 * LEASE_S)
                    nodes[name].thaw()
                case _:
                    nodes[name].stop()
                    nodes[name] = start(world, place, name, seed)
    finally:
        is_over.set()
        writer.join()
    world.wait_until_ended(*words)
    check(world, words)


def start(world: World, place: str, name: str, seed: int) -> NodeProcess:
    """Start a node: on PostgreSQL each has a home of its own."""
    mode = MODES[seed % len(MODES)]
    return world.process(name, home=world.home(name if place == "many" else "home", display={"busy_input_mode": mode}))


def write(nodes: dict[str, NodeProcess], words: list[str], is_over: threading.Event, chance: random.Random) -> None:
    """Send messages in some chats until the test is over; one that no node has accepted is sent again."""
    while not is_over.is_set():
        word = f"w{len(words)}"
        chat_id = f"c{chance.randrange(6)}"
        text = f"{chance.choice(('', '', '/queue '))}{word} please"
        while not any(
            node.says(text, chat_id, word) in ("accepted", "known")
            for node in chance.sample(list(nodes.values()), len(nodes))
        ):
            is_over.wait(0.05)
        words.append(word)
        is_over.wait(chance.random() * 0.1)


def slow_answer(request: Received, words: Sequence[str], chance: random.Random) -> Say:
    """Return an answer that takes a while, sometimes after a tool."""
    if chance.random() < 0.3 and request.messages[-1]["role"] == "user":
        return Say("I note it.", calls=[Call("note", {"text": words[-1] if words else "nothing"})])
    return Say(f"answer to {' '.join(words)}", before_s=chance.choice((0.0, 0.1, 0.5)))


def check(world: World, words: list[str]) -> None:
    """Every message has one answer, in order of its lane; the transcripts have each message once."""
    rows = {word: world.row(word) for word in words}
    for word, row in rows.items():
        # Three kills may meet the turn of the same message; nothing else ends it without an answer.
        is_killed = row["state"] == "dead" and str(row["reason"]).endswith("did not finish the turn, 3 times")
        what = f"{word} is {row['state']} after {row['attempts']} attempts: {row['reason']}"
        assert row["state"] == "done" or is_killed, what
    for key in {row["session_key"] for row in rows.values()}:
        check_lane(world, key, {word: row for word, row in rows.items() if row["session_key"] == key})


def check_lane(world: World, key: str, rows: dict[str, InboxRow]) -> None:
    """Check one lane with its messages."""
    word = next(iter(rows))
    turns = world.turns(word)
    for earlier, later in pairwise(turns):
        assert earlier["finished_at"] is not None
        assert earlier["finished_at"] <= later["started_at"], f"turns of {key} overlap"
    dead = [row for row in rows.values() if row["state"] == "dead"]
    replies = world.replies(word)
    notices = {row["key"] for row in replies} & {f"notice:dead:{row['uid']}" for row in dead}
    assert len(notices) == len(dead)
    answers = [str(row["turn_id"]) for row in replies if row["key"] not in notices]
    assert sorted(answers) == sorted(turn["turn_id"] for turn in turns if turn["state"] == "finished")
    if not dead:  # otherwise the lane has a new session
        said = Counter(text for role, text in world.transcript(word) if role == "user")
        assert said == Counter(f"{each} please" for each in rows), f"the transcript of {key}"
    queued = sorted(
        (row for row in rows.values() if row["kind"] == "queue" and row not in dead), key=lambda row: row["id"]
    )
    ends = [row["finished_at"] or 0.0 for row in queued]
    assert ends == sorted(ends), f"/queue of {key}"
