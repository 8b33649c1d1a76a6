"""Deletion receipts as text and as JSON."""

from __future__ import annotations

from typing import Any

from hermes.phrases import plural
from hermes.state.maintenance.receipt import Receipt


def receipt_json(receipt: Receipt) -> dict[str, Any]:
    """Return a receipt for JSON output."""
    found = receipt._asdict()
    return found | {"erased": found.pop("is_erased")}


def format_receipt(receipt: Receipt) -> list[str]:
    """Format a receipt as lines of text."""
    parts = [plural(receipt.sessions, "session")]
    if receipt.delegates:
        parts.append(f"{plural(receipt.delegates, 'subagent session')}")
    parts.append(plural(receipt.messages, "message"))
    if receipt.files:
        parts.append(plural(receipt.files, "file"))
    lines = [f"Deleted {', '.join(parts)}."]
    if receipt.is_erased:
        lines.append("Erased from the database file, its index and its log. Backups are unchanged.")
    return lines
