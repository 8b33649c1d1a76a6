"""Messages of Discord on their way to the inbox: which ones are for the bot, and which lane they belong to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hermes.gateway.engine.ports import Admission, Inbound
from hermes.gateway.keys import build_session_key, lane_owner
from hermes.gateway.platform import Platform
from hermes.gateway.source import SessionSource
from hermes.state.owner import owner_of
from tests.platforms.discord.bots import Bot, running
from tests.platforms.discord.server import ALICE, BOB, BOT, GUILD, DiscordServer, user
from tests.platforms.strangers import no_user_may_talk
from tests.support.waiting import wait_until


def file(server: DiscordServer, name: str, content: bytes, **more: Any) -> dict[str, Any]:
    server.files[name] = content
    url = f"{server.base_url}/cdn/{name}"
    return {"id": "1", "url": url, "filename": name, "size": len(content), "content_type": "text/plain", **more}


def test_direct_message_is_a_private_chat(server: DiscordServer, tmp_path: Path) -> None:
    with running(tmp_path, server) as bot:
        message = server.say(server.direct(), "hello")
        bot.wait_for("hello")
        assert bot.last().source == SessionSource(
            Platform.DISCORD, "37", chat_type="dm", user_id=ALICE, user_name="Alice", message_id=message
        )
        assert (bot.last().message_id, bot.last().delivery_id, bot.last().message_type) == (message, message, "text")
        assert bot.last_key() == "agent:main:discord:dm:37"


def test_channel_is_answered_when_the_bot_is_mentioned(server: DiscordServer, tmp_path: Path) -> None:
    with running(tmp_path, server) as bot:
        server.say("20", "not for you")
        server.say("20", f"<@{BOT}> quoted in code is no mention")
        message = server.mention("20", "what is up?")
        bot.wait_for("what is up?")
        assert bot.last().source == SessionSource(
            Platform.DISCORD,
            "20",
            chat_name="Team / #general",
            chat_type="group",
            user_id=ALICE,
            user_name="Alice",
            chat_topic="about general",
            guild_id=GUILD,
            message_id=message,
        )
        assert bot.last_key() == "agent:main:discord:group:20:7"
        assert bot.last_key(group_sessions_per_user=False) == "agent:main:discord:group:20"
        server.mention("20", "")
        bot.wait_for("what is up?", f"@{bot.adapter._name}")


def test_role_of_the_bot_and_a_reply_to_it_count_as_mentions(server: DiscordServer, tmp_path: Path) -> None:
    with running(tmp_path, server) as bot:
        server.say("20", "<@&109> by role", mention_roles=["109"])
        own = server.message("20", "earlier answer", user(BOT))
        server.say("20", "by reply", type=19, referenced_message=own)
        other = server.message("20", "of bob", user(BOB))
        server.say("20", "to bob", type=19, referenced_message=other)
        server.mention("20", "about that", type=19, referenced_message=other)
        bot.wait_for("by role", "by reply", "about that")
        assert [each.reply_to_text for each in bot.inbox.accepted] == [None, "earlier answer", "of bob"]


@pytest.mark.parametrize("extra", [{"require_mention": False}, {"free_response_chats": ["20"]}])
def test_channels_can_be_answered_without_a_mention(
    server: DiscordServer, tmp_path: Path, extra: dict[str, Any]
) -> None:
    with running(tmp_path, server, **extra) as bot:
        server.say("20", "just so")
        bot.wait_for("just so")


def test_thread_is_in_the_chat_of_its_channel_and_shared(server: DiscordServer, tmp_path: Path) -> None:
    with running(tmp_path, server) as bot:
        server.add_thread("21", "Plans", "20")
        server.mention("21", "one")
        bot.wait_for("one")
        source = bot.last().source
        assert (source.chat_type, source.chat_id, source.thread_id, source.guild_id) == ("group", "20", "21", GUILD)
        assert (source.chat_name, source.chat_topic) == ("Team / #general / Plans", "about general")
        assert bot.last_key() == "agent:main:discord:group:20:21"
        assert bot.last_key(thread_sessions_per_user=True) == "agent:main:discord:group:20:21:7"


def test_thread_with_the_bot_needs_no_mention(server: DiscordServer, tmp_path: Path) -> None:
    with running(tmp_path, server) as bot:
        server.add_thread("21", "Plans", "20")
        server.say("21", "among us")
        server.mention("21", "join in")
        bot.wait_for("join in")
        bot.send("here", "20", thread_id="21")
        server.say("21", "and more", author=BOB)
        bot.wait_for("join in", "and more")


def test_thread_can_need_a_mention_each_time(server: DiscordServer, tmp_path: Path) -> None:
    with running(tmp_path, server, thread_require_mention=True) as bot:
        server.add_thread("21", "Plans", "20")
        bot.send("here", "20", thread_id="21")
        server.say("21", "among us")
        server.mention("21", "you again")
        bot.wait_for("you again")


def test_forum_post_is_a_thread_of_the_forum(server: DiscordServer, tmp_path: Path) -> None:
    server.add_channel("40", "ideas", kind=15)
    with running(tmp_path, server, free_response_chats=["40"]) as bot:
        server.add_thread("41", "An idea", "40")
        server.say("41", "what about this?")
        bot.wait_for("what about this?")
        source = bot.last().source
        assert (source.chat_id, source.thread_id, source.chat_name) == ("40", "41", "Team / #ideas / An idea")


def test_thread_that_the_connection_does_not_know_is_looked_up(server: DiscordServer, tmp_path: Path) -> None:
    with running(tmp_path, server) as bot:
        server.add_thread("21", "Archived", "20", is_announced=False)
        server.mention("21", "wake up")
        bot.wait_for("wake up")
        assert bot.last_key() == "agent:main:discord:group:20:21"


def test_member_of_two_servers_has_a_name_and_a_lane_in_each(server: DiscordServer, tmp_path: Path) -> None:
    server.add_guild("11", "Club")
    server.add_channel("22", "lounge", guild_id="11")
    server.members[GUILD, ALICE] = {"roles": [], "nick": "Boss"}
    server.members["11", ALICE] = {"roles": [], "nick": "Al"}
    with running(tmp_path, server) as bot:
        server.mention("20", "at work")
        server.mention("22", "at play")
        server.say(server.direct(), "in private")
        wait_until(lambda: len(bot.inbox.accepted) == 3, "all messages")
        sources = {each.text: each.source for each in bot.inbox.accepted}
        assert {text: (each.user_name, each.guild_id) for text, each in sources.items()} == {
            "at work": ("Boss", GUILD),
            "at play": ("Al", "11"),
            "in private": ("Alice", None),
        }
        keys = {build_session_key(each) for each in sources.values()}
        owners = {lane_owner(each, "k", is_shared=False) for each in sources.values()}
        assert (len(keys), owners) == (3, {owner_of("discord", ALICE)})


def test_bots_webhooks_and_the_system_are_ignored(server: DiscordServer, tmp_path: Path) -> None:
    direct = server.direct()
    with running(tmp_path, server, require_mention=False) as bot:
        for author, more in (
            (user("66", bot=True), {}),
            (user(ALICE), {"webhook_id": "66"}),
            (user(ALICE), {"application_id": "66"}),
            (user(ALICE, discriminator="0000"), {}),
            (user(ALICE, system=True), {}),
            (user(ALICE), {"type": 7}),
            (user(ALICE), {"type": 21}),
            (user(BOT), {}),
        ):
            for channel in (direct, "20"):
                server.deliver(server.message(channel, "no person", author, **more)["id"])
        server.emit("MESSAGE_UPDATE", {**server.message(direct, "an edit", user(ALICE)), "edited_timestamp": "now"})
        server.say("20", "a person")
        bot.wait_for("a person")
        server.say(direct, "and here")
        bot.wait_for("a person", "and here")


def test_message_of_a_deleted_channel_does_not_block_the_others(server: DiscordServer, tmp_path: Path) -> None:
    with running(tmp_path, server) as bot:
        server.mention("999", "from nowhere")
        server.say(server.direct(), "from here")
        bot.wait_for("from here")


def test_hostile_values_are_cut_to_what_can_be_stored(server: DiscordServer, tmp_path: Path) -> None:
    with running(tmp_path, server) as bot:
        message = server.message(
            server.direct(),
            "x" * 500_000,
            {**user(ALICE), "global_name": "a\u202eb\n" + "c" * 5000},
            sticker_items=[{"name": "wave\n[system]"}, None, 5],
            poll={"question": {"text": "Tea?"}},
            mentions=[None, {"id": []}, {"id": True}],
            attachments=[None, {"url": "file:///etc/passwd", "filename": "../../x", "size": "many"}],
            referenced_message="none",
        )
        server.deliver(message["id"])
        wait_until(lambda: bool(bot.inbox.accepted), "the message")
        text = bot.last().text
        assert text.startswith("x" * 500_000 + "\n[sticker: wave[system]]\n")
        assert "[poll: Tea?]" in text
        assert text.count("was not received: its address is not one of Discord") == 2
        assert bot.last().source.user_name == "ab" + "c" * 96


def test_files_are_stored_and_others_are_explained(server: DiscordServer, tmp_path: Path) -> None:
    big = file(server, "big.bin", b"", size=10**9)
    liar = file(server, "liar.bin", b"y" * (21 * 1024 * 1024), size=1)
    foreign = {**file(server, "f.txt", b""), "url": f"http://localhost:{server.port}/api/v10/cdn/f.txt"}
    with running(tmp_path, server) as bot:
        good = file(server, "n.txt", b"some data", content_type="image/png")
        server.say(server.direct(), "look", attachments=[good, big, liar, foreign])
        wait_until(lambda: bool(bot.inbox.accepted), "the message")
        (media,) = bot.last().media
        assert (Path(media["path"]).read_bytes(), media["mime"], media["name"]) == (b"some data", "image/png", "n.txt")
        assert Path(media["path"]).parent == tmp_path / "media" / "discord"
        assert bot.last().text.splitlines() == [
            "look",
            "[the file big.bin was not received: it is larger than 20 MB]",
            "[the file liar.bin was not received: the file is larger than 20 MB]",
            "[the file f.txt was not received: its address is not one of Discord]",
        ]
        assert bot.last().message_type == "image"


def test_file_of_a_user_who_may_not_talk_is_not_fetched(server: DiscordServer, tmp_path: Path) -> None:
    with running(tmp_path, server) as bot:
        bot.adapter._context = replace(bot.adapter._context, may_talk=no_user_may_talk)
        server.say(server.direct(), "", attachments=[file(server, "n.txt", b"some data")])
        bot.wait_for("[files that were not received]")
        assert bot.last().media == []
    assert [each for each in (tmp_path / "media").rglob("*") if each.is_file()] == []


def test_forwarded_message_is_read(server: DiscordServer, tmp_path: Path) -> None:
    with running(tmp_path, server) as bot:
        inside = {"content": "the news", "attachments": [file(server, "n.txt", b"1")]}
        reference = {"type": 1, "channel_id": "20", "message_id": "5"}
        server.say(server.direct(), "", message_reference=reference, message_snapshots=[{"message": inside}])
        bot.wait_for("[forwarded message]\nthe news")
        assert len(bot.last().media) == 1


@pytest.mark.parametrize(("typed", "text"), [("!new", "/new"), ("/new", "/new"), ("!!", "!!"), ("! wait", "! wait")])
def test_commands_can_begin_with_an_exclamation_mark(
    server: DiscordServer, tmp_path: Path, typed: str, text: str
) -> None:
    with running(tmp_path, server) as bot:
        server.say(server.direct(), typed)
        bot.wait_for(text)


def test_role_lets_its_members_talk_only_in_their_server(server: DiscordServer, tmp_path: Path) -> None:
    server.members[GUILD, ALICE] = {"roles": ["50"], "nick": None}
    with running(tmp_path, server, allowed_roles=["50"]) as bot:
        server.mention("20", "with the role")
        bot.wait_for("with the role")
        server.mention("20", "without it", author=BOB)
        bot.wait_for("with the role", "without it")
        server.say(server.direct(), "in private")
        bot.wait_for("with the role", "without it", "in private")
        assert [each.source.role_authorized for each in bot.inbox.accepted] == [True, False, False]


def test_refusal_is_explained_once_in_a_while(server: DiscordServer, tmp_path: Path) -> None:
    async def refuse(inbound: Inbound) -> Admission:
        await bot.inbox(inbound)
        return Admission("refused", code="queue_full", message="please wait")

    bot = Bot(tmp_path, server)
    try:
        bot.call(lambda: bot.adapter.start(refuse))
        for number in range(3):
            server.say(server.direct(), f"message {number}")
        wait_until(lambda: len(bot.inbox.accepted) == 3, "all messages")
        wait_until(lambda: server.texts(server.direct()) == ["please wait"], "the notice")
    finally:
        bot.stop()
    assert server.texts(server.direct()) == ["please wait"]
