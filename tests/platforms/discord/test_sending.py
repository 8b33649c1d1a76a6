"""Messages to Discord: what is sent, what is refused, and what is in doubt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.gateway.delivery.receipts import PartlySent
from hermes.gateway.engine.ports import Delivery, MaybeSent, NotSent, Receipt
from hermes.platforms.base.adapter import Part
from hermes.platforms.base.media import MediaFile
from hermes.platforms.discord import outgoing
from tests.platforms.discord.bots import Bot, running
from tests.platforms.discord.server import BOT, DiscordServer, user
from tests.support.waiting import wait_until


@pytest.fixture
def bot(server: DiscordServer, tmp_path: Path) -> Iterator[Bot]:
    with running(tmp_path, server) as made:
        yield made


def find(bot: Bot, delivery: Delivery) -> Receipt | None:
    return bot.call(lambda: bot.adapter.find(delivery))


def forget(bot: Bot) -> None:
    """Let the adapter know as little as a new process."""
    bot.adapter._outgoing = outgoing.Outgoing(lambda: bot.adapter._link.client)


def test_message_has_a_nonce_and_alerts_no_user(server: DiscordServer, bot: Bot) -> None:
    asked = server.say("20", "question", is_live=False)
    (sent,) = bot.send("@everyone <@7> hello", "20", reply_to=asked)
    message = server.messages[sent]
    assert message["allowed_mentions"] == {"parse": [], "replied_user": False}
    assert message["message_reference"] == {"message_id": asked, "fail_if_not_exists": False}
    assert 0 < len(message["nonce"]) <= 25
    assert bot.send("@everyone <@7> hello", "20", reply_to=asked) == [sent]
    assert server.texts("20") == ["@everyone <@7> hello"]


@pytest.mark.parametrize(("mode", "quoted"), [("off", 0), ("first", 1), ("all", 3)])
def test_parts_quote_as_configured(server: DiscordServer, tmp_path: Path, mode: str, quoted: int) -> None:
    with running(tmp_path, server, reply_to_mode=mode) as bot:
        asked = server.say("20", "question", is_live=False)
        sent = bot.send("word " * 1000, "20", reply_to=asked)
        assert len(sent) == 3
        assert sum(bool(server.messages[each]["message_reference"]) for each in sent) == quoted


def test_length_is_counted_as_discord_does(server: DiscordServer, bot: Bot) -> None:
    assert len(bot.send("😀" * 2500, "20")) == 3
    assert "".join(server.texts("20")) == "😀" * 2500


def test_texts_that_discord_would_refuse_are_changed(server: DiscordServer, bot: Bot) -> None:
    bot.send("   ", "20", "k1")
    bot.send("half \ud83d of an emoji", "20", "k2")
    assert server.texts("20") == ["\u200b", "half ? of an emoji"]


def test_lost_response_is_found_by_its_nonce(server: DiscordServer, bot: Bot) -> None:
    server.faults.append("lost")
    delivery = Delivery("k1", "20", "hello")
    with pytest.raises(MaybeSent):
        bot.call(lambda: bot.adapter.send(delivery))
    wait_until(lambda: bool(bot.adapter._outgoing._known), "the event of the message")
    receipt = find(bot, delivery)
    assert receipt is not None
    assert [server.messages[each]["content"] for each in receipt.message_ids] == ["hello"]
    assert bot.send("hello", "20") == list(receipt.message_ids)


def test_reply_is_found_in_the_history_by_another_process(server: DiscordServer, bot: Bot) -> None:
    server.echoes = False
    asked = server.say("20", "question", is_live=False)
    text = "a long answer " * 300
    delivery = Delivery("k1", "20", text, reply_to=asked)
    sent = bot.send(text, "20", reply_to=asked)
    server.say("20", "thanks", is_live=False)
    forget(bot)
    receipt = find(bot, delivery)
    assert receipt is not None
    assert list(receipt.message_ids) == sent
    assert len(sent) == 3


def test_missing_parts_of_a_found_reply_are_sent(server: DiscordServer, bot: Bot) -> None:
    server.echoes = False
    asked = server.say("20", "question", is_live=False)
    text = "a long answer " * 300
    sent = bot.send(text, "20", reply_to=asked)
    server.messages.pop(sent[2])
    server._nonces.clear()
    forget(bot)
    delivery = Delivery("k1", "20", text, reply_to=asked)
    with pytest.raises(NotSent):
        find(bot, delivery)
    assert bot.send(text, "20", reply_to=asked)[:2] == sent[:2]
    assert len(server.texts("20")) == 3


def test_reply_that_discord_does_not_have_is_sent_again(server: DiscordServer, bot: Bot) -> None:
    asked = server.say("20", "question", is_live=False)
    server.message("20", "another answer", user(BOT))
    with pytest.raises(NotSent) as failure:
        find(bot, Delivery("k1", "20", "hello", reply_to=asked))
    assert not failure.value.is_final


def test_history_that_cannot_be_read_proves_nothing(server: DiscordServer, bot: Bot) -> None:
    asked = server.say("20", "question", is_live=False)
    server.readable = False
    assert find(bot, Delivery("k1", "20", "hello", reply_to=asked)) is None
    assert find(bot, Delivery("k2", "20", "a notice")) is None


def test_equal_text_of_another_message_is_no_proof(server: DiscordServer, bot: Bot) -> None:
    first = server.say("20", "question", is_live=False)
    server.message("20", "ok", user(BOT), message_reference={"message_id": "5"})
    assert find(bot, Delivery("k1", "20", "ok", reply_to=first)) is None


def test_recent_attempt_may_be_repeated_because_of_its_nonce(server: DiscordServer, bot: Bot) -> None:
    server.faults.append("unsent")
    server.readable = False
    delivery = Delivery("k1", "20", "a notice")
    with pytest.raises(MaybeSent):
        bot.call(lambda: bot.adapter.send(delivery))
    with pytest.raises(NotSent):
        find(bot, delivery)
    assert len(bot.send("a notice", "20")) == 1
    assert server.texts("20") == ["a notice"]


def test_preview_whose_result_was_lost_becomes_the_answer(server: DiscordServer, bot: Bot) -> None:
    server.echoes = False
    asked = server.say("20", "question", is_live=False)
    server.faults.append("lost")
    with pytest.raises(MaybeSent):
        bot.send("the who", "20", reply_to=asked, is_final=False)
    forget(bot)  # another process sends the whole answer, with the same nonce
    assert len(bot.send("the whole answer", "20", reply_to=asked)) == 1
    assert server.texts("20") == ["the whole answer"]


def test_preview_of_a_process_that_died_becomes_the_answer_long_afterwards(server: DiscordServer, bot: Bot) -> None:
    server.echoes = False
    asked = server.say("20", "question", is_live=False)
    server.message("20", "Working on it", user(BOT), message_reference={"message_id": asked})
    bot.send("the who \u2589", "20", reply_to=asked, is_final=False)
    server._nonces.clear()
    forget(bot)
    with pytest.raises(NotSent):
        find(bot, Delivery("k1", "20", "the whole answer", reply_to=asked))
    bot.send("the whole answer", "20", reply_to=asked)
    assert server.texts("20") == ["Working on it", "the whole answer"]


def test_edit_whose_result_was_lost_is_found_or_repeated(server: DiscordServer, bot: Bot) -> None:
    server.echoes = False
    asked = server.say("20", "question", is_live=False)
    shown = bot.send("the who", "20", reply_to=asked, is_final=False)
    final = Delivery("k1", "20", "the whole answer", reply_to=asked, preview={"message_ids": shown})
    with pytest.raises(NotSent):
        find(bot, final)
    server.messages[shown[0]]["content"] = "the whole answer"
    forget(bot)
    receipt = find(bot, final)
    assert receipt is not None
    assert list(receipt.message_ids) == shown


def test_short_rate_limit_is_waited_for(server: DiscordServer, bot: Bot) -> None:
    server.faults.append("short_limit")
    bot.send("hello", "20")
    assert server.texts("20") == ["hello"]


def test_rate_limit_that_is_too_long_is_passed_on(server: DiscordServer, bot: Bot) -> None:
    server.faults.append("rate_limit")
    with pytest.raises(NotSent) as failure:
        bot.send("hello", "20")
    assert (failure.value.retry_after_s, failure.value.is_final) == (40.0, False)


def test_wait_within_the_library_is_bounded_and_nothing_is_in_doubt(server: DiscordServer, bot: Bot) -> None:
    server.short_limit_s = 20.0
    server.faults.append("short_limit")
    http = bot.adapter._link.client.http
    body = {"content": "hello", "allowed_mentions": {}}
    with pytest.raises(NotSent, match="pause") as failure:
        bot.call(lambda: http.call("POST", "/channels/{channel_id}/messages", channel_id=20, json=body, limit_s=0.3))
    assert 15 < (failure.value.retry_after_s or 0) <= 20


def test_unreachable_server_has_surely_nothing(server: DiscordServer, tmp_path: Path) -> None:
    with running(tmp_path, server) as bot:
        port, http = server.port, bot.adapter._link.client.http
        http._base_url = http._base_url.replace(str(port), "1")
        with pytest.raises(NotSent, match="cannot be reached"):
            bot.send("hello", "20")


@pytest.mark.parametrize(
    ("chat_id", "reason"),
    [("999", "does not exist any more"), ("../users", "is not an id"), ("20", "does not accept messages")],
)
def test_message_that_cannot_be_sent_is_given_up(server: DiscordServer, bot: Bot, chat_id: str, reason: str) -> None:
    server.faults.append("error")
    with pytest.raises(NotSent, match=reason) as failure:
        bot.send("hello", chat_id)
    assert failure.value.is_final


def test_later_part_that_fails_keeps_the_first_ones(server: DiscordServer, bot: Bot) -> None:
    text = "word " * 700
    server.faults += ["none", "rate_limit"]
    with pytest.raises(PartlySent) as failure:
        bot.send(text, "20")
    bot.send(text, "20", preview={"finished_ids": failure.value.finished_ids})
    assert len(server.texts("20")) == 2


def test_edit_delete_and_typing_reach_the_thread(server: DiscordServer, bot: Bot) -> None:
    server.add_thread("21", "Plans", "20")
    delivery = Delivery("k1", "20", "draft", thread_id="21")
    (sent,) = bot.send("draft", "20", thread_id="21")
    bot.call(lambda: bot.adapter.edit(sent, Part(delivery, "final")))
    bot.call(lambda: bot.adapter.typing("20", "21"))
    assert (server.texts("21"), server.typing) == (["final"], ["21"])
    bot.call(lambda: bot.adapter.delete(sent, delivery))
    assert server.texts("21") == []


def test_answer_whose_preview_was_deleted_is_a_new_message(server: DiscordServer, bot: Bot) -> None:
    (shown,) = bot.send("the begin", "20", is_final=False)
    server.messages[shown]["channel_id"] = "deleted"
    for _ in range(2):
        (sent,) = bot.send("the beginning and the end", "20", preview={"message_ids": [shown]})
        assert sent != shown
        assert server.texts("20") == ["the beginning and the end"]


def test_file_is_sent_once(server: DiscordServer, bot: Bot, tmp_path: Path) -> None:
    path = tmp_path / "b.png"
    path.write_bytes(b"picture")
    part = Part(Delivery("k1", "20", ""), "")
    first = bot.call(lambda: bot.adapter.post_file(part, MediaFile(path, "image", "look")))
    assert bot.call(lambda: bot.adapter.post_file(part, MediaFile(path, "image", "look"))) == first
    assert server.messages[first]["attachments"] == [{"filename": "b.png"}]
    assert server.texts("20") == ["look"]
    with path.open("wb") as file:
        file.truncate(30 * 1024 * 1024)
    with pytest.raises(NotSent, match="larger than 20 MB"):
        bot.call(lambda: bot.adapter.post_file(part, MediaFile(path)))


def test_nothing_is_sent_while_not_connected(server: DiscordServer, tmp_path: Path) -> None:
    bot = Bot(tmp_path, server)
    try:
        with pytest.raises(NotSent, match="not connected") as failure:
            bot.send("hello", "20")
        assert not failure.value.is_final
    finally:
        bot.stop()
