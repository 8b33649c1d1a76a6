"""Rows of the outbox as deliveries, and what platforms return as JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from hermes.gateway.engine.ports import Delivery, NotSent, Receipt
from hermes.state.lanes.types import OutboxRow

MESSAGE_IDS = "message_ids"
"""The messages that a receipt is about: those of a preview, or all parts of a reply."""
FINISHED_IDS = "finished_ids"
"""The parts of a reply that the platform has in their final form; a later attempt continues after them."""


class PartlySent(NotSent):
    """The platform has the first parts of a message; the next attempt sends the others."""

    def __init__(self, failure: NotSent, finished_ids: list[str]) -> None:
        super().__init__(failure.reason, retry_after_s=failure.retry_after_s, is_final=failure.is_final)
        self.finished_ids = finished_ids


def receipt_payload(receipt: Receipt) -> dict[str, Any]:
    """Return a receipt as it is stored."""
    data: dict[str, Any] = {MESSAGE_IDS: list(receipt.message_ids)}
    return {**data, "extra": dict(receipt.extra)} if receipt.extra else data


def partial_payload(stored: Mapping[str, Any] | None, finished_ids: list[str]) -> dict[str, Any]:
    """Return the receipt to store for a message of which the platform has some parts."""
    return {MESSAGE_IDS: [], **(stored or {}), FINISHED_IDS: finished_ids}


def delivery_of(row: OutboxRow) -> Delivery:
    """Return the message of a row as an adapter sends it."""
    return delivery_from(row["key"], row["kind"], row["payload"] or {}, row["receipt"])


def delivery_from(
    key: str,
    kind: str,
    payload: Mapping[str, Any],
    receipt: Mapping[str, Any] | None = None,
    *,
    is_final: bool = True,
) -> Delivery:
    """Return a message from the payload of an intent; values of a wrong type are left out."""
    known: Literal["reply", "notice"] = "notice" if kind == "notice" else "reply"
    answers = payload.get("answers")
    return Delivery(
        key=key,
        chat_id=_text(payload.get("chat_id")) or "",
        text=_text(payload.get("text")) or "",
        kind=known,
        thread_id=_text(payload.get("thread_id")),
        reply_to=_text(payload.get("reply_to")),
        answers=tuple(str(each) for each in answers) if isinstance(answers, list | tuple) else (),
        chat_type=_text(payload.get("chat_type")) or "dm",
        preview=receipt,
        is_final=is_final,
    )


def _text(value: object) -> str | None:
    if value is None or isinstance(value, bool | dict | list):
        return None
    return str(value)
