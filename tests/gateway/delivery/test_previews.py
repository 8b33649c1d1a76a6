"""Previews: one message per answer, edited now and then, completed by the final reply."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hermes.gateway.delivery.drafts import abandon_drafts, stopped_text
from hermes.gateway.delivery.previews import Preview, due_in
from hermes.gateway.platform_config import StreamingConfig
from hermes.state.asynchronous.session_db import AsyncSessionDB
from hermes.state.lanes.types import Intent, OutboxRow
from tests.gateway.delivery.faulty_platform import KEY, FaultyAdapter, ended, opened, reply, run, sending
from tests.support.waiting import LIMIT_S

QUICK = StreamingConfig(enabled=True, edit_interval=0.02, buffer_threshold=5, cursor=" |")
BASE = reply("reply:t1", payload={"text": ""})
LONG = "\n".join(f"{number}{' word' * 10}" for number in range(200))


async def shown(adapter: FaultyAdapter, text: str) -> None:
    """Wait until a message has a text."""
    try:
        async with asyncio.timeout(LIMIT_S):
            while text not in adapter.server.texts.values():
                await asyncio.sleep(0.002)
    except TimeoutError:
        raise AssertionError(f"{text!r} is not shown, but {list(adapter.server.texts.values())}") from None


async def row_of(db: AsyncSessionDB, key: str = "reply:t1") -> OutboxRow:
    row = await db.outbox.find(key)
    assert row is not None
    return row


async def with_receipt(db: AsyncSessionDB) -> OutboxRow:
    """Wait until the platform's id of the preview is stored."""
    async with asyncio.timeout(LIMIT_S):
        while (row := await row_of(db))["receipt"] is None:
            await asyncio.sleep(0.002)
    return row


def final(text: str) -> Intent:
    return replace(BASE, payload={**BASE.payload, "text": text})


class TestTimes:
    @pytest.mark.parametrize(
        ("text", "before", "since_s", "due"),
        [
            ("", "", 9, None),
            ("abc", "", 9, None),
            ("abcd", "", 9, 0),
            ("abcdefgh", "", 0.25, 0.25),
            ("abcdefgh", "", 0.5, 0),
            ("abcdefghij", "abcdefgh", 0.25, 0.75),
            ("abcdefghij", "abcdefgh", 1, 0),
            ("other text", "abcdefgh", 1, 0),
            ("abcdefgh", "abcdefgh", 99, None),
            ("abcdefghijklmn", "abcdefgh", -2, 2.5),
        ],
    )
    def test_text_is_shown_after_the_interval_or_earlier_if_there_is_much_of_it(
        self, text: str, before: str, since_s: float, due: float | None
    ) -> None:
        assert due_in(text, before, since_s, interval_s=1, threshold=5) == due

    def test_edits_are_never_closer_than_half_the_interval(self, tmp_path: Path) -> None:
        async def test() -> None:
            adapter = FaultyAdapter(can_tell=False)
            async with opened(tmp_path) as db:
                preview = Preview(adapter, db.outbox, BASE, replace(QUICK, edit_interval=0.1))
                began = asyncio.get_running_loop().time()
                text = ""
                for _ in range(100):
                    text += "some more "
                    preview.update(text)
                    await asyncio.sleep(0.005)
                await preview.stop()
                seconds = asyncio.get_running_loop().time() - began
                assert 1 <= adapter.server.edits <= seconds / 0.05

        run(test())


