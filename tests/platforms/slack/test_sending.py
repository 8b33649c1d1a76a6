"""Messages to Slack: what it has afterwards is known or found out, and nothing is sent twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from hermes.gateway.engine.ports import Delivery, MaybeSent, NotSent
from hermes.platforms.base import Part
from hermes.platforms.base.media import MAX_FILE_BYTES, MediaFile
from hermes.platforms.slack.adapter import SlackAdapter
from tests.platforms.slack.adapters import connected
from tests.platforms.slack.server import CHANNEL, DIRECT, TOKEN, SlackServer

LONG = "\n".join(["```python", *(f"line {number} of a & b" for number in range(600)), "```"])


def run(tmp_path: Path, server: SlackServer, test: Callable[[SlackAdapter], Awaitable[None]], **options: Any) -> None:
    async def with_adapter() -> None:
        async with connected(tmp_path, server, **options) as (adapter, _):
            await test(adapter)

    asyncio.run(with_adapter())


@pytest.mark.parametrize(
    ("failure", "error", "is_final", "pause_s"),
    [
        ("pause", NotSent, False, 7.0),
        ("ratelimited", NotSent, False, 30.0),
        ("message_limit_exceeded", NotSent, False, 30.0),
        ("channel_not_found", NotSent, True, None),
        ("is_archived", NotSent, True, None),
        ("msg_too_long", NotSent, True, None),
        ("invalid_auth", NotSent, False, None),
        ("missing_scope", NotSent, False, None),
        ("request_timeout", NotSent, False, None),
        ("service_unavailable", NotSent, False, None),
        ("internal_error", MaybeSent, None, None),
        ("fatal_error", MaybeSent, None, None),
        (503, NotSent, False, None),
        (500, MaybeSent, None, None),
        (502, MaybeSent, None, None),
        (404, NotSent, True, None),
        ("html", MaybeSent, None, None),
        ("lost", MaybeSent, None, None),
        ({"ok": True}, MaybeSent, None, None),
        ([1], MaybeSent, None, None),
    ],
)
def test_failure_says_what_slack_has(
    tmp_path: Path,
    server: SlackServer,
    failure: Any,
    error: type[Exception],
    is_final: bool | None,
    pause_s: float | None,
) -> None:
    async def test(adapter: SlackAdapter) -> None:
        server.fail("chat.postMessage", failure)
        with pytest.raises(error) as caught:
            await adapter.send(Delivery("k1", DIRECT, "hello"))
        assert len(server.called("chat.postMessage")) == 1
        assert TOKEN not in repr(caught.value)
        if isinstance(caught.value, NotSent):
            assert (caught.value.is_final, caught.value.retry_after_s) == (is_final, pause_s)

    run(tmp_path, server, test)


def test_silence_after_a_message_leaves_it_in_doubt_and_slack_is_asked(tmp_path: Path, server: SlackServer) -> None:
    async def test(adapter: SlackAdapter) -> None:
        server.fail("chat.postMessage", "silent")
        delivery = Delivery("k1", DIRECT, "hello")
        with pytest.raises(MaybeSent):
            await adapter.send(delivery)
        receipt = await adapter.find(delivery)
        assert receipt is not None
        assert list(receipt.message_ids) == [server.of_bot()[0]["ts"]]

    run(tmp_path, server, test, timeout_s=0.3)


def test_unreachable_server_has_no_message(tmp_path: Path, server: SlackServer) -> None:
    async def test(adapter: SlackAdapter) -> None:
        await asyncio.to_thread(server.stop)
        with pytest.raises(NotSent) as caught:
            await adapter.send(Delivery("k1", DIRECT, "hello"))
        assert not caught.value.is_final

    run(tmp_path, server, test)


def test_mark_in_a_message_of_another_author_does_not_count(tmp_path: Path, server: SlackServer) -> None:
    async def test(adapter: SlackAdapter) -> None:
        delivery = Delivery("k1", DIRECT, "hello")
        await adapter.send(delivery)
        server.of_bot()[0]["user"] = "UMALLORY"
        with pytest.raises(NotSent):
            await adapter.find(delivery)

    run(tmp_path, server, test)


def test_message_of_which_nothing_arrived_is_not_found(tmp_path: Path, server: SlackServer) -> None:
    async def test(adapter: SlackAdapter) -> None:
        server.say("a question")
        with pytest.raises(NotSent):
            await adapter.find(Delivery("k1", DIRECT, "hello"))

    run(tmp_path, server, test)


@pytest.mark.parametrize("thread", [None, "1690000000.000001"])
def test_only_the_missing_parts_are_sent_after_a_lost_response(
    tmp_path: Path, server: SlackServer, thread: str | None
) -> None:
    server.page_size = 2

    async def test(adapter: SlackAdapter) -> None:
        delivery = Delivery("k1", CHANNEL, LONG, thread_id=thread)
        count = len((await adapter.send(Delivery("k0", CHANNEL, LONG, thread_id=thread))).message_ids)
        server.fail("chat.postMessage", None, None, "lost")
        with pytest.raises(MaybeSent):
            await adapter.send(delivery)
        with pytest.raises(NotSent):
            await adapter.find(delivery)
        receipt = await adapter.send(delivery)
        assert len(receipt.message_ids) == count == 4
        assert [each["ts"] for each in server.of_bot(CHANNEL)][count:] == list(receipt.message_ids)
        again = await adapter.find(delivery)
        assert again is not None
        assert again.message_ids == receipt.message_ids

    run(tmp_path, server, test)


def test_preview_of_a_lost_answer_is_completed_and_not_repeated(tmp_path: Path, server: SlackServer) -> None:
    async def test(adapter: SlackAdapter) -> None:
        server.fail("chat.postMessage", "lost")
        with pytest.raises(MaybeSent):
            await adapter.send(Delivery("k1", DIRECT, "the who |", is_final=False))
        final = Delivery("k1", DIRECT, "the whole answer")
        with pytest.raises(NotSent):  # Slack has it, but with another text
            await adapter.find(final)
        await adapter.send(final)
        assert server.shown() == ["the whole answer"]
        assert await adapter.find(final) is not None

    run(tmp_path, server, test)


@pytest.mark.parametrize("error", ["missing_scope", "not_in_channel", "channel_not_found"])
def test_bot_that_may_not_read_cannot_tell(tmp_path: Path, server: SlackServer, error: str) -> None:
    async def test(adapter: SlackAdapter) -> None:
        server.fail("conversations.history", error)
        assert await adapter.find(Delivery("k1", DIRECT, "hello")) is None

    run(tmp_path, server, test)


@pytest.mark.parametrize("failure", ["pause", 500, "internal_error", "invalid_auth"])
def test_question_that_fails_is_not_the_answer_that_nothing_arrived(
    tmp_path: Path, server: SlackServer, failure: Any
) -> None:
    async def test(adapter: SlackAdapter) -> None:
        server.fail("conversations.history", failure)
        with pytest.raises(MaybeSent):
            await adapter.find(Delivery("k1", DIRECT, "hello"))

    run(tmp_path, server, test)


def test_long_history_leaves_it_open(tmp_path: Path, server: SlackServer) -> None:
    server.page_size = 2
    for _ in range(20):
        server.say("noise", CHANNEL)

    async def test(adapter: SlackAdapter) -> None:
        assert await adapter.find(Delivery("k1", CHANNEL, "hello")) is None
        last = server.messages[CHANNEL][-3]["ts"]
        with pytest.raises(NotSent):  # only what came after the question matters
            await adapter.find(Delivery("k1", CHANNEL, "hello", reply_to=last))

    run(tmp_path, server, test)


def test_answer_whose_preview_was_deleted_is_a_new_message(tmp_path: Path, server: SlackServer) -> None:
    async def test(adapter: SlackAdapter) -> None:
        first = await adapter.send(Delivery("k1", DIRECT, "the who |", is_final=False))
        await adapter.delete(first.message_ids[0], Delivery("k1", DIRECT, ""))
        assert server.shown() == []
        preview = {"message_ids": list(first.message_ids)}
        last = await adapter.send(Delivery("k1", DIRECT, "the whole answer", preview=preview))
        assert server.shown() == ["the whole answer"]
        assert list(last.message_ids) == [server.of_bot()[0]["ts"]]
        # Slack may take a message with the same mark for the deleted one.
        assert len({each["client_msg_id"] for each in server.called("chat.postMessage")}) == 2

    run(tmp_path, server, test)


def test_messages_carry_what_slack_needs_to_know(tmp_path: Path, server: SlackServer) -> None:
    async def test(adapter: SlackAdapter) -> None:
        sent = await adapter.send(Delivery("k1", CHANNEL, "**hi** <!channel> @here", thread_id="1690000000.000001"))
        await adapter.edit(sent.message_ids[0], Part(Delivery("k1", CHANNEL, "x"), "changed <!here>"))
        (posted,), (updated,) = server.called("chat.postMessage"), server.called("chat.update")
        assert posted["text"] == "*hi* &lt;!channel&gt; @here"
        assert posted["thread_ts"] == "1690000000.000001"
        assert updated["text"] == "changed &lt;!here&gt;"
        for each in (posted, updated):
            assert each["parse"] == "none"
            assert each["link_names"] in (False, "0", 0)

    run(tmp_path, server, test)


def test_file_is_sent_into_the_thread_with_its_caption(tmp_path: Path, server: SlackServer) -> None:
    picture = tmp_path / "b.png"
    picture.write_bytes(b"picture")

    async def test(adapter: SlackAdapter) -> None:
        part = Part(Delivery("k1", CHANNEL, "", thread_id="1690000000.000001"), "")
        assert await adapter.post_file(part, MediaFile(picture, "image", "**look** <!here>")) == "F1"
        (upload,) = server.uploads
        assert (upload["channel_id"], upload["thread_ts"]) == (CHANNEL, "1690000000.000001")
        assert upload["initial_comment"] == "*look* &lt;!here&gt;"
        assert server.files["b.png"][1] == b"picture"

    run(tmp_path, server, test)


def test_file_that_cannot_be_sent_is_refused(tmp_path: Path, server: SlackServer) -> None:
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)

    async def test(adapter: SlackAdapter) -> None:
        part = Part(Delivery("k1", DIRECT, ""), "")
        for path in (large, tmp_path / "missing", tmp_path):
            with pytest.raises(NotSent) as caught:
                await adapter.post_file(part, MediaFile(path))
            assert caught.value.is_final

    run(tmp_path, server, test)


def test_file_is_in_doubt_only_after_the_request_that_shows_it(tmp_path: Path, server: SlackServer) -> None:
    file = MediaFile(tmp_path / "small")
    file.path.write_bytes(b"1")

    async def test(adapter: SlackAdapter) -> None:
        part = Part(Delivery("k1", DIRECT, ""), "")
        for method, failure in (
            ("files.getUploadURLExternal", "lost"),
            ("files.getUploadURLExternal", {"ok": True, "upload_url": "nowhere"}),
            ("files.getUploadURLExternal", {"ok": True, "upload_url": f"{server.origin}/missing"}),
        ):
            server.fail(method, failure)
            with pytest.raises(NotSent) as caught:
                await adapter.post_file(part, file)
            assert not caught.value.is_final
        server.fail("files.completeUploadExternal", "lost")
        with pytest.raises(MaybeSent):
            await adapter.post_file(part, file)

    run(tmp_path, server, test)


def test_adapter_that_is_stopped_sends_nothing(tmp_path: Path, server: SlackServer) -> None:
    async def test(adapter: SlackAdapter) -> None:
        await adapter.stop()
        with pytest.raises(NotSent):
            await adapter.send(Delivery("k1", DIRECT, "hello"))

    run(tmp_path, server, test)
