"""What updates mean: sources, mentions, commands, replies, files; and hostile updates mean nothing."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.gateway.keys import build_session_key
from hermes.platforms.telegram.addressing import Addressing
from hermes.platforms.telegram.updates import Received, migration_of, parse_update
from tests.platforms.telegram.bot_api import mention, message_of

BOT = Addressing(123456, "test_bot")
GROUP: dict[str, Any] = {"chat": -100, "kind": "supergroup"}
ADMIN = {"id": 1087968824, "is_bot": True, "first_name": "Group", "username": "GroupAnonymousBot"}
AS_CHANNEL = {"id": 136817688, "is_bot": True, "first_name": "Channel", "username": "Channel_Bot"}
STICKER = {"file_id": "f", "file_unique_id": "f", "width": 1, "height": 1, "type": "regular", "emoji": "😀"}
STICKER |= {"is_animated": False, "is_video": False}
OWN = {"id": 123456, "is_bot": True, "first_name": "Test"}


def read(text: str = "hello", bot: Addressing = BOT, **more: Any) -> Received | None:
    """Read a message that a user sends."""
    message = message_of(5, text, **more)
    kind = "channel_post" if message["chat"]["type"] == "channel" else "message"
    return parse_update({"update_id": 9, kind: message}, bot)


def known(text: str = "hello", bot: Addressing = BOT, **more: Any) -> Received:
    """Read a message that a person has written."""
    found = read(text, bot, **more)
    assert found is not None
    return found


def answered(text: str = "hello", bot: Addressing = BOT, **more: Any) -> str | None:
    """The text of a message that is for the bot."""
    found = read(text, bot, **more)
    return found.inbound.text if found is not None and found.is_addressed else None


def key(**more: Any) -> str:
    """The lane of a message."""
    return build_session_key(known(**more).inbound.source)


class TestSources:
    def test_private_chat_is_a_dm(self) -> None:
        inbound = known().inbound
        source = inbound.source
        assert (source.chat_type, source.chat_id, source.user_id, source.user_name) == ("dm", "7", "7", "Alice Liddell")
        assert (inbound.message_id, source.message_id, inbound.delivery_id) == ("5", "5", "123456:9")
        assert key() == "agent:main:telegram:dm:7"

    def test_topic_of_a_private_chat_is_a_thread(self) -> None:
        assert key(is_topic_message=True, message_thread_id=11) == "agent:main:telegram:dm:7:11"

    @pytest.mark.parametrize("kind", ["group", "supergroup"])
    def test_group_has_a_lane_for_each_user(self, kind: str) -> None:
        assert key(chat=-100, kind=kind) == "agent:main:telegram:group:-100:7"

    def test_thread_id_of_a_reply_is_no_topic(self) -> None:
        assert key(message_thread_id=4, **GROUP) == "agent:main:telegram:group:-100:7"

    def test_topic_of_a_forum_is_shared_by_its_users(self) -> None:
        forum = {**GROUP, "is_forum": True}
        assert key(is_topic_message=True, message_thread_id=4, **forum) == "agent:main:telegram:group:-100:4"
        assert key(message_thread_id=4, **forum) == "agent:main:telegram:group:-100:4"
        assert key(**forum) == "agent:main:telegram:group:-100:1"

    def test_topic_has_its_name(self) -> None:
        created = message_of(4, forum_topic_created={"name": "Deploys", "icon_color": 1}, **GROUP)
        found = known(is_topic_message=True, message_thread_id=4, reply_to_message=created, is_forum=True, **GROUP)
        assert (found.inbound.source.chat_topic, found.inbound.reply_to_text) == ("Deploys", None)

    def test_channel_is_its_own_user(self) -> None:
        source = known(chat=-200, kind="channel").inbound.source
        assert (source.chat_type, source.user_id, source.user_name) == ("channel", "-200", None)

    def test_anonymous_administrator_has_no_user_id(self) -> None:
        place = message_of(1, **GROUP)["chat"]
        source = known(sender=ADMIN, sender_chat=place, **GROUP).inbound.source
        assert (source.user_id, source.user_name) == (None, None)
        assert build_session_key(source) == "agent:main:telegram:group:-100"

    def test_name_of_another_user_changes_no_id(self) -> None:
        mallory = {"id": 8, "is_bot": False, "first_name": "Alice", "last_name": "Liddell", "username": "alice"}
        assert known(sender=mallory).inbound.source.user_id == "8"

    def test_long_names_are_cut(self) -> None:
        source = known(sender={"id": 8, "is_bot": False, "first_name": "x" * 100_000}).inbound.source
        assert source.user_name is not None
        assert len(source.user_name) == 256

    def test_new_id_of_a_group_is_noted(self) -> None:
        assert migration_of({"message": message_of(1, chat=-5, kind="group", migrate_to_chat_id=-1005)}) == (-5, -1005)
        assert migration_of({"message": message_of(1)}) is None
        assert migration_of({"message": {"chat": 5, "migrate_to_chat_id": "x"}}) is None


class TestSenders:
    @pytest.mark.parametrize(
        "more",
        [
            {"sender": OWN},
            {"sender": {"id": 99, "is_bot": True, "first_name": "Other"}},
            {"sender": AS_CHANNEL, "sender_chat": {"id": -300, "type": "channel", "title": "x"}},
            {"is_automatic_forward": True, "sender_chat": {"id": -300, "type": "channel", "title": "x"}},
            {"via_bot": OWN},
        ],
        ids=["own", "other bot", "as a channel", "linked channel", "via this bot"],
    )
    def test_what_no_person_wrote_is_left_out(self, more: dict[str, Any]) -> None:
        assert read("@test_bot hello", **mention("@test_bot hello"), **more, **GROUP) is None

    def test_edited_message_is_not_read(self) -> None:
        assert parse_update({"update_id": 1, "edited_message": message_of(5, "x")}, BOT) is None

    @pytest.mark.parametrize(
        "service", [{"left_chat_member": OWN}, {"new_chat_title": "x"}, {"delete_chat_photo": True}]
    )
    def test_service_messages_mean_nothing(self, service: dict[str, Any]) -> None:
        assert read("", **service) is None


class TestAddressing:
    @pytest.mark.parametrize(
        ("text", "wanted"),
        [
            ("@test_bot hello", "hello"),
            ("@Test_Bot: hello", "hello"),
            ("hello @test_bot", "hello"),
            ("ask @test_bot about it", "ask @test_bot about it"),
            ("😀 @test_bot", "😀"),
            ("@test_bot", "@test_bot"),
            ("@test_bot /new", "/new"),
        ],
    )
    def test_mention_is_removed_at_the_ends(self, text: str, wanted: str) -> None:
        named = next(each for each in ("@test_bot", "@Test_Bot") if each in text)
        assert answered(text, **mention(text, named), **GROUP) == wanted

    def test_mention_of_a_user_without_a_name_counts(self) -> None:
        entity = {"type": "text_mention", "offset": 0, "length": 3, "user": OWN}
        assert answered("Bot hello", entities=[entity], **GROUP) == "hello"

    def test_name_without_an_entity_is_no_mention(self) -> None:
        assert answered("write to me@test_bot", **GROUP) is None

    def test_mention_in_a_caption_counts(self) -> None:
        entities = mention("@test_bot look")["entities"]
        photo = [{"file_id": "f", "file_unique_id": "f", "width": 1, "height": 1}]
        found = known("", photo=photo, caption="@test_bot look", caption_entities=entities, **GROUP)
        assert (found.is_addressed, found.inbound.text) == (True, "look")

    def test_other_message_of_a_group_is_not_for_the_bot(self) -> None:
        assert answered(**GROUP) is None
        assert answered(chat=-200, kind="channel") is None

    def test_mention_of_another_bot_is_not_for_this_one(self) -> None:
        assert answered("@test_bot2 hello", **mention("@test_bot2 hello", "@test_bot2"), **GROUP) is None

    def test_settings_open_a_group(self) -> None:
        assert answered(bot=Addressing(1, "test_bot", require_mention=False), **GROUP) == "hello"
        assert answered(bot=Addressing(1, "test_bot", free_response_chats={"-100"}), **GROUP) == "hello"
        assert answered(bot=Addressing(1, "test_bot", free_response_chats={"-101"}), **GROUP) is None

    def test_reply_to_the_bot_is_for_it(self) -> None:
        said = message_of(4, "the answer", **GROUP) | {"from": OWN}
        assert answered(reply_to_message=said, **GROUP) == "hello"
        other = message_of(4, "the answer", user=9, **GROUP)
        assert answered(reply_to_message=other, **GROUP) is None

    @pytest.mark.parametrize(
        ("text", "wanted"),
        [
            ("/new@test_bot", "/new"),
            ("/NEW@Test_Bot my title", "/NEW my title"),
            ("/title@test_bot\nmore", "/title\nmore"),
            ("/anything@test_bot x", "/anything x"),
            ("/new@other_bot", None),
            ("/new@test_bot2", None),
            ("/new", "/new"),
            ("/unknown", None),
            ("/etc/passwd", None),
            ("/new@test_bot.example", None),
        ],
    )
    def test_commands_of_a_group_name_their_bot(self, text: str, wanted: str | None) -> None:
        assert answered(text, **GROUP) == wanted

    def test_name_after_a_command_is_removed_in_a_private_chat(self) -> None:
        assert answered("/new@test_bot x") == "/new x"
        assert answered("/new@other_bot x") == "/new@other_bot x"


class TestContents:
    def test_quoted_text_is_passed_on(self) -> None:
        said = message_of(4, "the whole answer")
        assert known(reply_to_message=said).inbound.reply_to_text == "the whole answer"
        part = {"text": "whole", "position": 4}
        assert known(reply_to_message=said, quote=part).inbound.reply_to_text == "whole"
        assert known(reply_to_message=said).inbound.is_reply
        assert not known().inbound.is_reply

    def test_largest_size_of_a_photo_is_taken(self) -> None:
        sizes = [
            {"file_id": f"f{width}", "file_unique_id": "f", "width": width, "height": width} for width in (90, 800, 320)
        ]
        found = known("", photo=sizes, caption="look", media_group_id="g")
        assert found.attachment is not None
        assert (found.attachment.file_id, found.inbound.text, found.album) == ("f800", "look", ("7", "g"))

    @pytest.mark.parametrize(
        ("content", "kind", "name", "mime"),
        [
            ({"voice": {"duration": 1}}, "audio", "voice.ogg", "audio/ogg"),
            (
                {"audio": {"duration": 1, "file_name": "a.flac", "mime_type": "audio/flac"}},
                "audio",
                "a.flac",
                "audio/flac",
            ),
            ({"video": {"duration": 1, "width": 1, "height": 1}}, "video", "video.mp4", "video/mp4"),
            ({"video_note": {"duration": 1, "length": 1}}, "video", "video.mp4", "video/mp4"),
            (
                {"document": {"file_name": "a\n\0b.pdf", "mime_type": "x\ny"}},
                "file",
                "a  b.pdf",
                "application/octet-stream",
            ),
            ({"document": {"file_name": 5, "mime_type": 5}}, "file", "file", "application/octet-stream"),
        ],
    )
    def test_kinds_of_files(self, content: dict[str, dict[str, Any]], kind: str, name: str, mime: str) -> None:
        ((field, values),) = content.items()
        more: dict[str, Any] = {field: {"file_id": "f", "file_unique_id": "f", **values}}
        found = known("", **more)
        assert found.attachment is not None
        assert (found.attachment.kind, found.attachment.name, found.attachment.mime) == (kind, name, mime)

    @pytest.mark.parametrize(
        ("content", "text"),
        [
            ({"location": {"latitude": 1.5, "longitude": -2}}, "[location 1.500000, -2.000000]"),
            ({"contact": {"first_name": "Bob\n/new", "phone_number": "1"}}, "[contact Bob /new 1]"),
            ({"sticker": STICKER}, "[sticker 😀]"),
            ({"dice": {"emoji": "🎲", "value": 4}}, "[dice 🎲 4]"),
        ],
    )
    def test_other_contents_are_a_line(self, content: dict[str, Any], text: str) -> None:
        assert known("", **content).inbound.text == text


HOSTILE: dict[str, Any] = {
    "text is a number": {"text": 5},
    "text is a list": {"text": ["x"]},
    "caption is an object": {"caption": {}},
    "no chat": {"chat": None},
    "chat without an id": {"chat": {"type": "private"}},
    "chat id is text": {"chat": {"id": "7", "type": "private"}},
    "chat id is a bool": {"chat": {"id": True, "type": "private"}},
    "chat of an unknown type": {"chat": {"id": 7, "type": "telepathy"}},
    "chat without a type": {"chat": {"id": 7}},
    "message id is text": {"message_id": "5"},
    "sender is a list": {"from": []},
    "sender is a number": {"from": 5},
    "sender id is text": {"from": {"id": "7", "is_bot": False, "first_name": "x"}},
    "photo is empty": {"photo": [], "text": None},
    "photo without an id": {"photo": [{"width": 1, "height": 1}], "text": None},
    "document is text": {"document": "x", "text": None},
    "thread id is text": {"message_thread_id": "x", "is_topic_message": True},
    "group of an album is a list": {"media_group_id": []},
    "entities are text": {"entities": "x", "chat": {"id": -1, "type": "group"}},
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=list(HOSTILE))
def test_hostile_update_is_refused_or_means_nothing(change: dict[str, Any]) -> None:
    update = {"update_id": 9, "message": message_of(5, "hello") | change}
    try:
        found = parse_update(update, BOT)
    except Exception:  # noqa: BLE001 - the adapter writes any error to the log and acknowledges
        return
    assert found is None


@pytest.mark.parametrize(
    "entity",
    [
        {"offset": -5, "length": 9},
        {"offset": 0, "length": 10**9},
        {"offset": 2**70, "length": 9},
        {"offset": 0, "length": -1},
        {"offset": "0", "length": 9},
        {"offset": 0, "length": None},
        {"offset": True, "length": 9},
    ],
    ids=str,
)
def test_entity_out_of_range_is_no_mention(entity: dict[str, Any]) -> None:
    try:
        assert answered("@test_bot hello", entities=[{"type": "mention", **entity}], **GROUP) is None
    except (TypeError, ValueError):
        return


def test_entity_inside_of_a_character_is_no_mention() -> None:
    assert answered("😀@test_bot", entities=[{"type": "mention", "offset": 1, "length": 9}], **GROUP) is None


def test_nul_and_very_long_texts_are_passed_on_as_they_are() -> None:
    assert answered("a\0b") == "a\0b"
    assert answered("x" * 1_000_000) == "x" * 1_000_000


def test_deep_nesting_is_an_error_of_this_update_only() -> None:
    message: dict[str, Any] = message_of(1, "x")
    for _ in range(5000):
        message = message_of(1, "x", reply_to_message=message)
    with pytest.raises(RecursionError):
        parse_update({"update_id": 1, "message": message}, BOT)
