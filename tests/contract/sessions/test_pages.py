"""The pages of a list contain each row once."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.errors import InvalidValue
from hermes.state.provider import SessionDBProvider
from tests.support.clock import FakeClock
from tests.support.conversations import Row, compress, ids, say, start, start_apart


def all_pages(store: SessionDBProvider, size: int, **filters: Any) -> list[Row]:
    """Return every row of a list, fetched page by page with cursors."""
    rows: list[Row] = []
    after = None
    while page := store.list_sessions_rich(limit=size, after=after, **filters):
        assert len(page) <= size
        rows += [{**row} for row in page]
        after = page[-1]["cursor"]
    return rows


class TestPages:
    @pytest.fixture
    def many(self, store: SessionDBProvider, clock: FakeClock) -> SessionDBProvider:
        """Create 13 conversations; several share their times, some are compressed, some archived."""
        for number in range(13):
            if number % 3 == 0:
                clock.advance(1)
            start(store, f"s{number:02}", source=("cli", "telegram")[number % 2])
            if number % 5 == 0:
                compress(store, clock, f"s{number:02}", f"t{number:02}")
            if number % 4 == 0:
                say(store, f"s{number:02}", "x")
            if number % 6 == 0:
                store.set_session_archived(f"s{number:02}")
        return store

    @pytest.mark.parametrize("size", [1, 5])
    @pytest.mark.parametrize("by_activity", [False, True])
    @pytest.mark.parametrize(
        "filters",
        [{}, {"include_archived": True}, {"include_children": True}, {"source": "cli"}, {"archived_only": True}],
    )
    def test_pages_by_cursor_make_up_the_whole(
        self, many: SessionDBProvider, size: int, by_activity: bool, filters: dict[str, Any]
    ) -> None:
        whole = many.list_sessions_rich(limit=-1, order_by_last_active=by_activity, **filters)
        assert all_pages(many, size, order_by_last_active=by_activity, **filters) == whole

    @pytest.mark.parametrize("by_activity", [False, True])
    def test_pages_by_offset_make_up_the_whole(self, many: SessionDBProvider, by_activity: bool) -> None:
        whole = many.list_sessions_rich(limit=-1, order_by_last_active=by_activity)
        pages = [
            row
            for offset in range(0, 16, 4)
            for row in many.list_sessions_rich(limit=4, offset=offset, order_by_last_active=by_activity)
        ]
        assert pages == whole

    def test_pages_have_twenty_rows_by_default(self, store: SessionDBProvider) -> None:
        start(store, *(f"s{number}" for number in range(21)))
        assert len(store.list_sessions_rich()) == 20

    def test_pages_of_size_zero_are_empty(self, many: SessionDBProvider) -> None:
        assert many.list_sessions_rich(limit=0) == []

    def test_pages_after_the_end_are_empty(self, many: SessionDBProvider) -> None:
        assert many.list_sessions_rich(offset=1000) == []

    def test_pages_neither_repeat_nor_skip_when_sessions_are_added(
        self, many: SessionDBProvider, clock: FakeClock
    ) -> None:
        whole = ids(many.list_sessions_rich(limit=-1))
        first = many.list_sessions_rich(limit=5)
        start_apart(many, clock, "new1", "new2", "new3")
        rest = many.list_sessions_rich(limit=-1, after=first[-1]["cursor"])
        assert ids(first) + ids(rest) == whole

    def test_pages_continue_when_the_row_of_the_cursor_is_deleted(self, many: SessionDBProvider) -> None:
        whole = ids(many.list_sessions_rich(limit=-1))
        first = many.list_sessions_rich(limit=5)
        many.delete_session(first[-1]["id"])
        assert ids(many.list_sessions_rich(limit=-1, after=first[-1]["cursor"])) == whole[5:]

    @pytest.mark.parametrize(
        "cursor", ["", "x", "[]", "[1]", '["a", "b"]', "{}", "null", "started_at|nan|x", "started_at|-inf|x"]
    )
    def test_pages_refuse_an_invalid_cursor(self, many: SessionDBProvider, cursor: str) -> None:
        with pytest.raises(InvalidValue, match="cursor"):
            many.list_sessions_rich(after=cursor)

    def test_pages_refuse_the_cursor_of_another_order(self, many: SessionDBProvider) -> None:
        cursor = many.list_sessions_rich(limit=1)[0]["cursor"]
        with pytest.raises(InvalidValue, match="cursor"):
            many.list_sessions_rich(after=cursor, order_by_last_active=True)
