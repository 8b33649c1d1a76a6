"""What was deleted, for a person and for a program."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hermes.phrases import counted
from hermes.state.maintenance.receipt import Receipt


def receipt_json(receipt: Receipt) -> dict[str, Any]:
    """A receipt as JSON tells of it."""
    found = asdict(receipt)
    return found | {"erased": found.pop("is_erased")}


def format_receipt(receipt: Receipt) -> list[str]:
    """A receipt for a person."""
    parts = [counted(receipt.sessions, "session")]
    if receipt.delegates:
        parts.append(f"{counted(receipt.delegates, 'session')} of agents that worked for them")
    parts.append(counted(receipt.messages, "message"))
    if receipt.files:
        parts.append(counted(receipt.files, "file"))
    lines = [f"Deleted {', '.join(parts)}."]
    if receipt.is_erased:
        lines.append("Nothing of it is left in the database file, its index or its log; backups are not touched.")
    return lines
