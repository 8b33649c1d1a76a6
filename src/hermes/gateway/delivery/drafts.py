"""Previews that stay behind when a turn is stopped or its node dies: the chat sees that they are not continued."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import MappingProxyType

from hermes.gateway.delivery.previews import PREVIEW_TEXT
from hermes.gateway.delivery.receipts import MESSAGE_IDS, delivery_of, receipt_payload
from hermes.gateway.engine.ports import Adapter, NotSent
from hermes.log import warn
from hermes.state.asynchronous.lanes import AsyncOutbox
from hermes.state.lanes.types import Intent, OutboxRow

STOPPED = "(stopped)"
_FIND_S = 10.0
_NO_ADAPTERS: Mapping[tuple[str, str], Adapter] = MappingProxyType({})


def stopped_text(text: str) -> str:
    """Return the final text of an answer that was stopped."""
    return f"{text.rstrip()}\n\n{STOPPED}" if text.strip() else STOPPED


async def abandon_drafts(
    outbox: AsyncOutbox,
    session_key: str,
    adapters: Mapping[tuple[str, str], Adapter] = _NO_ADAPTERS,
    *,
    ttl_s: float | None = None,
    except_key: str | None = None,
) -> int:
    """Complete the previews of a lane whose turns are over with the text so far; return how many.

    The caller has the lane's lease. A draft that no chat shows is given up in silence.
    """
    count = 0
    for row in await outbox.drafts(0.0, key=session_key):
        if row["key"] == except_key:
            continue
        receipt = row["receipt"] or await _find(adapters.get((row["platform"], row["account"])), row)
        if not receipt or not receipt.get(MESSAGE_IDS):
            if await outbox.expire(row["id"]):
                await outbox.delete(row["id"])
            continue
        if row["receipt"] is None:
            await outbox.preview(row["id"], receipt)
        await outbox.intend(_completed(row, str(receipt.get(PREVIEW_TEXT) or ""), ttl_s))
        count += 1
    return count


def _completed(row: OutboxRow, text: str, ttl_s: float | None) -> Intent:
    return Intent(
        key=row["key"],
        payload={**(row["payload"] or {}), "text": stopped_text(text)},
        platform=row["platform"],
        account=row["account"],
        session_key=row["session_key"],
        kind=row["kind"],
        ttl_seconds=ttl_s,
    )


async def _find(adapter: Adapter | None, row: OutboxRow) -> dict[str, object] | None:
    """Ask the platform for a preview whose node died before it stored the platform's id."""
    if adapter is None:
        return None
    try:
        async with asyncio.timeout(_FIND_S):
            receipt = await adapter.find(delivery_of(row))
    except NotSent:
        return None
    except Exception as error:  # noqa: BLE001 - an adapter is foreign code; an unfinished preview does no harm
        warn(__name__, "the platform could not be asked for a preview of %s: %r", row["key"], error)
        return None
    return None if receipt is None else receipt_payload(receipt)
