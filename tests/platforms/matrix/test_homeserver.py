"""Matrix from end to end: a real homeserver, a real gateway, a real store."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.gateway.engine.ports import Delivery, Inbound, Receive
from hermes.gateway.node.runner import GatewayRunner
from hermes.gateway.people.pairing import approve_code
from hermes.platforms.base.adapter import Part
from hermes.platforms.base.media import MediaFile
from hermes.platforms.base.splitting import split_text
from hermes.platforms.matrix import invitations
from hermes.platforms.matrix.adapter import CANNOT_DECRYPT, MatrixAdapter
from tests.gateway.reliability.nodes import NodeThread
from tests.gateway.reliability.world import World, world
from tests.platforms.matrix.bots import make_adapter
from tests.support.fetched import PATIENCE_S as INSTALL_S
from tests.support.modelserver import Say
from tests.support.synapse import Account, Homeserver, homeserver
from tests.support.waiting import wait_until

PATIENCE_S = 60.0

pytestmark = pytest.mark.timeout(INSTALL_S)


class Matrix:
    """A world with a homeserver, a user and the account of a bot."""

    def __init__(self, place: World) -> None:
        self.world = place
        self.server: Homeserver = homeserver()
        self.alice = self.server.user("alice")
        self.bot = self.server.user("bot")
        self.adapter: MatrixAdapter
        self.received: dict[str | None, Inbound] = {}
        """What the adapters have passed to the gateway, by the id of the message."""

    def gateway(self, node: str = "north", *, place: str = "home", waits: bool = True, **extra: Any) -> NodeThread:
        """Start a gateway with the bot, and wait until it is connected."""
        home = self.world.home(place, sessiondb={"path": str(self.world.home() / "state.db")})
        adapter: MatrixAdapter

        def adapters(runner: GatewayRunner) -> list[MatrixAdapter]:
            nonlocal adapter
            kind, may_talk = recording(self.received), runner.doorkeeper.may_talk
            adapter = make_adapter(home, self.server.base_url, self.bot.token, kind, may_talk=may_talk, **extra)
            return [adapter]

        started = self.world.thread(node, home=home, adapters=adapters)
        self.adapter = adapter
        if waits:
            wait_until(lambda: adapter.status.endswith(": connected"), "the bot to connect", PATIENCE_S)
        return started

    def let_talk(self, **section: Any) -> None:
        """Write who may talk into the settings of the home."""
        file = self.world.home() / "config.yaml"
        platforms = {"matrix": {"enabled": True, **section}}
        file.write_text(json.dumps({**json.loads(file.read_text()), "platforms": platforms}))

    def is_member(self, user: Account, room: str) -> bool:
        """Whether the bot is in a room of a user."""
        return self.bot.user_id in user.call("GET", f"/rooms/{room}/joined_members")["joined"]

    def chat(self, user: Account | None = None) -> str:
        """Open the direct chat of a user with the bot, which runs."""
        user = user or self.alice
        room = user.create_room(self.bot.user_id, is_direct=True, preset="trusted_private_chat")
        self.wait_for_join(user, room)
        return room

    def wait_for_join(self, user: Account, room: str) -> None:
        """Wait until the bot has joined a room."""
        wait_until(lambda: self.is_member(user, room), "the bot to join", PATIENCE_S)

    def wait_for(self, room: str, *texts: str, reader: Account | None = None) -> None:
        """Wait until the bot has written these texts, and no others."""
        reader = reader or self.alice
        wait_until(
            lambda: len(reader.texts_of(room, self.bot.user_id)) >= len(texts), f"{texts} in the room", PATIENCE_S
        )
        assert reader.texts_of(room, self.bot.user_id) == list(texts)


def recording(received: dict[str | None, Inbound]) -> type[MatrixAdapter]:
    """Return a kind of adapter that notes what it passes on."""

    class RecordingAdapter(MatrixAdapter):
        async def start(self, receive: Receive) -> None:
            """Start with a function that notes every message."""

            async def note(inbound: Inbound) -> Any:
                received[inbound.message_id] = inbound
                return await receive(inbound)

            await super().start(note)

    return RecordingAdapter


@pytest.fixture
def matrix(monkeypatch: pytest.MonkeyPatch) -> Iterator[Matrix]:
    with world() as place:
        monkeypatch.setenv("HERMES_HOME", str(place.home()))
        yield Matrix(place)


def answer(word: str) -> str:
    return f"answer to {word}"


def test_conversation_continues_after_a_restart_with_what_was_written_meanwhile(matrix: Matrix) -> None:
    node = matrix.gateway()
    room = matrix.chat()
    first = matrix.alice.say(room, "one please")
    matrix.wait_for(room, answer("one"))
    node.stop()
    second = matrix.alice.say(room, "two please")
    matrix.gateway()
    matrix.wait_for(room, answer("one"), answer("two"))
    assert matrix.world.lane_of(first) == matrix.world.lane_of(second)
    transcript = matrix.world.transcript(second)
    assert [text for role, text in transcript if role == "assistant"] == [answer("one"), answer("two")]
    source = matrix.received[first].source
    assert (source.chat_type, source.user_id, source.chat_id) == ("dm", matrix.alice.user_id, room)


def test_history_before_the_first_start_is_not_answered(matrix: Matrix) -> None:
    room = matrix.alice.create_room(matrix.bot.user_id, is_direct=True)
    matrix.bot.join(room)
    matrix.alice.say(room, "old please")
    matrix.gateway()
    matrix.alice.say(room, "new please")
    matrix.wait_for(room, answer("new"))


async def forgotten(*_: object) -> dict[str, str]:
    return {}


@pytest.mark.parametrize("known_by", ["transaction", "mark"])
def test_kill_between_send_and_receipt_leaves_one_event(
    matrix: Matrix, monkeypatch: pytest.MonkeyPatch, known_by: str
) -> None:
    home, arguments = matrix.world.home(), (matrix.server.base_url, matrix.bot.token)
    room = matrix.alice.create_room(matrix.bot.user_id, is_direct=True)
    matrix.bot.join(room)
    matrix.gateway().stop()  # the first start, after which nothing is history any more
    event = matrix.alice.say(room, "deploy please")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.platforms.matrix.bots", str(home), *arguments, "dies"],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parents[3],
    )
    try:
        assert process.wait(PATIENCE_S) == -9
    finally:
        process.kill()
        process.wait()
    assert matrix.world.replies(event)[0]["state"] != "sent"
    for row in matrix.world.replies(event):
        matrix.world.store.outbox.end_leases(str(row["holder"]))
    if known_by == "mark":  # the homeserver knows transactions by the token
        matrix.bot = matrix.bot.log_in_again()
    else:
        monkeypatch.setattr(MatrixAdapter, "_own_messages", forgotten)
    matrix.gateway()
    wait_until(lambda: matrix.world.replies(event)[0]["state"] == "sent", "the receipt to be stored", PATIENCE_S)
    matrix.wait_for(room, answer("deploy"))
    (reply,) = matrix.world.replies(event)
    (shown,) = [each for each in matrix.alice.events(room) if each["sender"] == matrix.bot.user_id]
    assert (reply["receipt"] or {})["message_ids"] == [shown["event_id"]]


def test_threads_have_sessions_of_their_own_and_answers_stay_in_them(matrix: Matrix) -> None:
    matrix.gateway()
    room = matrix.chat()
    root = matrix.alice.say(room, "root please")
    matrix.wait_for(room, answer("root"))
    inside = matrix.alice.say(room, "inside please", **{"m.relates_to": {"rel_type": "m.thread", "event_id": root}})
    matrix.wait_for(room, answer("root"), answer("inside"))
    last = matrix.alice.events(room)[-1]["content"]["m.relates_to"]
    assert (last["rel_type"], last["event_id"]) == ("m.thread", root)
    assert matrix.world.lane_of(root) != matrix.world.lane_of(inside)


def test_groups_are_answered_when_the_bot_is_mentioned(matrix: Matrix) -> None:
    bob = matrix.server.user("bob")
    matrix.gateway()
    room = matrix.alice.create_room(matrix.bot.user_id, bob.user_id, name="Team")
    bob.join(room)
    matrix.wait_for_join(matrix.alice, room)
    matrix.alice.say(room, "unaddressed please")
    matrix.alice.send(room, {"msgtype": "m.notice", "body": f"{matrix.bot.user_id} notice please"})
    named = matrix.alice.say(
        room, f"{matrix.bot.user_id}: named please", **{"m.mentions": {"user_ids": [matrix.bot.user_id]}}
    )
    matrix.wait_for(room, answer("named"))
    source = matrix.received[named].source
    assert (source.chat_type, source.chat_name) == ("group", "Team")
    reply = matrix.alice.events(room)[-1]["event_id"]
    bob.say(room, "reply please", **{"m.relates_to": {"m.in_reply_to": {"event_id": reply}}})
    matrix.wait_for(room, answer("named"), answer("reply"))
    called = matrix.alice.say(room, matrix.bot.user_id)
    wait_until(lambda: called in matrix.received, "the mention alone", PATIENCE_S)
    assert matrix.received[called].text == matrix.bot.user_id


def test_new_member_of_a_direct_room_does_not_continue_the_conversation_of_the_old_one(matrix: Matrix) -> None:
    bob = matrix.server.user("bob")
    matrix.gateway()
    room = matrix.chat()
    private = matrix.alice.say(room, "private please")
    matrix.wait_for(room, answer("private"))
    matrix.alice.call("POST", f"/rooms/{room}/invite", {"user_id": bob.user_id})
    bob.join(room)
    matrix.alice.call("POST", f"/rooms/{room}/leave", {})
    other = bob.say(room, "mine please")
    matrix.wait_for(room, answer("private"), answer("mine"), reader=bob)
    assert matrix.world.lane_of(other) != matrix.world.lane_of(private)


class TestInvitations:
    def test_allowed_user_opens_chats_and_invites_to_groups(self, matrix: Matrix) -> None:
        matrix.let_talk(allowed_users=[matrix.alice.user_id])
        matrix.gateway()
        room, group = matrix.chat(), matrix.alice.create_room(matrix.bot.user_id, name="Team")
        matrix.wait_for_join(matrix.alice, group)
        matrix.alice.say(room, "hello please")
        matrix.wait_for(room, answer("hello"))

    def test_unknown_user_opens_a_direct_chat_and_gets_a_pairing_code(
        self, matrix: Matrix, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(invitations, "LOOK_AGAIN_S", 0.1)
        matrix.let_talk(allowed_users=["@carol:example.org"])
        matrix.gateway()
        mallory = matrix.server.user("mallory")
        group = mallory.create_room(matrix.bot.user_id, name="Trap")
        room = matrix.chat(mallory)
        mallory.say(room, "let me in please")
        wait_until(lambda: mallory.texts_of(room, matrix.bot.user_id) != [], "the code", PATIENCE_S)
        (text,) = mallory.texts_of(room, matrix.bot.user_id)
        code = text.partition("pairing code is ")[2].partition(":")[0]
        assert not matrix.is_member(mallory, group)
        assert matrix.world.store.lanes.count() == 0
        approve_code(matrix.world.store, code, time.time())
        matrix.wait_for_join(mallory, group)  # who may talk may invite
        mallory.say(room, "hello please")
        matrix.wait_for(room, text, answer("hello"), reader=mallory)

    def test_unknown_user_is_left_alone_where_there_are_no_codes(self, matrix: Matrix) -> None:
        matrix.let_talk(allowed_users=[matrix.alice.user_id], unauthorized_dm_behavior="ignore")
        matrix.gateway(unauthorized_dm_behavior="ignore")
        mallory = matrix.server.user("mallory")
        room = mallory.create_room(matrix.bot.user_id, is_direct=True)
        matrix.chat()  # invited later, and joined
        assert not matrix.is_member(mallory, room)

    def test_list_of_inviters_decides_alone(self, matrix: Matrix) -> None:
        matrix.gateway(accept_invites_from=[matrix.alice.user_id])
        mallory = matrix.server.user("mallory")
        room = mallory.create_room(matrix.bot.user_id, is_direct=True)
        matrix.chat()  # invited later, and joined
        assert not matrix.is_member(mallory, room)

    def test_strangers_open_a_limited_number_of_chats(self, matrix: Matrix, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(invitations, "_MOST_STRANGERS", 1)
        matrix.let_talk(allowed_users=[matrix.alice.user_id])
        matrix.gateway()
        mallory = matrix.server.user("mallory")
        matrix.chat(mallory)
        second = mallory.create_room(matrix.bot.user_id, is_direct=True)
        matrix.chat()  # of a user who may talk, and later
        assert not matrix.is_member(mallory, second)


def test_node_with_another_home_continues_where_the_first_one_ended(matrix: Matrix) -> None:
    first = matrix.gateway("north")
    room = matrix.chat()
    matrix.alice.say(room, "one please")
    matrix.wait_for(room, answer("one"))
    first.stop()
    matrix.alice.say(room, "two please")
    second = matrix.gateway("south", place="other")
    matrix.wait_for(room, answer("one"), answer("two"))
    second.stop()
    matrix.alice.say(room, "three please")
    matrix.gateway("north")
    matrix.wait_for(room, answer("one"), answer("two"), answer("three"))


def test_one_of_two_nodes_reads_and_the_other_takes_over(matrix: Matrix) -> None:
    first = matrix.gateway("north")
    room = matrix.chat()
    second = matrix.gateway("south", place="other", waits=False)
    states = second.runner.connectors.states
    wait_until(lambda: states.get("matrix") == "polled by north", "the second one to wait", PATIENCE_S)
    matrix.alice.say(room, "one please")
    matrix.wait_for(room, answer("one"))
    first.stop()
    matrix.alice.say(room, "two please")
    matrix.wait_for(room, answer("one"), answer("two"))


def test_pauses_that_the_homeserver_wants_are_kept(matrix: Matrix) -> None:
    matrix.gateway()
    rooms = [matrix.chat() for _ in range(3)]
    matrix.server.limit(matrix.bot, per_second=1, burst=1)
    events = [matrix.alice.say(room, f"word{number} please") for number, room in enumerate(rooms)]
    for number, room in enumerate(rooms):
        matrix.wait_for(room, answer(f"word{number}"))
    matrix.world.wait_until_done(*events)
    assert max(matrix.world.replies(each)[0]["attempts"] for each in events) > 1


def test_messages_of_an_account_whose_position_is_lost_are_read_from_now_on(matrix: Matrix) -> None:
    node = matrix.gateway()
    room = matrix.chat()
    node.stop()
    (file,) = (matrix.world.home() / "platforms" / "matrix").glob("*.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), "since": "no token", "at": 9e10}))
    matrix.gateway()
    wait_until(lambda: json.loads(file.read_text())["since"] != "no token", "a new position", PATIENCE_S)
    matrix.alice.say(room, "new please")
    matrix.wait_for(room, answer("new"))


def test_wrong_token_is_named(matrix: Matrix) -> None:
    matrix.bot = Account(matrix.server, matrix.bot.user_id, "wrong")
    node = matrix.gateway(waits=False)
    states = node.runner.connectors.states
    wait_until(lambda: "M_UNKNOWN_TOKEN" in states.get("matrix", ""), "the reason", PATIENCE_S)
    assert states["matrix"].startswith("not connected: the homeserver refuses it")
    assert matrix.adapter.describe() == ""


def test_bot_says_where_to_talk_to_it(matrix: Matrix) -> None:
    matrix.gateway()
    user_id = matrix.bot.user_id
    assert matrix.adapter.describe() == f"{user_id} (https://matrix.to/#/{user_id})"


def test_encrypted_room_gets_one_notice(matrix: Matrix) -> None:
    node = matrix.gateway()
    room = matrix.chat()
    content = {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "x"}
    matrix.alice.send(room, content, "m.room.encrypted")
    matrix.wait_for(room, CANNOT_DECRYPT)
    node.stop()
    matrix.alice.send(room, content, "m.room.encrypted")
    matrix.gateway()
    matrix.alice.say(room, "plain please")
    matrix.wait_for(room, CANNOT_DECRYPT, answer("plain"))


def test_gap_in_a_long_backlog_is_filled(matrix: Matrix) -> None:
    node = matrix.gateway()
    room = matrix.chat()
    node.stop()
    for number in range(60):
        matrix.alice.send(room, {"msgtype": "m.notice", "body": f"noise {number}"}) if number else matrix.alice.say(
            room, "early please"
        )
    matrix.gateway()
    matrix.wait_for(room, answer("early"))


def test_files_go_both_ways(matrix: Matrix, tmp_path: Path) -> None:
    node = matrix.gateway()
    room = matrix.chat()
    address = matrix.alice.upload(b"some data", "text/plain")
    event = matrix.alice.send(
        room, {"msgtype": "m.file", "body": "file please", "filename": "a.txt", "url": address, "info": {}}
    )
    matrix.wait_for(room, answer("file"))
    (media,) = matrix.received[event].media
    assert Path(media["path"]).read_bytes() == b"some data"
    picture = tmp_path / "b.png"
    picture.write_bytes(b"picture")
    part = Part(Delivery("k1", room, ""), "")
    first = node.call(lambda: matrix.adapter.post_file(part, MediaFile(picture, "image", "look")))
    assert node.call(lambda: matrix.adapter.post_file(part, MediaFile(picture, "image", "look"))) == first
    shown = matrix.alice.events(room)[-1]["content"]
    assert (shown["msgtype"], shown["body"], shown["info"]["size"]) == ("m.image", "look", 7)


def test_edit_and_delete_change_the_message_that_was_sent(matrix: Matrix) -> None:
    node = matrix.gateway()
    room = matrix.chat()
    delivery = Delivery("k2", room, "draft")
    first = node.call(lambda: matrix.adapter.post(Part(delivery, "draft")))
    for _ in range(2):
        node.call(lambda: matrix.adapter.edit(first, Part(delivery, "final")))
    *_, edit = matrix.alice.events(room)
    assert edit["content"]["m.new_content"]["body"] == "final"
    assert len(matrix.alice.texts_of(room, matrix.bot.user_id)) == 2
    node.call(lambda: matrix.adapter.typing(room, None))
    node.call(lambda: matrix.adapter.delete(first, delivery))
    assert matrix.alice.call("GET", f"/rooms/{room}/event/{first}")["content"] == {}


def test_answer_whose_preview_was_removed_is_a_new_event(matrix: Matrix) -> None:
    node = matrix.gateway()
    room = matrix.chat()
    preview = node.call(lambda: matrix.adapter.send(Delivery("k3", room, "the begin", is_final=False)))
    (shown,) = preview.message_ids
    node.call(lambda: matrix.adapter.delete(shown, Delivery("k3", room, "")))
    whole = Delivery("k3", room, "the beginning and the end", preview={"message_ids": [shown]})
    sent = {tuple(node.call(lambda: matrix.adapter.send(whole)).message_ids) for _ in range(2)}
    assert len(sent) == 1
    assert (shown,) not in sent
    assert matrix.alice.texts_of(room, matrix.bot.user_id) == ["the beginning and the end"]


def test_malformed_events_do_not_block_the_ones_behind_them(matrix: Matrix) -> None:
    matrix.gateway()
    room = matrix.chat()
    first = matrix.alice.send(room, {"msgtype": "m.notice", "body": "x"})
    contents: list[dict[str, Any]] = [
        {"msgtype": "m.text", "body": "x", "m.relates_to": {"rel_type": "m.replace", "event_id": first}},
        {"msgtype": "m.file", "body": "x", "info": ["x"], "filename": 7},
        {"msgtype": "m.unknown", "body": "x"},
        {"msgtype": "m.image", "body": "x", "url": "mxc://../.."},
    ]
    for content in contents:
        matrix.alice.send(room, content)
    matrix.alice.say(room, "good please")
    wait_until(
        lambda: answer("good") in "".join(matrix.alice.texts_of(room, matrix.bot.user_id)), "the answer", PATIENCE_S
    )


def test_answer_grows_in_one_event_that_is_edited(matrix: Matrix) -> None:
    text = "answer " + " ".join(f"**word{number}**" for number in range(60))
    matrix.world.model.otherwise = lambda *_: Say(text, between_s=0.01)
    file = matrix.world.home() / "config.yaml"
    streaming = {"enabled": True, "edit_interval": 0.2, "buffer_threshold": 20}
    file.write_text(json.dumps({**json.loads(file.read_text()), "streaming": streaming}))
    matrix.gateway()
    room = matrix.chat()
    question = matrix.alice.say(room, "long please")
    wait_until(lambda: bool(matrix.world.store.inbox.find(question)), "the message to arrive", PATIENCE_S)
    matrix.world.wait_until_done(question)
    wait_until(lambda: matrix.world.replies(question)[0]["state"] == "sent", "the answer", PATIENCE_S)
    first, *edits = [each for each in matrix.alice.events(room) if each["sender"] == matrix.bot.user_id]
    assert len(edits) > 1
    assert {each["content"]["m.relates_to"]["event_id"] for each in edits} == {first["event_id"]}
    content = edits[-1]["content"]["m.new_content"]
    assert content["body"] == text
    assert "<strong>word59</strong>" in content["formatted_body"]
    assert (matrix.world.replies(question)[0]["receipt"] or {})["message_ids"] == [first["event_id"]]


def test_missing_parts_of_a_found_answer_are_sent_and_a_preview_is_completed(matrix: Matrix) -> None:
    node = matrix.gateway()
    room = matrix.chat()
    whole = Delivery("k9", room, "\n".join(f"line {number}" for number in range(4000)))
    first, *rest = split_text(whole.text, matrix.adapter.text_limit, matrix.adapter.length)
    posted = node.call(lambda: matrix.adapter.post(Part(whole, first, 0, len(rest) + 1)))
    node.stop()
    matrix.bot = matrix.bot.log_in_again()
    node = matrix.gateway()
    receipt = node.call(lambda: matrix.adapter.find(whole))
    assert receipt is not None
    assert (receipt.message_ids[0], len(receipt.message_ids)) == (posted, len(rest) + 1)
    assert matrix.alice.texts_of(room, matrix.bot.user_id) == [first, *rest]
    preview = node.call(lambda: matrix.adapter.send(Delivery("k10", room, "the who", is_final=False)))
    final = Delivery("k10", room, "the whole", preview={"message_ids": list(preview.message_ids)})
    for _ in range(2):
        found = node.call(lambda: matrix.adapter.find(final))
        assert found is not None
        assert list(found.message_ids) == list(preview.message_ids)
    assert len(matrix.alice.texts_of(room, matrix.bot.user_id)) == len(rest) + 3  # the preview and one edit
