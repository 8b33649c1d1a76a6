"""kill -9 at any point of a turn or a compression: the store stays valid, and the conversation can continue."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from hermes.agent.compression.compress import BUSY
from hermes.agent.compression.summary import MARK
from hermes.agent.conversation import Conversation
from hermes.agent.models.offline.model import OfflineModel
from hermes.agent.turns.incoming import Incoming
from hermes.state.owner import EVERYBODY
from hermes_state import SessionDB
from tests.agent.talking import agent_with, assert_sound, stored
from tests.fault.processes import Child
from tests.support.clock import FakeClock
from tests.support.conversations import contents, known, session_of
from tests.support.plainsql import flaws
from tests.support.waiting import wait_until

ADD = '!say I add.\n!tool add {"one": 1, "other": 2}\n!tool add {"one": 3, "other": 4}'
TALE = [
    ("user", ADD),
    ("assistant", "I add.", "tool_calls"),
    ("tool", "3"),
    ("tool", "7"),
    ("assistant", "add returned: 3\nadd returned: 7", "stop"),
]
MOMENTS = {
    "1:before": 0,  # the session with the question
    "1:inside": 0,
    "2:before": 1,  # the answer that calls tools
    "3:before": 2,  # its tokens
    "4:before": 2,  # the first result
    "5:before": 3,  # the second result
    "6:before": 4,  # the answer
    "7:before": 5,  # its tokens
    "8:before": 5,  # the title
    "8:inside": 5,
}
"""The number of stored messages when a process is killed before or inside its n-th write."""


class Talker(Child):
    """A child process with a conversation."""

    module = "tests.agent.talker"


@contextmanager
def resumed(home: Path, session_id: str) -> Iterator[Conversation]:
    """Resume the conversation in this process after another one was killed; the file must be valid."""
    assert flaws(home / "state.db") == []
    with SessionDB(home / "state.db") as store:
        agent = agent_with(OfflineModel(), store, home)
        yield Conversation.resume(agent, session_id, asker=EVERYBODY)
        assert agent.settle(20)


def homes(directory: Path, count: int) -> list[Path]:
    made = [directory / f"home{number}" for number in range(count)]
    for home in made:
        home.mkdir()
    return made


def fill_session(home: Path, exchanges: int) -> str:
    """Create a session with some exchanges in a home."""
    with SessionDB(home / "state.db") as store:
        conversation = Conversation.start(agent_with(OfflineModel(), store, home), title="Plan", asker=EVERYBODY)
        for number in range(exchanges):
            conversation.say(f"!say answer {number}" + " and more" * 250)
        assert conversation.agent.settle(20)
        return conversation.session_id


def kill_all(children: list[Talker], expected: str) -> None:
    """Kill each process when it has reached its point."""
    for child in children:
        assert child.line() == expected
    for child in children:
        child.kill()
        child.finish()


def test_turn_can_be_killed_at_every_write(tmp_path: Path) -> None:
    with ExitStack() as stack:
        places = homes(tmp_path, len(MOMENTS))
        kill_all(
            [
                stack.enter_context(Talker("talk", home, "", ADD, moment))
                for home, moment in zip(places, MOMENTS, strict=True)
            ],
            "paused",
        )
    for home, count in zip(places, MOMENTS.values(), strict=True):
        with SessionDB(home / "state.db") as store:
            (session_id,) = known(store) or {""}
        if not count:
            assert session_id == ""
            continue
        with resumed(home, session_id) as conversation:
            assert stored(conversation) == TALE[:count]
            assert conversation.say("and then?").status == "done"
            assert stored(conversation)[: count + 1] == [*TALE[:count], ("user", "and then?")]
            events = conversation.agent.store.list_usage_events(session_id)
            assert sum(event["input_tokens"] for event in events) == conversation.usage()["input_tokens"]


def test_complete_turn_makes_only_the_expected_writes(tmp_path: Path) -> None:
    (home,) = homes(tmp_path, 1)
    with Talker("talk", home, "", ADD, "9:before") as child:
        assert child.line() == "over"


@pytest.mark.parametrize(("text", "moment"), [("!long 20", "text"), (ADD, "tool")])
def test_turn_can_be_killed_within_an_answer_or_a_tool(tmp_path: Path, text: str, moment: str) -> None:
    (home,) = homes(tmp_path, 1)
    session_id = fill_session(home, 1)
    with Talker("talk", home, session_id, text, moment) as child:
        kill_all([child], moment)
    with resumed(home, session_id) as conversation:
        assert contents(conversation.history)[2] == text
        assert conversation.say("and then?").status == "done"
        assert_sound(conversation.agent.store, session_id)


def test_killed_turn_is_continued_with_every_message_once(tmp_path: Path) -> None:
    moments = [
        "1:before",
        "2:before",
        "3:before",
        *(f"{number}:{where}" for number in range(4, 11) for where in ("before", "inside")),
    ]
    places = homes(tmp_path, len(moments))
    for home in places:
        with SessionDB(home / "state.db") as store:
            store.create_session("lane", "cli")
    with ExitStack() as stack:
        kill_all(
            [
                stack.enter_context(Talker("answer", home, "lane", ADD, moment))
                for home, moment in zip(places, moments, strict=True)
            ],
            "paused",
        )
    for home in places:
        with resumed(home, "lane") as conversation:
            before = stored(conversation)
            outcome = conversation.answer([Incoming(ADD, "inbox-1")])
            after = stored(conversation)
            assert (outcome.status, outcome.is_known) == ("done", before[-1:] == TALE[-1:])
            assert after[: len(before)] == before
            assert [row for row in after if row[0] == "user"] == [TALE[0]]
            assert after[-1][1:] == (outcome.text, "stop")
            # Tools whose result was lost are reported to the model, which does not run them again.
            assert [row[1] for row in after if row[0] == "tool"] == ["3", "7"][: sum(row[0] == "tool" for row in after)]
            assert ("the result was lost" in outcome.text) == (2 <= len(before) < 4)


def test_killed_answer_stays_and_is_written_whole(tmp_path: Path) -> None:
    (home,) = homes(tmp_path, 1)
    with SessionDB(home / "state.db") as store:
        store.create_session("lane", "cli")
    text = "!long 30 0.1"
    with Talker("answer", home, "lane", text, "none") as child:
        with SessionDB(home / "state.db") as store:
            wait_until(lambda: store.message_count("lane") == 2, "a partial answer")
        child.kill()
        child.finish()
    with resumed(home, "lane") as conversation:
        partial = stored(conversation)[1]
        outcome = conversation.answer([Incoming("!long 30", "inbox-1")])
        rows = stored(conversation)
    assert partial[2] == "partial"
    assert rows[:2] == [("user", text), partial]
    assert rows[2][1] == outcome.text
    assert outcome.text.endswith("word30")


@pytest.mark.parametrize("where", ["before", "inside"])
def test_compression_can_be_killed_at_every_write(tmp_path: Path, where: str) -> None:
    places = homes(tmp_path, 3)
    sessions = [fill_session(home, 6) for home in places]
    with ExitStack() as stack:
        kill_all(
            [
                stack.enter_context(Talker("compress", home, session_id, f"{number}:{where}"))
                for number, (home, session_id) in enumerate(zip(places, sessions, strict=True), 1)
            ],
            "paused",
        )
    # Acquire the lock, create the child, release the lock (which the child's transaction has done already).
    for home, root, is_done in zip(places, sessions, (False, False, True), strict=True):
        with resumed(home, root) as conversation:
            store = conversation.agent.store
            assert (conversation.session_id != root) == is_done
            assert session_of(store, root)["end_reason"] == ("compression" if is_done else None)
            assert conversation.title == ("Plan #2" if is_done else "Plan")
            texts = [str(text) for text in contents(conversation.history)]
            assert len(texts) == (7 if is_done else 12)
            assert any(text.startswith(MARK) for text in texts) == is_done
            assert conversation.say("!say on").text == "on"
            assert_sound(store, conversation.session_id)
            assert len(known(store)) == 1 + is_done


def test_lock_of_a_killed_process_is_respected_until_it_expires(tmp_path: Path) -> None:
    (home,) = homes(tmp_path, 1)
    session_id = fill_session(home, 6)
    with Talker("compress", home, session_id, "2:before") as child:
        kill_all([child], "paused")
    with resumed(home, session_id) as conversation:
        assert conversation.compress().reason == BUSY
        store = conversation.store
        store._clock = FakeClock(store._clock() + 61)
        assert conversation.compress().is_changed


def test_two_processes_never_compress_one_session(tmp_path: Path) -> None:
    (home,) = homes(tmp_path, 1)
    session_id = fill_session(home, 6)
    with Talker("compress", home, session_id, "2:before") as first:
        assert first.line() == "paused"
        with Talker("compress", home, session_id, "none") as second:
            assert second.line() == BUSY
        first.send()
        assert first.line() == "over"
    with SessionDB(home / "state.db") as store:
        assert len(known(store)) == 2


def test_two_processes_chat_in_one_session(tmp_path: Path) -> None:
    (home,) = homes(tmp_path, 1)
    session_id = fill_session(home, 1)
    with ExitStack() as stack:
        talkers = [
            stack.enter_context(Talker("talk", home, session_id, f"{ADD}\n!say {each}", "none")) for each in "ab"
        ]
        assert [talker.line() for talker in talkers] == ["over", "over"]
    with resumed(home, session_id) as conversation:
        texts = [str(row["content"]) for row in conversation.history if row["role"] == "user"]
        assert sorted(texts[1:]) == [f"{ADD}\n!say {each}" for each in "ab"]
        assert_sound(conversation.agent.store, session_id)
        assert conversation.say("!say on").text == "on"
