"""A limit means the same in every operation: None or -1 is all, 0 is nothing, smaller numbers are refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from hermes.errors import InvalidValue
from hermes.state.provider import SessionDBProvider
from tests.support.conversations import say, start

MANY = 25
"""More than any limit that holds by default."""

Limited = Callable[[SessionDBProvider, Any], Sequence[object]]

LIMITED: dict[str, Limited] = {
    "get_messages": lambda db, limit: db.get_messages("cron_job_20260101_000000", limit=limit),
    "get_messages before an id": lambda db, limit: db.get_messages(
        "cron_job_20260101_000000", before_id=2**40, limit=limit
    ),
    "list_cron_job_runs": lambda db, limit: db.list_cron_job_runs("job", limit=limit),
    "list_recent_user_messages": lambda db, limit: db.list_recent_user_messages(
        "cron_job_20260101_000000", limit=limit
    ),
    "list_sessions_rich": lambda db, limit: db.list_sessions_rich(limit=limit),
    "search_messages": lambda db, limit: db.search_messages("hello", limit=limit, budget_s=30),
    "search_messages newest": lambda db, limit: db.search_messages("hello", limit=limit, sort="newest", budget_s=30),
    "search_sessions": lambda db, limit: db.search_sessions(limit=limit),
    "search_sessions_by_id": lambda db, limit: db.search_sessions_by_id("cron", limit=limit),
    "top_sessions": lambda db, limit: db.top_sessions(limit=limit),
}


@pytest.fixture
def many(store: SessionDBProvider) -> SessionDBProvider:
    """Create a store with 25 runs of a job, the first of which has 25 messages."""
    for number in range(MANY):
        start(store, f"cron_job_20260101_{number:06}", source="cron")
    say(store, "cron_job_20260101_000000", *["hello"] * MANY)
    return store


@pytest.mark.parametrize("name", LIMITED)
class TestLimit:
    def test_limit_of_none_or_minus_one_is_all(self, many: SessionDBProvider, name: str) -> None:
        assert [len(LIMITED[name](many, limit)) for limit in (None, -1)] == [MANY, MANY]

    def test_limit_of_zero_is_nothing(self, many: SessionDBProvider, name: str) -> None:
        assert list(LIMITED[name](many, 0)) == []

    def test_list_has_at_most_limit_rows(self, many: SessionDBProvider, name: str) -> None:
        assert len(LIMITED[name](many, 3)) == 3

    def test_limit_may_be_larger_than_any_table(self, many: SessionDBProvider, name: str) -> None:
        assert len(LIMITED[name](many, 2**63 - 1)) == MANY

    @pytest.mark.parametrize("limit", [-2, -(2**63), 2**63, "3", 1.5, True, b"3", [3]], ids=repr)
    def test_invalid_limit_is_refused(self, many: SessionDBProvider, name: str, limit: object) -> None:
        with pytest.raises(InvalidValue, match="limit"):
            LIMITED[name](many, limit)
