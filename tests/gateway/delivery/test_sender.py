"""The sender: every intent ends, in order, and no message reaches its chat twice in silence."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes.errors import StoreBusy
from hermes.gateway.delivery.attempt import Failed, SenderSettings, failed
from hermes.gateway.delivery.receipts import PartlySent
from hermes.gateway.delivery.sender import Sender
from hermes.gateway.engine.ports import NotSent
from hermes.state.asynchronous.session_db import AsyncSessionDB
from hermes.state.lanes.delivery.outbox import Outbox
from hermes.state.lanes.types import Intent
from hermes.state.sqlite.engine import SqliteEngine
from tests.gateway.delivery.faulty_platform import (
    FAULTS,
    KEY,
    QUICK,
    FaultyAdapter,
    ended,
    opened,
    reply,
    run,
    sending,
    take_over,
)
from tests.support.waiting import LIMIT_S


class TestDecisions:
    @pytest.mark.parametrize(
        ("failure", "attempts", "outcome"),
        [
            (NotSent("down"), 1, Failed("down", 1.0)),
            (NotSent("down"), 2, Failed("down", 2.0)),
            (NotSent("down"), 4, Failed("down", 8.0)),
            (NotSent("down"), 5, Failed("down", 16.0, is_last=True)),
            (NotSent("slow down", retry_after_s=7), 1, Failed("slow down", 7)),
            (NotSent("slow down", retry_after_s=1e9), 1, Failed("slow down", 3600.0)),
            (NotSent("slow down", retry_after_s=-1), 1, Failed("slow down", 0.0)),
            (NotSent("blocked", is_final=True), 1, Failed("blocked", 1.0, is_last=True)),
            (NotSent(""), 1, Failed("the platform refused it", 1.0)),
            (PartlySent(NotSent("down"), ["7"]), 1, Failed("down", 1.0, finished_ids=["7"])),
        ],
    )
    def test_a_failure_decides_when_the_message_is_sent_again(
        self, failure: NotSent, attempts: int, outcome: Failed
    ) -> None:
        assert failed(failure, attempts, SenderSettings()) == outcome


class TestSending:
    def test_a_message_is_sent_and_its_receipt_is_stored(self, tmp_path: Path) -> None:
        async def test() -> None:
            adapter = FaultyAdapter(can_tell=False)
            async with opened(tmp_path) as db:
                async with sending(db, adapter) as sender:
                    await db.outbox.intend(reply("k1"))
                    sender.wake()
                    (row,) = await ended(db, "k1")
                assert (row["state"], row["receipt"], row["attempts"]) == ("sent", {"message_ids": ["1"]}, 1)
                assert adapter.server.texts == {"1": "text of k1"}
                assert sender.counters == {"sent": 1}

        run(test())

    def test_messages_of_a_lane_are_sent_in_order_and_lanes_at_the_same_time(self, tmp_path: Path) -> None:
        async def test() -> None:
            adapter = FaultyAdapter(can_tell=False, faults=["down", "limited", "down"])
            async with opened(tmp_path) as db:
                keys = [f"{lane}{number}" for number in range(6) for lane in "abcd"]
                for key in keys:
                    await db.outbox.intend(reply(key, lane=f"lane {key[0]}"))
                async with sending(db, adapter):
                    await ended(db, *keys)
                for lane in "abcd":
                    posted = [key for key in adapter.server.posted if key[0] == lane]
                    assert posted == [f"{lane}{number}" for number in range(6)]
                assert adapter.most_running > 1

        run(test())

    def test_at_most_the_configured_number_is_sent_at_the_same_time(self, tmp_path: Path) -> None:
        async def test() -> None:
            adapter = FaultyAdapter(can_tell=False)
            async with opened(tmp_path) as db:
                keys = [f"k{number}" for number in range(40)]
                for key in keys:
                    await db.outbox.intend(reply(key, lane=None))
                async with sending(db, adapter):
                    await ended(db, *keys)
                assert 1 < adapter.most_running <= 16
                assert sorted(adapter.server.posted) == sorted(keys)

        run(test())

    def test_rows_of_platforms_without_an_adapter_are_left_for_other_nodes(self, tmp_path: Path) -> None:
        async def test() -> None:
            one, two = FaultyAdapter(can_tell=False), FaultyAdapter(can_tell=False)
            two.account = "second"
            async with opened(tmp_path) as db:
                await db.outbox.intend(reply("k1", lane="a"))
                await db.outbox.intend(Intent("k2", {"chat_id": "1", "text": "x"}, "faulty", account="second"))
                await db.outbox.intend(Intent("k3", {"chat_id": "1", "text": "x"}, "elsewhere"))
                async with sending(db, one):
                    await ended(db, "k1")
                    await asyncio.sleep(5 * QUICK.poll_s)
                    rows = await db.outbox.pending()
                    assert [(row["key"], row["attempts"]) for row in rows] == [("k2", 0), ("k3", 0)]
                async with sending(db, two, node="n2/1"):
                    await ended(db, "k2")
                assert (one.server.posted, two.server.posted) == (["k1"], ["k2"])

        run(test())

    def test_an_adapter_that_delivers_itself_is_left_alone(self, tmp_path: Path) -> None:
        async def test() -> None:
            adapter = FaultyAdapter(can_tell=False)
            adapter.delivers_itself = True
            async with opened(tmp_path) as db, sending(db, adapter):
                await db.outbox.intend(reply("k1"))
                await asyncio.sleep(5 * QUICK.poll_s)
                row = await db.outbox.find("k1")
                assert row is not None
                assert (row["state"], row["attempts"]) == ("pending", 0)

        run(test())

    def test_an_idle_sender_writes_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        writes: list[int] = []
        write = SqliteEngine.write

        def counted(self: SqliteEngine, *args: Any, **kwargs: Any) -> Any:
            writes.append(1)
            return write(self, *args, **kwargs)

        async def test() -> None:
            quick = SenderSettings(poll_s=0.005, expiry_s=0.01)
            async with opened(tmp_path) as db, sending(db, FaultyAdapter(can_tell=False), settings=quick) as sender:
                await db.outbox.intend(reply("later", delay_seconds=600))
                monkeypatch.setattr(SqliteEngine, "write", counted)
                await asyncio.sleep(0.3)
                sender.wake()
                await asyncio.sleep(0.1)
                assert writes == []

        run(test())

    def test_a_store_that_is_busy_does_not_end_the_sender(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def test() -> None:
            adapter = FaultyAdapter(can_tell=False)
            async with opened(tmp_path) as db:
                failures = {"sent": 3, "next_due": 3}

                def failing(name: str) -> Any:
                    real = getattr(type(db.store.outbox), name)

                    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
                        failures[name] -= 1
                        if failures[name] >= 0:
                            raise StoreBusy("busy")
                        return real(self, *args, **kwargs)

                    return call

                for name in failures:
                    monkeypatch.setattr(type(db.store.outbox), name, failing(name))
                await db.outbox.intend(reply("k1"))
                async with sending(db, adapter):
                    (row,) = await ended(db, "k1")
                assert (row["state"], adapter.server.posted) == ("sent", ["k1"])

        run(test())

    def test_a_system_without_a_free_thread_does_not_end_the_sender(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def test() -> None:
            adapter, failures = FaultyAdapter(can_tell=False), [RuntimeError("can't start new thread")]
            next_due = Outbox.next_due

            def failing(self: Outbox, *args: Any, **kwargs: Any) -> Any:
                if failures:
                    raise failures.pop()
                return next_due(self, *args, **kwargs)

            monkeypatch.setattr(Outbox, "next_due", failing)
            async with opened(tmp_path) as db:
                await db.outbox.intend(reply("k1"))
                async with sending(db, adapter):
                    (row,) = await ended(db, "k1")
                assert (row["state"], adapter.server.posted) == ("sent", ["k1"])

        run(test())


class TestFailures:
    @pytest.mark.parametrize("fault", ["limited", "down"])
    def test_a_message_that_was_not_sent_is_tried_five_times(self, tmp_path: Path, fault: str) -> None:
        async def test() -> None:
            adapter = FaultyAdapter(can_tell=False, faults=[fault] * 4)
            async with opened(tmp_path) as db:
                await db.outbox.intend(reply("k1"))
                async with sending(db, adapter):
                    (row,) = await ended(db, "k1")
                    assert (row["state"], row["attempts"]) == ("sent", 5)
                    adapter.faults = [fault] * 5
                    await db.outbox.intend(reply("k2"))
                    (row,) = await ended(db, "k2")
                    assert (row["state"], row["attempts"]) == ("dead", 5)

        run(test())

    def test_a_refused_message_is_dead_at_once_and_the_chat_gets_a_notice(self, tmp_path: Path) -> None:
        async def test() -> None:
            adapter = FaultyAdapter(can_tell=False, faults=["refused"])
            async with opened(tmp_path) as db, sending(db, adapter):
                await db.outbox.intend(reply("k1"))
                row, _ = await ended(db, "k1", "notice:undelivered:k1")
                assert (row["state"], row["attempts"], row["reason"]) == ("dead", 1, "the chat does not exist")
                (text,) = adapter.server.texts.values()
                assert "could not be delivered: the chat does not exist. It is in the session" in text

        run(test())

    def test_a_notice_that_cannot_be_delivered_makes_no_further_notice(self, tmp_path: Path) -> None:
        async def test() -> None:
            adapter = FaultyAdapter(can_tell=False, faults=["refused", "refused"])
            async with opened(tmp_path) as db, sending(db, adapter):
                await db.outbox.intend(reply("k1"))
                await ended(db, "k1", "notice:undelivered:k1")
                await asyncio.sleep(5 * QUICK.poll_s)
                assert [row["key"] for row in await db.outbox.dead()] == ["k1", "notice:undelivered:k1"]
                assert adapter.server.texts == {}

        run(test())

    @pytest.mark.parametrize("fault", ["lost before", "lost after", "crash before", "crash after"])
    def test_a_lost_result_is_reconciled_where_the_platform_can_tell(self, tmp_path: Path, fault: str) -> None:
        async def test() -> None:
            adapter = FaultyAdapter(can_tell=True, faults=[fault])
            async with opened(tmp_path) as db, sending(db, adapter):
                await db.outbox.intend(reply("k1"))
                (row,) = await ended(db, "k1")
                assert (row["state"], adapter.server.posted) == ("sent", ["k1"])

        run(test())

    @pytest.mark.parametrize("fault", ["lost before", "lost after", "crash before", "crash after", "hang after"])
    def test_a_lost_result_is_labelled_where_the_platform_cannot_tell(self, tmp_path: Path, fault: str) -> None:
        async def test() -> None:
            adapter = FaultyAdapter(can_tell=False, faults=[fault])
            quick = SenderSettings(send_timeout_s=0.2, poll_s=0.02, notice_delay_s=0.0)
            async with opened(tmp_path) as db, sending(db, adapter, settings=quick):
                await db.outbox.intend(reply("k1"))
                row, _ = await ended(db, "k1", "notice:undelivered:k1")
                assert row["state"] == "unknown"
                assert "the platform cannot say whether it arrived" in str(row["reason"])
                assert adapter.server.posted.count("k1") == ("after" in fault)
                assert "may not have arrived" in adapter.server.texts[adapter.server.ids["notice:undelivered:k1"]]

        run(test())

    def test_a_question_that_fails_is_asked_again_when_the_lease_ends(self, tmp_path: Path) -> None:
        async def test() -> None:
            adapter = FaultyAdapter(can_tell=True, faults=["lost after", "find fails"])
            async with opened(tmp_path) as db, sending(db, adapter) as sender:
                await db.outbox.intend(reply("k1"))
                sender.wake()
                async with asyncio.timeout(10):
                    while adapter.faults or sender.in_flight:
                        await asyncio.sleep(0.005)
                row = await db.outbox.find("k1")
                assert row is not None
                assert row["state"] == "sending"
                await take_over(db)
                (row,) = await ended(db, "k1")
                assert (row["state"], adapter.server.posted) == ("sent", ["k1"])

        run(test())


class TestTakeOver:
    @pytest.mark.parametrize("can_tell", [True, False])
    @pytest.mark.parametrize("has_posted", [True, False])
    def test_a_send_that_was_cut_is_reconciled_or_labelled(
        self, tmp_path: Path, can_tell: bool, has_posted: bool
    ) -> None:
        async def test() -> None:
            fault = "hang after" if has_posted else "hang before"
            adapter = FaultyAdapter(can_tell=can_tell, faults=[fault])
            async with opened(tmp_path) as db:
                await db.outbox.intend(reply("k1"))
                async with sending(db, adapter) as sender:
                    await adapter.sending.wait()
                    assert await sender.stop(timeout_s=0.05) == 1
                row = await db.outbox.find("k1")
                assert row is not None
                assert row["state"] == "sending"
                await take_over(db)
                adapter.faults.clear()
                async with sending(db, adapter, node="n2/1"):
                    (row,) = await ended(db, "k1")
                assert row["state"] == ("sent" if can_tell else "unknown")
                assert adapter.server.posted.count("k1") == int(can_tell or has_posted)

        run(test())

    def test_a_late_result_of_a_node_that_lost_its_lease_is_ignored(self, tmp_path: Path) -> None:
        async def test() -> None:
            slow, quick = FaultyAdapter(can_tell=True), FaultyAdapter(can_tell=True)
            quick.server = slow.server
            slow.gate = asyncio.Event()
            async with opened(tmp_path) as db:
                await db.outbox.intend(reply("k1"))
                async with sending(db, slow) as first:
                    await slow.sending.wait()
                    slow.server.ids["k1"] = "seen"  # the platform has it, but the node does not know
                    await take_over(db)
                    async with sending(db, quick, node="n2/1"):
                        (row,) = await ended(db, "k1")
                    assert (row["state"], row["receipt"]) == ("sent", {"message_ids": ["seen"]})
                    slow.gate.set()
                    async with asyncio.timeout(10):
                        while not first.counters["stale"]:
                            await asyncio.sleep(0.005)
                (row,) = await ended(db, "k1")
                assert row["receipt"] == {"message_ids": ["seen"]}

        run(test())

    def test_a_send_does_not_begin_when_the_lease_is_nearly_over(self, tmp_path: Path) -> None:
        async def test() -> None:
            adapter = FaultyAdapter(can_tell=False)
            short = SenderSettings(lease_s=1.0, send_timeout_s=2.0, poll_s=0.02)
            async with opened(tmp_path) as db, sending(db, adapter, settings=short) as sender:
                await db.outbox.intend(reply("k1"))
                sender.wake()
                async with asyncio.timeout(10):
                    while (row := await db.outbox.find("k1")) is None or row["attempts"] == 0:
                        await asyncio.sleep(0.005)
                await asyncio.sleep(0.05)
                assert adapter.order == []

        run(test())

    def test_a_cancelled_sender_gives_rows_back_that_it_has_just_taken(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def test() -> None:
            adapter = FaultyAdapter(can_tell=False)
            async with opened(tmp_path) as db:
                await db.outbox.intend(reply("k1"))
                await cancel_while_taking(db, adapter, monkeypatch)
                row = await db.outbox.find("k1")
                assert row is not None
                assert (row["state"], row["attempts"], adapter.order) == ("pending", 1, [])
                async with sending(db, adapter, node="n2/1"):
                    (row,) = await ended(db, "k1")
                assert (row["state"], adapter.server.posted) == ("sent", ["k1"])

        run(test())

    def test_a_cancelled_sender_leaves_a_row_that_an_earlier_node_may_have_sent(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def test() -> None:
            adapter = FaultyAdapter(can_tell=True, faults=["hang after"])
            async with opened(tmp_path) as db:
                await db.outbox.intend(reply("k1"))
                async with sending(db, adapter) as sender:
                    await adapter.sending.wait()
                    assert await sender.stop(timeout_s=0.05) == 1
                await take_over(db)
                await cancel_while_taking(db, adapter, monkeypatch)
                await take_over(db)
                async with sending(db, adapter, node="n3/1"):
                    (row,) = await ended(db, "k1")
                assert (row["state"], adapter.server.posted) == ("sent", ["k1"])

        run(test())


async def cancel_while_taking(db: AsyncSessionDB, adapter: FaultyAdapter, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cancel a sender when the database has given it messages, before it learns of them."""
    taken, released = threading.Event(), threading.Event()
    take = Outbox.sending

    def held(self: Outbox, *args: Any, **kwargs: Any) -> Any:
        rows = take(self, *args, **kwargs)
        taken.set()
        assert released.wait(LIMIT_S)
        return rows

    with monkeypatch.context() as patched:
        patched.setattr(Outbox, "sending", held)
        sender = Sender(db.outbox, {("faulty", ""): adapter}, "n2/1", QUICK)
        task = asyncio.create_task(sender.run())
        assert await asyncio.to_thread(taken.wait, LIMIT_S)
        task.cancel()
        released.set()
        await asyncio.wait([task])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    faults=st.lists(st.sampled_from(FAULTS), max_size=25),
    count=st.integers(1, 6),
    can_tell=st.booleans(),
    cuts=st.integers(0, 3),
)
def test_every_intent_ends_and_no_message_is_sent_twice_in_silence(
    tmp_path_factory: pytest.TempPathFactory, faults: list[str], count: int, can_tell: bool, cuts: int
) -> None:
    """Nodes also stop in the middle of a send, and others take their messages over."""

    async def test() -> None:
        adapter = FaultyAdapter(can_tell=can_tell, faults=list(faults))
        async with opened(tmp_path_factory.mktemp("store")) as db:
            keys = [f"k{number}" for number in range(count)]
            for number, key in enumerate(keys):
                await db.outbox.intend(reply(key, lane=(KEY, "other", None)[number % 3]))
            for cut in range(cuts):
                async with sending(db, adapter, node=f"n{cut}/1") as sender:
                    with contextlib.suppress(TimeoutError):  # what was cut before may be found without sending it
                        async with asyncio.timeout(0.1):
                            await adapter.sending.wait()
                    adapter.sending.clear()
                    await sender.stop(timeout_s=0.0)
                    await take_over(db)
                    if not await db.outbox.pending():
                        break
            async with sending(db, adapter, node="last/1"):
                while True:
                    await take_over(db)  # a question that failed is repeated when the lease ends
                    try:
                        rows = await ended(db, *keys, limit_s=0.5)
                        break
                    except AssertionError:
                        continue
            states = {row["key"]: row["state"] for row in rows}
            for key, state in states.items():
                copies = adapter.server.posted.count(key)
                assert copies <= 1, (key, state, copies)
                assert state in ("sent", "dead", "unknown")
                assert copies == 1 or state != "sent"
                assert copies == 0 or state != "dead"

    run(test())
