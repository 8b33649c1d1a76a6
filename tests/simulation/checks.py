"""What must be true at the end of every story."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from typing import Any

from hermes.state.lanes.types import InboxRow
from hermes.state.owner import EVERYBODY
from tests.simulation.world import World

ENDED = {"done", "failed", "discarded", "dead", "parked"}
DELIVERED = {"sent", "unknown", "expired", "dead"}


def check_world(world: World) -> None:
    """Check a world at its end."""
    rows = {message_id: _row(world, message_id) for message_id in world.accepted}
    lanes = {row["session_key"] for row in rows.values()}
    on_platform = {each.key: each.answers for each in world.platform}
    replies = [
        {**each, "answers": (each["payload"] or {}).get("answers") or on_platform.get(each["key"], ())}
        for key in lanes
        for each in world.provider.outbox.of_lane(key, limit=1000)
    ]
    answered = _answers(replies)
    for message_id, row in rows.items():
        check_message(world, message_id, row, answered[message_id])
    for reply in replies:
        assert reply["state"] in DELIVERED, f"{reply['key']} is {reply['state']}"
    check_platform(world)
    check_merging(world, rows, replies)
    for key in lanes:
        check_turns(world, key)
        check_session(world, key)
    check_order(rows)


def check_message(world: World, message_id: str, row: InboxRow, answers: list[str]) -> None:
    """An accepted message has exactly one answer, or a visible reason why it has none."""
    assert row["state"] in ENDED, f"{message_id} ({world.accepted[message_id].text}) is {row['state']}"
    if row["state"] == "done":
        assert len(answers) == 1, f"{message_id} has {len(answers)} answers: {answers}"
    else:
        assert row["reason"], f"{message_id} is {row['state']} without a reason"
        assert len(answers) <= 1, f"{message_id} has {len(answers)} answers"


def check_platform(world: World) -> None:
    """The platform has no message twice."""
    doubled = [key for key, count in Counter(each.key for each in world.platform).items() if count > 1]
    assert not doubled, f"sent twice: {doubled}"


def check_merging(world: World, rows: dict[str, InboxRow], replies: list[Any]) -> None:
    """A turn answers messages of one sender, and a message of /queue alone, unless the user steers its turn."""
    for reply in replies:
        answers = [each for each in reply["answers"] if each in rows]
        senders = {world.accepted[each].source.user_id for each in answers}
        assert len(senders) <= 1, f"{reply['key']} answers {senders}"
        kinds = [rows[each]["kind"] for each in answers]
        if "queue" in kinds:
            others = [each for each in kinds if each not in ("queue", "steer")]
            assert kinds.count("queue") == 1, f"{reply['key']} answers several queued messages: {answers}"
            assert not others, f"{reply['key']} answers a queued message with others: {answers}"


def check_turns(world: World, key: str) -> None:
    """The turns of a lane do not overlap, and each belongs to a session."""
    turns = sorted(world.provider.turns.history(key, limit=1000), key=lambda each: each["started_at"])
    for earlier, later in pairwise(turns):
        assert earlier["finished_at"] is not None, f"the turn {earlier['turn_id']} has no end"
        assert earlier["finished_at"] <= later["started_at"], f"turns of {key} overlap"
    assert all(each["state"] != "running" for each in turns)


def check_session(world: World, key: str) -> None:
    """A lane has a session; the session has messages of its own chat only, each once."""
    lane = world.provider.lanes.get(key)
    if lane is None:
        assert all(each["session_id"] is None for each in world.provider.turns.history(key, limit=1000))
        return
    chat = key.split(world.prefix, 1)[1].split(":")[0]
    view = world.provider.for_owner(EVERYBODY)
    sessions = {each["session_id"] for each in world.provider.turns.history(key, limit=1000)} | {lane["session_id"]}
    for session_id in sessions - {None}:
        row = view.get_session(str(session_id))
        assert row is not None, f"the session {session_id} of {key} does not exist"
        uids: Counter[Any] = Counter()
        answered: Counter[str] = Counter()
        for message in view.get_messages(str(session_id)):
            uids[message["uid"]] += 1
            if message["role"] == "assistant":
                answered.update(str(message["content"]).removeprefix("answer to ").split())
            if message["role"] == "user":
                assert f" {chat} " in str(message["content"]), f"{key} has {message['content']!r}"
        assert all(count == 1 for count in uids.values()), f"doubled messages in {session_id}: {uids}"
        assert all(count == 1 for count in answered.values()), f"answered twice in {session_id}: {answered}"


def check_order(rows: dict[str, InboxRow]) -> None:
    """Messages of /queue are answered in order, and so are those of each sender."""
    by_lane: dict[tuple[str, str], list[InboxRow]] = defaultdict(list)
    for row in rows.values():
        if row["state"] == "done" and row["kind"] in ("queue", "normal"):
            by_lane[row["session_key"], row["kind"]].append(row)
    for (key, kind), some in by_lane.items():
        if kind == "normal" and ":group:" in key:
            continue  # a second sender may be answered before the first one's later message
        some.sort(key=lambda each: each["id"])
        ends = [each["finished_at"] or 0.0 for each in some]
        assert ends == sorted(ends), f"{kind} messages of {key} were answered out of order"


def _row(world: World, message_id: str) -> InboxRow:
    found = world.provider.inbox.find(message_id)
    assert len(found) == 1, f"{message_id} is stored {len(found)} times"
    return found[0]


def _answers(replies: list[Any]) -> dict[str, list[str]]:
    """Return the keys of the replies to each message."""
    answered: dict[str, list[str]] = defaultdict(list)
    for reply in replies:
        for message_id in reply["answers"]:
            answered[message_id].append(reply["key"])
    return answered
