"""Senders that are killed in the middle, and gateways that were down for long."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.gateway.delivery.undelivered import KEY as NOTICE
from hermes.state.asynchronous.session_db import AsyncSessionDB
from hermes_state import SessionDB
from tests.gateway.delivery.faulty_platform import FaultyAdapter, ended, opened, reply, run, sending, take_over
from tests.gateway.delivery.file_platform import FileAdapter

ROOT = Path(__file__).parents[3]
LANE = "agent:main:faulty:dm:1"


def send_and_be_killed(folder: Path, dies: str) -> None:
    """Run a sender in a process that is killed while it sends."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
    program = [sys.executable, "-m", "tests.gateway.delivery.file_platform", str(folder), dies]
    ended = subprocess.run(program, env=env, cwd=ROOT, timeout=60, check=False)
    assert ended.returncode == -signal.SIGKILL


class TestKillBetweenPlatformSuccessAndReceipt:
    @pytest.mark.parametrize("dies", ["before", "after"])
    @pytest.mark.parametrize("can_tell", [True, False])
    def test_kill_between_platform_success_and_receipt_is_labelled_or_reconciled(
        self, tmp_path: Path, can_tell: bool, dies: str
    ) -> None:
        with SessionDB(tmp_path / "state.db") as db:
            db.outbox.intend(reply("k1"))
        send_and_be_killed(tmp_path, dies)

        async def test() -> None:
            adapter = FileAdapter(tmp_path / "platform.txt", can_tell=can_tell)
            async with opened(tmp_path) as db:
                row = await db.outbox.find("k1")
                assert row is not None
                assert (row["state"], row["holder"]) == ("sending", "killed/1")
                await take_over(db)
                async with sending(db, adapter, node="next/1"):
                    if can_tell:
                        (row,) = await ended(db, "k1")
                        assert (row["state"], adapter.posted) == ("sent", ["k1"])
                        return
                    row, _ = await ended(db, "k1", NOTICE + "k1")
                    assert (row["state"], adapter.posted.count("k1")) == ("unknown", int(dies == "after"))
                    assert adapter.posted[-1] == NOTICE + "k1"

        run(test())


class TestLongDowntime:
    def test_replies_of_a_gateway_that_was_down_for_15_hours_are_not_sent_but_listed(self, tmp_path: Path) -> None:
        async def test() -> None:
            adapter = FaultyAdapter(can_tell=False)
            async with opened(tmp_path) as db:
                for number in range(3):
                    await db.outbox.intend(reply(f"old{number}", ttl_seconds=12 * 3600))
                await db.outbox.intend(reply("gone", lane="elsewhere", ttl_seconds=12 * 3600))
                await pass_time(db, 15 * 3600)
                await db.outbox.intend(reply("new"))
                async with sending(db, adapter) as sender:
                    rows = await ended(db, "old0", "old1", "old2", "gone", "new")
                    assert [row["state"] for row in rows] == ["expired"] * 4 + ["sent"]
                    assert adapter.server.posted == ["new"]
                    assert [row["key"] for row in await db.outbox.dead()] == ["old0", "old1", "old2", "gone"]
                    # The person writes again: the chat is alive, and its expired replies are named once.
                    assert await sender.undelivered_notices(LANE) == 3
                    assert await sender.undelivered_notices(LANE) == 0
                    notices = [f"{NOTICE}old{number}" for number in range(3)]
                    await ended(db, *notices)
                    assert adapter.server.posted == ["new", *notices]
                    text = adapter.server.texts["2"]
                    assert "could not be delivered: its time ran out before it was sent." in text

        run(test())


async def pass_time(db: AsyncSessionDB, seconds: float) -> None:
    """Make all messages of the outbox older."""
    store = db.store
    sql = """UPDATE outbox SET created_at = created_at - :s, due_at = due_at - :s, expires_at = expires_at - :s
             WHERE due_at > 0"""
    await asyncio.to_thread(lambda: store._engine.write(lambda tx: tx.run(sql, s=seconds)))
