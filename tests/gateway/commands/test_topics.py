"""/topic: topics of a private chat on Telegram."""

from __future__ import annotations

from dataclasses import replace

from hermes.gateway import Platform, SessionSource
from hermes.gateway.topics import texts
from tests.gateway.commands.chats import ALICE, ALICE_IN_GROUP, BOB, Chats

ELEVEN = replace(ALICE, thread_id="11")
TWELVE = replace(ALICE, thread_id="12")


def is_on(chats: Chats, source: SessionSource = ALICE) -> bool:
    return chats.provider.is_telegram_topic_mode_enabled(chat_id=source.chat_id, user_id=source.user_id or "")


def bind(chats: Chats, source: SessionSource, session_id: str) -> None:
    chats.provider.bind_telegram_topic(
        chat_id=source.chat_id,
        thread_id=source.thread_id or "",
        user_id=source.user_id or "",
        session_key=chats.key(source),
        session_id=session_id,
    )


def test_topics_are_turned_on_and_off(chats: Chats) -> None:
    assert chats.reply(ALICE, "/topic") == texts.ENABLED
    assert is_on(chats)
    assert chats.reply(ALICE, "/topic off") == texts.DISABLED
    assert not is_on(chats)
    assert chats.reply(ALICE, "/topic x") == texts.NOT_ENABLED
    assert chats.reply(ALICE, "/topic on") == texts.ENABLED
    assert is_on(chats)
    assert not is_on(chats, BOB)


def test_chats_that_cannot_have_topics_are_refused(chats: Chats) -> None:
    for source in (ALICE_IN_GROUP, SessionSource(Platform.DISCORD, "1", user_id="1")):
        assert chats.reply(source, "/topic on") == texts.ONLY_PRIVATE
    assert not is_on(chats)


def test_bot_without_topics_is_refused(chats: Chats) -> None:
    async def no_topics(platform: str, account: str) -> tuple[bool | None, bool | None]:
        return False, None

    services = chats.with_services(topics_of=no_topics)
    assert chats.reply(ALICE, "/topic", services=services) == texts.NOT_ALLOWED
    assert not is_on(chats)


def test_help_explains_the_choices(chats: Chats) -> None:
    assert chats.reply(ALICE, "/topic help") == texts.HELP


def test_only_private_chats_on_telegram_see_the_command(chats: Chats) -> None:
    assert "/topic" in chats.reply(ALICE, "/help")
    assert "/topic" not in chats.reply(ALICE_IN_GROUP, "/help")


def test_conversations_in_no_topic_are_listed(chats: Chats) -> None:
    earlier = chats.talk(ALICE, "about cats")
    chats.talk(BOB, "a secret of bob")
    inside = chats.talk(ELEVEN, "about dogs")
    chats.send(ALICE, "/topic on")
    bind(chats, ELEVEN, inside)
    assert chats.reply(ALICE, "/topic") == texts.overview(1, [texts.listed(earlier, "about cats")])


def test_topic_says_what_it_continues(chats: Chats) -> None:
    chats.send(ALICE, "/topic on")
    assert chats.reply(ELEVEN, "/topic") == texts.NOTHING_LINKED
    session = chats.talk(ELEVEN, "about dogs")
    assert session in chats.reply(ELEVEN, "/topic")


def test_earlier_conversation_is_continued_in_a_topic(chats: Chats) -> None:
    earlier = chats.talk(ALICE, "about cats")
    chats.send(ALICE, "/topic on")
    assert chats.reply(ALICE, f"/topic {earlier}") == texts.IN_A_TOPIC
    chats.send(ELEVEN, f"/topic {earlier}")
    assert chats.session(ELEVEN) == earlier


def test_conversation_of_another_topic_is_not_continued(chats: Chats) -> None:
    chats.send(ALICE, "/topic on")
    session = chats.talk(ELEVEN, "about dogs")
    bind(chats, ELEVEN, session)
    assert chats.reply(TWELVE, f"/topic {session}") == texts.ELSEWHERE
    assert chats.provider.lanes.get(chats.key(TWELVE)) is None


def test_conversation_of_another_user_is_unknown(chats: Chats) -> None:
    secret = chats.talk(BOB, "a secret of bob")
    chats.send(ALICE, "/topic on")
    assert "secret" not in chats.reply(ELEVEN, f"/topic {secret}")
    assert chats.provider.lanes.get(chats.key(ELEVEN)) is None
