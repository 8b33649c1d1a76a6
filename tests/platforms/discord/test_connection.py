"""The connection to Discord: resumed, begun again, refused, and what was missed meanwhile."""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path

import pytest

from hermes.errors import ConfigError
from hermes.gateway.engine.ports import NotSent
from hermes.platforms.discord import arrivals, link, position
from hermes.platforms.discord.client import Connection
from hermes.platforms.discord.position import id_at
from tests.platforms.discord.bots import Bot, running
from tests.platforms.discord.server import BOT, GUILD, DiscordServer, user
from tests.support.waiting import wait_until

MESSAGE_CONTENT = 1 << 15


def wait_until_connected(bot: Bot, server: DiscordServer) -> None:
    wait_until(lambda: server.connections == 1 and bot.adapter.status == "connected", "the connection")


def stored(home: Path) -> dict[str, list[str]]:
    (file,) = (home / "platforms" / "discord").glob("*.json")
    return dict(json.loads(file.read_text()))


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the library begin a new session without the pause of five seconds that Discord wants."""

    async def begin_at_once(self: Connection, shard_id: int | None, *, initial: bool = False) -> None:
        return

    monkeypatch.setattr(Connection, "before_identify_hook", begin_at_once)


def test_resumed_connection_delivers_what_was_missed(server: DiscordServer, tmp_path: Path) -> None:
    with running(tmp_path, server) as bot:
        server.disconnect()
        server.say(server.direct(), "meanwhile")
        bot.wait_for("meanwhile")
        assert (server.resumed, len(server.identified)) == (1, 1)


@pytest.mark.usefixtures("hasty")
def test_forgotten_session_begins_again_with_what_was_missed_in_order(server: DiscordServer, tmp_path: Path) -> None:
    server.add_thread("21", "Plans", "20")
    direct = server.direct()
    with running(tmp_path, server, require_mention=False) as bot:
        for channel in (direct, "20", "21"):
            server.say(channel, f"before in {channel}")
        wait_until(lambda: len(bot.inbox.accepted) == 3, "the first messages")
        server.accepts = False
        server.disconnect(forgets=True)
        for number in range(150):
            for channel in (direct, "20", "21"):
                server.say(channel, f"{number} in {channel}", is_live=False)
        server.accepts = True
        server.say("20", "last in 20", is_live=False)
        wait_until(lambda: len(bot.inbox.accepted) >= 454, "the missed messages", 60)
        for channel in (direct, "20", "21"):
            texts = [each.text for each in bot.inbox.accepted if each.text.endswith(f" in {channel}")]
            last = [f"last in {channel}"] if channel == "20" else []
            assert texts == [f"before in {channel}", *(f"{number} in {channel}" for number in range(150)), *last]
        assert len(bot.inbox.accepted) == bot.inbox.calls == 454


@pytest.mark.usefixtures("hasty")
def test_live_message_waits_for_the_missed_ones_of_its_channel(server: DiscordServer, tmp_path: Path) -> None:
    with running(tmp_path, server, require_mention=False) as bot:
        server.say("20", "one")
        bot.wait_for("one")
        bot.inbox.hold()
        server.disconnect(forgets=True)
        server.say("20", "two", is_live=False)
        wait_until_connected(bot, server)
        server.say("20", "three")
        bot.inbox.release()
        bot.wait_for("one", "two", "three")


def test_restart_reads_what_was_written_meanwhile_once(server: DiscordServer, tmp_path: Path) -> None:
    with running(tmp_path, server) as bot:
        server.say(server.direct(), "first")
        bot.wait_for("first")
    server.say(server.direct(), "second", is_live=False)
    server.mention("20", "third", is_live=False)
    server.say("20", "not for the bot", is_live=False)
    with running(tmp_path, server) as bot:
        wait_until(lambda: len(bot.inbox.accepted) == 2, "the missed messages")
        assert set(bot.inbox.texts) == {"second", "third"}


def test_kill_repeats_at_most_what_the_inbox_knows(server: DiscordServer, tmp_path: Path) -> None:
    bot = Bot(tmp_path, server).start()
    try:
        message = server.say(server.direct(), "first")
        bot.wait_for("first")
        wait_until(lambda: int(message) in stored(tmp_path)["done"], "the position")  # type: ignore[comparison-overlap]
        server.say(server.direct(), "second", is_live=False)
        with running(tmp_path, server) as other:
            other.wait_for("second")
    finally:
        bot.stop()


def test_history_before_the_first_start_is_not_answered(server: DiscordServer, tmp_path: Path) -> None:
    server.mention("20", "old", is_live=False)
    time.sleep(0.002)  # ids have milliseconds
    with running(tmp_path, server) as bot:
        server.mention("20", "new")
        bot.wait_for("new")


def test_node_that_waited_for_its_turn_reads_what_arrived_while_it_waited(
    server: DiscordServer, tmp_path: Path
) -> None:
    bot = Bot(tmp_path, server)
    try:
        server.mention("20", "while another node was dying", is_live=False)
        bot.start().wait_for("while another node was dying")
    finally:
        bot.stop()


def test_history_before_the_bot_joined_a_server_is_not_answered(server: DiscordServer, tmp_path: Path) -> None:
    with running(tmp_path, server) as bot:
        server.add_guild("11", "Club")
        server.add_channel("22", "lounge", guild_id="11")
        server.mention("22", "before", is_live=False)
        server.guilds["11"]["joined_at"] = "2999-01-01T00:00:00+00:00"
        channels = [server.channels["22"]]
        server.emit("GUILD_CREATE", {**server.guilds["11"], "channels": channels, "threads": []})
        server.mention("22", "after")
        bot.wait_for("after")


def test_backlog_is_bounded_by_number_and_age(server: DiscordServer, tmp_path: Path) -> None:
    with running(tmp_path, server):
        pass
    (file,) = (tmp_path / "platforms" / "discord").glob("*.json")
    file.write_text(json.dumps({"upto": id_at(time.time() - 100 * 3600), "done": [], "chats": [37]}))
    for number in range(5):
        message = server.message(server.direct(), f"old {number}", user("7"))
        server.messages.pop(message["id"])
        message["id"] = str(id_at(time.time() - 90 * 3600) + number)
        server.messages[message["id"]] = message
    for number in range(5):
        server.say(server.direct(), f"new {number}", is_live=False)
    with running(tmp_path, server, backlog_limit=3) as bot:
        bot.wait_for("new 2", "new 3", "new 4")
        server.say(server.direct(), "live")
        bot.wait_for("new 2", "new 3", "new 4", "live")


def test_damaged_position_is_a_first_start(server: DiscordServer, tmp_path: Path) -> None:
    with running(tmp_path, server):
        pass
    (file,) = (tmp_path / "platforms" / "discord").glob("*.json")
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    for damage in (
        '{"upto": "9000000000000000000"}',
        "{",
        "[]",
        '{"upto": [], "done": 5, "chats": [null]}',
        "[" * 100_000,
    ):
        file.write_text(damage)
        with running(tmp_path, server) as bot:
            server.say(server.direct(), damage[:5])
            bot.wait_for(damage[:5])


def test_messages_wait_in_order_while_the_store_is_away(
    server: DiscordServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "PAUSES_S", (0.05,))
    with running(tmp_path, server) as bot:
        bot.inbox.is_failing = True
        sent = [server.say(server.direct(), f"message {number}") for number in range(20)]
        wait_until(lambda: bot.inbox.calls > 3, "some attempts")
        assert all(int(stored(tmp_path)["upto"]) < int(each) for each in sent)  # type: ignore[call-overload]
        bot.inbox.is_failing = False
        bot.wait_for(*(f"message {number}" for number in range(20)))


def test_messages_that_do_not_fit_are_read_from_discord_later(
    server: DiscordServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "MOST_WAITING", 4)
    monkeypatch.setattr(arrivals, "PAUSES_S", (0.05,))
    with running(tmp_path, server, require_mention=False) as bot:
        bot.inbox.is_failing = True
        for number in range(20):
            server.say("20", f"message {number}")
            server.say(server.direct(), f"private {number}")
        working = bot.adapter._arrivals
        assert working is not None
        wait_until(lambda: len(working._left) == 2, "messages that do not fit")
        bot.inbox.is_failing = False
        wait_until(lambda: len(bot.inbox.accepted) == 40, "all messages")
        for kind in ("message", "private"):
            texts = [each for each in bot.inbox.texts if each.startswith(kind)]
            assert texts == [f"{kind} {number}" for number in range(20)]


def test_wrong_token_is_explained_without_showing_it(
    server: DiscordServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    bot = Bot(tmp_path, server, token="wrong-token-1234")
    try:
        with pytest.raises(ConfigError, match=r"refuses the token.*developer portal") as failure:
            bot.start()
    finally:
        bot.stop()
    with running(tmp_path, server) as other:
        other.send("hello", server.direct())
    assert "1234" not in str(failure.value) + caplog.text
    assert server.token not in caplog.text
    assert failure.value.__suppress_context__


@pytest.mark.parametrize(("flags", "refused"), [(0, 0), (1 << 18, MESSAGE_CONTENT)])
def test_missing_intent_is_explained(server: DiscordServer, tmp_path: Path, flags: int, refused: int) -> None:
    server.application_flags, server.refused_intents = flags, refused
    bot = Bot(tmp_path, server)
    try:
        with pytest.raises(ConfigError, match="Message Content Intent"):
            bot.start()
    finally:
        bot.stop()
    with running(tmp_path, server, message_content=False) as other:
        server.mention("20", "hello")
        other.wait_for("hello")
    assert len(server.identified) == 1
    assert server.identified[-1]["intents"] == 1 | 1 << 9 | 1 << 12


def test_token_that_is_withdrawn_while_connected_is_reported(server: DiscordServer, tmp_path: Path) -> None:
    with running(tmp_path, server) as bot:
        server.token = "another"
        server.disconnect(code=4004)
        wait_until(lambda: "refuses the token" in bot.adapter.status, "the status")
        with pytest.raises(NotSent) as failure:
            bot.send("hello", server.direct())
        assert not failure.value.is_final


@pytest.mark.parametrize(
    "frame", ["{", "[]", "null", b"garbage\x00\x00\xff\xff", '{"op": 10, "d": null}', '{"op": 0, "t": "READY"}']
)
def test_frame_that_cannot_be_read_costs_one_connection(
    server: DiscordServer, tmp_path: Path, frame: str | bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "FIRST_PAUSE_S", 0.05)
    with running(tmp_path, server) as bot:
        server.say(server.direct(), "before")
        bot.wait_for("before")
        server.push(frame)
        wait_until(lambda: len(server.identified) == 2, "a new session")
        server.say(server.direct(), "after")
        bot.wait_for("before", "after")


def test_gateway_that_is_away_for_long_is_found_again(
    server: DiscordServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "PATIENCE_S", 0.1)
    monkeypatch.setattr(link, "FIRST_PAUSE_S", 0.05)
    with running(tmp_path, server) as bot:
        server.accepts = False
        server.disconnect()
        wait_until(lambda: bot.adapter.status.startswith("not connected"), "the status")
        server.accepts = True
        server.say(server.direct(), "still there?", is_live=False)
        server.mention("20", "hello?", is_live=False)
        bot.wait_for("hello?")  # the direct chat is new, and Discord does not list it


def test_reconnect_request_and_heartbeats_are_followed(server: DiscordServer, tmp_path: Path) -> None:
    with running(tmp_path, server) as bot:
        server.push(json.dumps({"op": 1, "d": None}))
        server.push(json.dumps({"op": 7, "d": None}))
        wait_until(lambda: server.resumed == 1, "the resumed session")
        server.say(server.direct(), "here")
        bot.wait_for("here")


def test_bots_of_different_servers_do_not_share_addresses(server: DiscordServer, tmp_path: Path) -> None:
    other = DiscordServer()
    try:
        with running(tmp_path / "a", server) as first, running(tmp_path / "b", other) as second:
            server.say(server.direct(), "to the first")
            other.say(other.direct(), "to the second")
            first.wait_for("to the first")
            second.wait_for("to the second")
            assert first.adapter.describe() == second.adapter.describe()
            assert f"client_id={BOT}" in first.adapter.describe()
    finally:
        other.close()


def test_adapter_can_be_started_again(server: DiscordServer, tmp_path: Path) -> None:
    bot = Bot(tmp_path, server).start()
    try:
        bot.call(bot.adapter.stop)
        server.mention("20", "meanwhile", is_live=False)
        bot.start().wait_for("meanwhile")
    finally:
        bot.stop()


def test_position_keeps_what_waits_and_forgets_what_is_done(tmp_path: Path) -> None:
    place = position.Position(tmp_path, BOT, GUILD)
    now = time.time()
    old, later = id_at(now - 100), id_at(now)
    place.hold(old)
    for number in range(10):
        place.finish(later + number)
    place._advance()
    assert (place.upto, place.is_done(later)) == (old - 1, True)
    place.release(old)
    place._advance()
    assert place.upto == later + 9 - (15_000 << 22)
    place.note(later + (20_000 << 22))
    place._advance()
    assert not place.is_done(later)
    before = place.upto
    place.note(id_at(now + 10**8))
    place._advance()
    assert place.upto == before


def test_stop_does_not_wait_for_a_server_that_hangs(
    server: DiscordServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "_CLOSE_S", 0.1)
    with running(tmp_path, server) as bot:
        server.hangs = True
        server.push(json.dumps({"op": 1, "d": None}))  # which the client answers
        wait_until(lambda: server.is_hanging, "the server to hang")
        message = server.say(server.direct(), "last")
        bot.wait_for("last")
    assert int(message) in stored(tmp_path)["done"]  # type: ignore[comparison-overlap]


def test_files_of_a_message_that_waits_are_fetched_once(
    server: DiscordServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "PAUSES_S", (0.02,))
    server.files["n.txt"] = b"data"
    with running(tmp_path, server) as bot:
        bot.inbox.is_failing = True
        url = f"{server.base_url}/cdn/n.txt"
        server.say(server.direct(), "look", attachments=[{"url": url, "filename": "n.txt", "size": 4}])
        wait_until(lambda: bot.inbox.calls > 3, "some attempts")
        bot.inbox.is_failing = False
        bot.wait_for("look")
        assert len(list((tmp_path / "media" / "discord").iterdir())) == 1
