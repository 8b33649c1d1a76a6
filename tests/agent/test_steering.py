"""Messages that come during a turn: the turn takes them in, and none is lost at its end."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.agent.conversation import Conversation
from hermes.agent.models.model import Cancellation
from hermes.agent.turns.incoming import Incoming
from hermes.agent.turns.steering import Steering
from hermes.agent.turns.turn import LAST_STEP
from hermes.errors import InvalidValue
from hermes.state.owner import EVERYBODY
from hermes.state.provider import SessionDBProvider
from tests.agent.talking import CONFIG, RecordingListener, agent_at, assert_asked_soundly, stored
from tests.support.modelserver import Call, Fail, ModelServer, Received, Say, Step

SUM = Call("add", {"one": 1, "other": 2})
GO = Incoming("go", "u0")


def talk(server: ModelServer, store: SessionDBProvider, home: Path, max_steps: int = 50) -> Conversation:
    config = replace(CONFIG, agent=replace(CONFIG.agent, max_steps=max_steps))
    return Conversation.start(agent_at(server, store, home, config), asker=EVERYBODY)


def offering(steering: Steering, answer: Say | Fail, *texts: str) -> Step:
    """An answer of the model, during which the user writes."""

    def step(_: Received) -> Say | Fail:
        for text in texts:
            assert steering.offer(text, f"uid-{text}")
        return answer

    return step


class TestTurn:
    def test_message_during_tools_is_in_the_next_call(self, store: SessionDBProvider, home: Path) -> None:
        steering = Steering()
        with ModelServer(offering(steering, Say("I add.", calls=[SUM]), "use 5"), Say("Then 8.")) as server:
            conversation = talk(server, store, home)
            outcome = conversation.answer([GO], steering=steering)
            roles = [(each["role"], each["content"]) for each in server.requests[1].messages[2:]]
            assert_asked_soundly(server)
        assert roles == [("assistant", "I add."), ("tool", "3"), ("user", "use 5")]
        assert outcome.text == "Then 8."
        assert [row["uid"] for row in store.get_messages(conversation.session_id) if row["role"] == "user"] == [
            "u0", "uid-use 5",
        ]  # fmt: skip

    def test_message_during_the_answer_is_answered_instead_of_ending(
        self, store: SessionDBProvider, home: Path
    ) -> None:
        steering, ear = Steering(), RecordingListener()
        with ModelServer(offering(steering, Say("First."), "a", "b"), Say("Second.")) as server:
            conversation = talk(server, store, home)
            outcome = conversation.answer([GO], ear, steering=steering)
            assert server.requests[1].messages[-1]["content"] == "a\n\nb"
        assert outcome.text == "".join(ear.pieces) == "First.\n\nSecond."
        assert [row[:2] for row in stored(conversation)] == [
            ("user", "go"), ("assistant", "First."), ("user", "a"), ("user", "b"), ("assistant", "Second."),
        ]  # fmt: skip
        assert steering.untaken() == []

    def test_stored_answer_of_such_a_turn_is_whole(self, store: SessionDBProvider, home: Path) -> None:
        steering = Steering()
        with ModelServer(offering(steering, Say("First."), "a"), Say("Second.")) as server:
            conversation = talk(server, store, home)
            outcome = conversation.answer([GO], steering=steering)
            again = conversation.answer([GO, Incoming("a", "uid-a")])
        assert (again.text, again.is_known) == (outcome.text, True)

    def test_message_before_the_first_call_joins_the_question(self, store: SessionDBProvider, home: Path) -> None:
        steering = Steering()
        assert steering.offer("quick", "u1")
        with ModelServer(Say("ok")) as server:
            talk(server, store, home).answer([GO], steering=steering)
            assert server.requests[0].messages[-1]["content"] == "go\n\nquick"

    def test_message_that_is_stored_already_is_given_once(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Fail(400), Say("ok")) as server:
            conversation = talk(server, store, home)
            conversation.answer([GO, Incoming("quick", "u1")])
            steering = Steering()
            steering.offer("quick", "u1")
            conversation.answer([GO], steering=steering)
            assert server.requests[1].messages[-1]["content"] == "go\n\nquick"
        assert [row[:2] for row in stored(conversation)] == [("user", "go"), ("user", "quick"), ("assistant", "ok")]

    def test_last_step_answers_what_came_before_it(self, store: SessionDBProvider, home: Path) -> None:
        steering = Steering()
        with ModelServer(offering(steering, Say(calls=[SUM]), "hurry"), Say("Done.")) as server:
            conversation = talk(server, store, home, max_steps=1)
            outcome = conversation.answer([GO], steering=steering)
            assert server.requests[1].messages[-1]["content"].endswith(f"hurry\n\n{LAST_STEP}")
        assert (outcome.text, steering.untaken()) == ("Done.", [])
        assert stored(conversation)[-2:] == [("user", "hurry"), ("assistant", "Done.", "stop")]

    def test_offer_during_the_last_step_is_refused(self, store: SessionDBProvider, home: Path) -> None:
        steering, taken = Steering(), []

        def last(_: Received) -> Say:
            taken.append(steering.offer("late", "u1"))
            return Say("Done.")

        with ModelServer(Say(calls=[SUM]), last) as server:
            talk(server, store, home, max_steps=1).answer([GO], steering=steering)
        assert (taken, steering.untaken()) == ([False], [])


class TestEnd:
    @pytest.mark.parametrize("answer", [Say("ok"), Fail(400)])
    def test_offer_after_the_turn_is_refused(self, answer: Say | Fail, store: SessionDBProvider, home: Path) -> None:
        steering = Steering()
        with ModelServer(answer) as server:
            talk(server, store, home).answer([GO], steering=steering)
        assert not steering.offer("late", "u1")
        assert steering.untaken() == []

    def test_failed_turn_returns_what_it_has_not_stored(self, store: SessionDBProvider, home: Path) -> None:
        steering = Steering()
        with ModelServer(offering(steering, Fail(400), "a", "b")) as server:
            conversation = talk(server, store, home)
            assert conversation.answer([GO], steering=steering).status == "failed"
        assert steering.untaken() == [Incoming("a", "uid-a"), Incoming("b", "uid-b")]
        assert stored(conversation) == [("user", "go")]

    def test_stopped_turn_returns_what_it_has_not_stored(self, store: SessionDBProvider, home: Path) -> None:
        steering, cancellation = Steering(), Cancellation()

        def stop(_: str) -> None:
            if steering.offer("wait", "u1"):
                cancellation.cancel()

        with ModelServer(Say("one two three", between_s=0.05)) as server:
            conversation = talk(server, store, home)
            outcome = conversation.answer([GO], RecordingListener(on_text=stop), cancellation, steering=steering)
        assert outcome.status == "interrupted"
        assert Incoming("wait", "u1") in steering.untaken()
        assert not steering.offer("late", "u2")

    def test_known_answer_refuses_offers(self, store: SessionDBProvider, home: Path) -> None:
        steering = Steering()
        with ModelServer() as server:
            conversation = talk(server, store, home)
            conversation.answer([GO])
            assert conversation.answer([GO], steering=steering).is_known
        assert not steering.offer("late", "u1")

    def test_every_accepted_message_is_answered_or_returned(self, store: SessionDBProvider, home: Path) -> None:
        steering, accepted, stop = Steering(), [], threading.Event()

        def write() -> None:
            number = 0
            while not stop.is_set() and number < 40:
                if steering.offer(f"m{number}", f"uid-{number}"):
                    accepted.append(f"uid-{number}")
                number += 1
                stop.wait(0.002)

        writer = threading.Thread(target=write)
        with ModelServer() as server:
            conversation = talk(server, store, home, max_steps=6)
            writer.start()
            outcome = conversation.answer([GO], steering=steering)
            stop.set()
            writer.join()
        rows = store.get_messages(conversation.session_id)
        assert outcome.status == "done"
        assert [row["uid"] for row in rows if row["role"] == "user"] == ["u0", *accepted]
        assert (rows[-1]["role"], steering.untaken()) == ("assistant", [])


class TestObject:
    def test_close_keeps_what_was_accepted(self) -> None:
        steering = Steering()
        steering.offer("a", "1")
        steering.close()
        assert not steering.offer("b", "2")
        assert not steering.close_if_empty()
        assert steering.untaken() == [Incoming("a", "1")]

    def test_empty_message_is_refused(self) -> None:
        with pytest.raises(InvalidValue):
            Steering().offer(" ", "u")
