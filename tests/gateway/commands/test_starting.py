"""/new and /stop."""

from __future__ import annotations

import pytest

from hermes.errors import StaleLease
from hermes.gateway.commands import Parsed, run_command
from hermes.gateway.entry import SessionEntry
from hermes.state.lanes.types import Lease
from tests.gateway.commands.chats import ALICE, ALICE_IN_GROUP, BOB, BOB_IN_GROUP, Chats
from tests.support.lanes import end_leases


def state_of(chats: Chats, message_id: int) -> str:
    row = chats.provider.inbox.get(message_id)
    assert row is not None
    return row["state"]


def test_new_starts_a_session_and_names_the_one_before(chats: Chats) -> None:
    old = chats.talk(ALICE, "hello")
    text = chats.reply(ALICE, "/new")
    new = chats.session(ALICE)
    assert new != old
    assert text == f"New session.\n/resume {old} returns to the session before."
    assert chats.lane(ALICE)["is_fresh_reset"]
    ended = chats.provider.get_session(old)
    assert ended is not None
    assert ended["end_reason"] == "session_reset"


def test_new_creates_an_unknown_lane(chats: Chats) -> None:
    assert chats.reply(ALICE, "/new My trip") == 'New session "My trip".'
    assert chats.lane(ALICE)["is_fresh_reset"]
    assert chats.provider.get_session_title(chats.session(ALICE)) == "My trip"


def test_new_with_a_taken_title_starts_without_it(chats: Chats) -> None:
    old = chats.talk(ALICE, "hello")
    chats.provider.set_session_title(old, "Trip")
    text = chats.reply(ALICE, "/new Trip")
    assert 'It has no title: Another session has the title "Trip" already.' in text
    assert chats.session(ALICE) != old
    assert chats.provider.get_session_title(chats.session(ALICE)) is None


@pytest.mark.parametrize("title", ["x" * 101, "\u200b\u200b"])
def test_new_with_a_bad_title_starts_without_it(chats: Chats, title: str) -> None:
    old = chats.talk(ALICE, "hello")
    assert "It has no title: " in chats.reply(ALICE, f"/new {title}")
    assert chats.session(ALICE) != old


def test_a_title_of_another_user_is_free(chats: Chats) -> None:
    chats.provider.set_session_title(chats.talk(BOB, "hello"), "Trip")
    assert chats.reply(ALICE, "/new Trip") == 'New session "Trip".'


def test_new_discards_older_messages_of_all_kinds_and_keeps_later_ones(chats: Chats) -> None:
    chats.talk(ALICE, "hello")
    older = [chats.accept(ALICE, "a"), chats.accept(ALICE, "b", "queue"), chats.accept(ALICE, "c", "steer")]
    command = chats.accept(ALICE, "/new", "command")
    later = [chats.accept(ALICE, "d"), chats.accept(ALICE, "e", "queue")]
    text = chats.run(chats.obey(ALICE, "/new", command)).text
    assert "3 waiting messages discarded." in text
    assert [state_of(chats, row["id"]) for row in older] == ["discarded"] * 3
    assert [state_of(chats, row["id"]) for row in later] == ["accepted"] * 2
    discarded = chats.provider.inbox.get(older[0]["id"])
    assert discarded is not None
    assert discarded["reason"] == "/new started a new session"


def test_new_discards_held_messages(chats: Chats) -> None:
    chats.talk(ALICE, "hello")
    queued = [chats.accept(ALICE, text, "queue") for text in ("a", "b")]
    chats.send(ALICE, "/stop")
    assert [state_of(chats, row["id"]) for row in queued] == ["held"] * 2
    assert "2 waiting messages discarded." in chats.reply(ALICE, "/new")
    assert [state_of(chats, row["id"]) for row in queued] == ["discarded"] * 2


def test_new_forgets_the_model_of_the_chat(chats: Chats) -> None:
    chats.talk(ALICE, "hello")
    chats.send(ALICE, "/model offline")
    assert chats.lane(ALICE)["extra"]["model"] == "offline"
    chats.send(ALICE, "/new")
    assert "model" not in chats.lane(ALICE)["extra"]


