"""Notices about undelivered replies."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from hermes.gateway.delivery.undelivered import KEY as NOTICE
from hermes.gateway.delivery.undelivered import Undelivered, undelivered_text
from hermes.state.asynchronous.session_db import AsyncSessionDB
from hermes.state.lanes.types import OutboxRow
from tests.gateway.delivery.faulty_platform import KEY, opened, reply, run

NOW = datetime(2026, 11, 18, 14, 30, tzinfo=UTC).timestamp()


def row_of(**fields: Any) -> OutboxRow:
    row = {"state": "dead", "reason": "the chat is closed", "created_at": NOW - 1500, "kind": "reply"}
    return cast("OutboxRow", {**row, **fields})


@pytest.mark.parametrize(
    ("fields", "older", "text"),
    [
        ({}, 0, "An answer of 14:05 could not be delivered: the chat is closed. It is in the session;"),
        ({"state": "unknown"}, 0, "An answer of 14:05 may not have arrived: the chat is closed."),
        ({"created_at": NOW - 86_400}, 0, "An answer of yesterday, 14:30 could not"),
        ({"created_at": NOW - 10 * 86_400}, 0, "An answer of 2026-11-08, 14:30 could not"),
        ({"reason": None}, 0, "its time ran out before it was sent."),
        ({"reason": "It ended."}, 2, "It ended. It is in the session; ask for it and I will repeat it. The same is"),
        ({}, 1, "The same is true of 1 older answer."),
    ],
)
def test_a_notice_says_when_and_why(fields: dict[str, Any], older: int, text: str) -> None:
    assert text in undelivered_text(row_of(**fields), NOW, UTC, older)


async def expired(db: AsyncSessionDB, *keys: str, **options: Any) -> None:
    for key in keys:
        row = await db.outbox.intend(reply(key, **options))
        assert await db.outbox.expire(row["id"])


def test_each_reply_is_named_once_and_many_are_summed_up(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path) as db:
            undelivered = Undelivered(db.outbox)
            await expired(db, *(f"k{number}" for number in range(8)))
            assert await undelivered.notices(KEY) == 3
            rows = await db.outbox.pending()
            assert [row["key"] for row in rows] == [NOTICE + "k5", NOTICE + "k6", NOTICE + "k7"]
            assert "5 older answers" in (rows[0]["payload"] or {})["text"]
            assert "older" not in (rows[1]["payload"] or {})["text"]
            assert await undelivered.notices(KEY) == 0
            await expired(db, "k9")
            assert await undelivered.notices(KEY) == 1
            assert await undelivered.notices("another lane") == 0

    run(test())


def test_notices_and_deleted_replies_are_not_named(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path) as db:
            await expired(db, "a notice", kind="notice")
            await expired(db, "deleted")
            row = await db.outbox.find("deleted")
            assert row is not None
            await db.outbox.delete(row["id"])
            assert await Undelivered(db.outbox).notices(KEY) == 0
            assert await db.outbox.pending() == []

    run(test())


def test_a_notice_goes_to_the_same_chat_and_thread(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path) as db:
            await expired(db, "k1", chat_id="77", payload={"thread_id": "5", "reply_to": "m1"})
            assert await Undelivered(db.outbox, ttl_s=60).notices(KEY) == 1
            (row,) = await db.outbox.pending()
            payload = row["payload"] or {}
            assert (payload["chat_id"], payload["thread_id"], payload["reply_to"]) == ("77", "5", None)
            assert (row["platform"], row["kind"], row["session_key"]) == ("faulty", "notice", KEY)
            assert row["expires_at"] is not None

    run(test())