class TestFinal:
    def test_the_final_reply_completes_the_preview(self, tmp_path: Path) -> None:
        async def test() -> None:
            adapter = FaultyAdapter(can_tell=False)
            async with opened(tmp_path) as db, sending(db, adapter) as sender:
                preview = Preview(adapter, db.outbox, BASE, QUICK)
                preview.update("Hello wor")
                await shown(adapter, "Hello wor |")
                row = await with_receipt(db)
                assert (row["state"], row["receipt"]) == ("draft", {"message_ids": ["1"], "text": "Hello wor"})
                preview.update("Hello world, how")
                await shown(adapter, "Hello world, how |")
                await preview.stop()
                await db.outbox.intend(final("Hello world!"))
                sender.wake()
                (row,) = await ended(db, "reply:t1")
                assert (row["state"], adapter.server.texts) == ("sent", {"1": "Hello world!"})

        run(test())

    @pytest.mark.parametrize("faults", [[], ["ok", "limited"], ["limited"], ["down", "ok", "down", "limited"]])
    def test_final_after_a_preview_longer_than_4096_characters_is_one_copy(
        self, tmp_path: Path, faults: list[str]
    ) -> None:
        async def test() -> None:
            adapter = FaultyAdapter(can_tell=False)
            async with opened(tmp_path) as db:
                preview = Preview(adapter, db.outbox, BASE, QUICK)
                preview.update(LONG[:3000])
                await shown(adapter, LONG[:3000] + " |")
                preview.update(LONG[:6000])
                async with asyncio.timeout(LIMIT_S):
                    while preview.is_active:
                        await asyncio.sleep(0.002)
                await preview.stop()
                await db.outbox.intend(final(LONG))
                adapter.faults = list(faults)
                # Each attempt is made by another node, which knows only what is stored.
                for number in range(len(faults) + 1):
                    async with sending(db, adapter, node=f"n{number}/1"):
                        await asyncio.sleep(0.05)
                async with sending(db, adapter):
                    (row,) = await ended(db, "reply:t1")
                assert row["state"] == "sent"
                parts = [adapter.server.texts[number] for number in sorted(adapter.server.texts, key=int)]
                assert "\n".join(parts) == LONG
                assert len(parts) == 3
                assert (row["receipt"] or {})["message_ids"] == ["1", "2", "3"]

        run(test())

    def test_a_turn_without_previews_is_sent_as_usual(self, tmp_path: Path) -> None:
        async def test() -> None:
            adapter = FaultyAdapter(can_tell=False)
            async with opened(tmp_path) as db, sending(db, adapter):
                preview = Preview(adapter, db.outbox, BASE, QUICK)
                await preview.stop()
                await db.outbox.intend(final("Hi"))
                await ended(db, "reply:t1")
                assert adapter.server.texts == {"1": "Hi"}

        run(test())

    @pytest.mark.parametrize(
        "changes", [{"enabled": False}, {"transport": "off"}, {"can_edit": False}], ids=["disabled", "off", "no edits"]
    )
    def test_no_preview_is_sent_where_it_is_off(self, tmp_path: Path, changes: dict[str, Any]) -> None:
        async def test() -> None:
            adapter = FaultyAdapter(can_tell=False)
            adapter.can_edit = changes.pop("can_edit", True)
            async with opened(tmp_path) as db:
                preview = Preview(adapter, db.outbox, BASE, replace(QUICK, **changes))
                assert not preview.is_active
                preview.update("Hello world")
                await asyncio.sleep(0.1)
                await preview.stop()
                assert await db.outbox.find("reply:t1") is None
                assert adapter.server.texts == {}

        run(test())

    def test_no_preview_follows_a_reply_that_is_complete(self, tmp_path: Path) -> None:
        async def test() -> None:
            adapter = FaultyAdapter(can_tell=False)
            async with opened(tmp_path) as db:
                await db.outbox.intend(final("Done"))
                preview = Preview(adapter, db.outbox, BASE, QUICK)
                preview.update("Hello world")
                async with asyncio.timeout(LIMIT_S):
                    while preview.is_active:
                        await asyncio.sleep(0.002)
                await preview.stop()
                assert adapter.server.texts == {}

        run(test())


class TestFailures:
    def test_rate_limits_make_previews_rarer(self, tmp_path: Path) -> None:
        async def test() -> None:
            adapter = FaultyAdapter(can_tell=False, faults=["limited", "limited"])
            async with opened(tmp_path) as db:
                preview = Preview(adapter, db.outbox, BASE, QUICK)
                preview.update("Hello world")
                await shown(adapter, "Hello world |")
                assert preview._interval_s == 4 * QUICK.edit_interval
                await preview.stop()

        run(test())

    @pytest.mark.parametrize("faults", [["limited"] * 3, ["refused"], ["crash before"], ["lost before"]])
    def test_a_platform_that_refuses_previews_gets_the_final_reply(self, tmp_path: Path, faults: list[str]) -> None:
        async def test() -> None:
            adapter = FaultyAdapter(can_tell=False, faults=list(faults))
            async with opened(tmp_path) as db, sending(db, adapter):
                preview = Preview(adapter, db.outbox, BASE, QUICK)
                async with asyncio.timeout(LIMIT_S):
                    while preview.is_active:
                        preview.update("Hello world")
                        await asyncio.sleep(0.002)
                await preview.stop()
                await db.outbox.intend(final("Hello world!"))
                await ended(db, "reply:t1")
                assert adapter.server.texts == {"1": "Hello world!"}

        run(test())

    def test_a_preview_whose_result_was_lost_is_found_again(self, tmp_path: Path) -> None:
        async def test() -> None:
            adapter = FaultyAdapter(can_tell=True, faults=["lost after"])
            async with opened(tmp_path) as db, sending(db, adapter):
                preview = Preview(adapter, db.outbox, BASE, QUICK)
                preview.update("Hello world")
                await shown(adapter, "Hello world |")
                preview.update("Hello world, and more")
                await shown(adapter, "Hello world, and more |")
                await preview.stop()
                await db.outbox.intend(final("Hello!"))
                await ended(db, "reply:t1")
                assert adapter.server.texts == {"1": "Hello!"}

        run(test())