def test_new_runs_the_hooks_in_order(chats: Chats) -> None:
    old = chats.talk(ALICE, "hello")
    chats.send(ALICE, "/new")
    new = chats.session(ALICE)
    assert [(event, context["session_id"], context["reason"]) for event, context in chats.events] == [
        ("on_session_finalize", old, "new_session"),
        ("session:end", old, "new_session"),
        ("session:reset", new, "new_session"),
    ]
    assert chats.events[0][1]["user_id"] == "1"


def test_new_in_an_unknown_lane_runs_no_hook_for_a_session_before(chats: Chats) -> None:
    chats.send(ALICE, "/new")
    assert [event for event, _ in chats.events] == ["session:reset"]


def test_new_finalizes_the_session_before_it_ends(chats: Chats) -> None:
    old = chats.talk(ALICE, "hello")
    seen: list[tuple[str, str, str]] = []

    async def finalize(entry: SessionEntry, reason: str, lease: Lease) -> None:
        row = await chats.db.lanes.get(entry.session_key)
        assert row is not None
        seen.append((entry.session_id, reason, row["session_id"]))

    chats.send(ALICE, "/new", services=chats.with_services(finalize=finalize))
    assert seen == [(old, "new_session", old)]
    assert "on_session_finalize" not in [event for event, _ in chats.events]


def test_new_of_a_node_that_has_lost_the_lane_changes_nothing(chats: Chats) -> None:
    old = chats.talk(ALICE, "hello")
    row = chats.accept(ALICE, "/new", "command")
    lease = chats.run(chats.lease(chats.key(ALICE)))
    end_leases(chats.provider)
    chats.run(chats.lease(chats.key(ALICE), "node-2/1"))
    with pytest.raises(StaleLease):
        chats.run(run_command(chats.context(ALICE, Parsed("new"), row, lease)))
    assert chats.session(ALICE) == old


def test_new_of_one_user_leaves_the_lane_of_another(chats: Chats) -> None:
    bobs = chats.talk(BOB, "hello")
    waiting = chats.accept(BOB, "question")
    chats.talk(ALICE, "hello")
    chats.send(ALICE, "/new")
    assert chats.session(BOB) == bobs
    assert state_of(chats, waiting["id"]) == "accepted"


def test_members_of_a_shared_group_share_new(shared: Chats) -> None:
    old = shared.talk(ALICE_IN_GROUP, "hello")
    shared.send(BOB_IN_GROUP, "/new")
    assert shared.session(ALICE_IN_GROUP) == shared.session(BOB_IN_GROUP) != old


def test_stop_suspends_the_lane_and_holds_queued_messages(chats: Chats) -> None:
    session_id = chats.talk(ALICE, "hello")
    for text in ("a", "b"):
        chats.accept(ALICE, text, "queue")
    assert chats.reply(ALICE, "/stop") == (
        "Stopped. Your next message starts a new session.\n"
        "2 queued messages held; your next message releases them.\n"
        f"/resume {session_id} returns to this one."
    )
    assert chats.lane(ALICE)["suspended"]
    assert len(chats.provider.inbox.held(chats.key(ALICE))) == 2


def test_stop_that_runs_again_after_a_crash_counts_the_same_messages(chats: Chats) -> None:
    chats.talk(ALICE, "hello")
    chats.accept(ALICE, "a", "queue")
    row = chats.accept(ALICE, "/stop", "command")
    first = chats.run(chats.obey(ALICE, "/stop", row, crashes=True))
    assert chats.run(chats.obey(ALICE, "/stop", row)) == first


def test_stop_in_an_unknown_lane_says_so_and_creates_none(chats: Chats) -> None:
    assert chats.reply(ALICE, "/stop") == "There is nothing to stop."
    assert chats.provider.lanes.get(chats.key(ALICE)) is None


def test_stop_of_one_user_leaves_the_lane_of_another(chats: Chats) -> None:
    chats.talk(ALICE, "hello")
    chats.talk(BOB, "hello")
    chats.accept(BOB, "a", "queue")
    chats.send(ALICE, "/stop")
    assert not chats.lane(BOB)["suspended"]
    assert chats.provider.inbox.held(chats.key(BOB)) == []
