"""Searches that must be complete."""

from __future__ import annotations

from typing import Any

from hermes.state.provider import SessionDBProvider
from tests.support.conversations import ids

PATIENCE_S = 10.0


def finds(store: SessionDBProvider, query: str, **filters: Any) -> list[int]:
    """The ids of the messages that a query finds, in order."""
    results = store.search_messages(query, budget_s=PATIENCE_S, **filters)
    assert (results.complete, results.degraded) == (True, False)
    return ids(results)
