"""Count the tools that a session has called."""

from __future__ import annotations

from collections import Counter

from hermes.state.engine import Transaction


def count_tools(tx: Transaction, session_id: str, tools: Counter[str]) -> None:
    """Add to a session's tool counts; negative numbers subtract."""
    for name, calls in tools.items():
        tx.send(
            tx.dialect.upsert("session_tools", ["session_id", "tool_name"], [], add=["calls"]),
            session_id=session_id,
            tool_name=name,
            calls=calls,
        )
    if any(calls < 0 for calls in tools.values()):
        delete = tx.dialect.delete_where_in("session_tools", "session_id", ["id"])
        tx.run(f"{delete} AND calls <= 0", id=session_id)