class TestStopped:
    @pytest.mark.parametrize(
        ("text", "stopped"), [("Hello wor", "Hello wor\n\n(stopped)"), ("a\n\n", "a\n\n(stopped)"), (" ", "(stopped)")]
    )
    def test_a_stopped_answer_says_so(self, text: str, stopped: str) -> None:
        assert stopped_text(text) == stopped

    @pytest.mark.parametrize("is_stored", [True, False])
    def test_the_preview_of_a_dead_node_is_completed_by_the_next_turn(self, tmp_path: Path, is_stored: bool) -> None:
        async def test() -> None:
            adapter = FaultyAdapter(can_tell=True)
            async with opened(tmp_path) as db, sending(db, adapter):
                preview = Preview(adapter, db.outbox, BASE, QUICK)
                preview.update("Hello wor")
                await shown(adapter, "Hello wor |")
                await preview.stop()  # the node dies: nothing completes the draft
                if not is_stored:
                    await forget_receipt(db)
                other = replace(BASE, key="reply:t2", draft=True)
                await db.outbox.intend(other)
                await db.outbox.intend(replace(BASE, key="reply:x", session_key="another lane", draft=True))
                adapters = {("faulty", ""): adapter}
                assert await abandon_drafts(db.outbox, KEY, adapters, except_key="reply:t2") == 1
                await ended(db, "reply:t1")
                expected = "Hello wor\n\n(stopped)" if is_stored else "(stopped)"
                assert adapter.server.texts == {"1": expected}
                assert [row["key"] for row in await db.outbox.drafts(0.0)] == ["reply:t2", "reply:x"]
                assert await abandon_drafts(db.outbox, KEY, adapters, except_key="reply:t2") == 0

        run(test())

    def test_a_draft_that_no_chat_shows_is_given_up_in_silence(self, tmp_path: Path) -> None:
        async def test() -> None:
            adapter = FaultyAdapter(can_tell=False)
            async with opened(tmp_path) as db, sending(db, adapter) as sender:
                await db.outbox.intend(replace(BASE, draft=True))
                assert await abandon_drafts(db.outbox, KEY) == 0
                assert (await row_of(db))["state"] == "expired"
                assert await db.outbox.dead() == []
                assert await sender.undelivered_notices(KEY) == 0
                assert adapter.server.texts == {}

        run(test())

    def test_a_preview_stops_when_another_node_has_completed_it(self, tmp_path: Path) -> None:
        async def test() -> None:
            adapter = FaultyAdapter(can_tell=False)
            times = [0.0]
            async with opened(tmp_path) as db, sending(db, adapter):
                preview = Preview(adapter, db.outbox, BASE, QUICK, lambda: times[0])
                times[0] = 5
                preview.update("Hello wor")
                await shown(adapter, "Hello wor |")
                await with_receipt(db)
                assert await abandon_drafts(db.outbox, KEY) == 1
                await ended(db, "reply:t1")
                times[0] = 50
                preview.update("Hello world, and more")
                async with asyncio.timeout(LIMIT_S):
                    while preview.is_active:
                        await asyncio.sleep(0.002)
                await preview.stop()

        run(test())


async def forget_receipt(db: AsyncSessionDB) -> None:
    """Undo what was stored after the platform had shown the preview, as if the node had died before."""
    sql = "UPDATE outbox SET receipt = NULL"
    await asyncio.to_thread(lambda: db.store._engine.write(lambda tx: tx.run(sql)))
