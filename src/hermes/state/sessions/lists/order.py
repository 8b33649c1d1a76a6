"""The orders of lists of sessions, and the cursors to continue a list."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from hermes.errors import InvalidValue
from hermes.state.rows import Row
from hermes.state.sessions.lineage.links import TIPS


class ListOrder(NamedTuple):
    """The order of a list; the last column is the id, so that no two rows are equal."""

    columns: tuple[str, ...]
    is_ascending: bool = False
    computed: tuple[str, ...] = ()
    """Columns that a session does not have: what to compute from its row `s` and from the row `t` of its tip."""

    @property
    def table(self) -> str:
        """What to read rows from."""
        if not self.computed:
            return "sessions"
        return f"""({TIPS} SELECT s.*, {", ".join(self.computed)} FROM sessions s
            LEFT JOIN tips ON tips.root = s.id LEFT JOIN sessions t ON t.id = tips.tip) AS with_tips"""

    @property
    def sql(self) -> str:
        """The ORDER BY."""
        return ", ".join(self.columns if self.is_ascending else (f"{column} DESC" for column in self.columns))

    def edge_of(self, row: Row) -> tuple[Any, ...]:
        """The values that say where a row stands, to continue a list after it."""
        return tuple(row[column] for column in self.columns)

    def cursor_of(self, row: Row) -> str:
        """The place of a row in a list: the name of the order, the values of its columns, the id."""
        return "|".join([self.columns[0], *(repr(value) for value in self.edge_of(row)[:-1]), row["id"]])

    def parse_cursor(self, cursor: str) -> list[Any]:
        """Return the values of a cursor; raise `InvalidValue` if it is not one of a list in this order."""
        count = len(self.columns)
        try:
            first, *moments, last = cursor.split("|", count)
            if first == self.columns[0] and len(moments) == count - 1 and last:
                return [*(_number(moment) for moment in moments), last]
        except (AttributeError, TypeError, ValueError):
            pass
        raise InvalidValue(
            f"this is not a cursor of this list: {cursor!r}",
            hint="pass the `cursor` of a row from a list in the same order",
        )


BY_START = ListOrder(("started_at", "id"))
BY_ACTIVITY = ListOrder(("active_tick", "chain_active", "started_at", "id"))
BY_OWN_ACTIVITY = ListOrder(("last_active", "started_at", "id"))
BY_MESSAGES = ListOrder(
    ("shown_messages", "started_at", "id"),
    computed=("COALESCE(t.message_count, s.message_count, 0) AS shown_messages",),
)
_SHOWN_TITLE = "CASE WHEN t.id IS NULL THEN s.title ELSE t.title END"
BY_TITLE = ListOrder(
    ("is_untitled", "shown_title", "id"),
    is_ascending=True,
    computed=(
        f"CASE WHEN {_SHOWN_TITLE} IS NULL THEN 1 ELSE 0 END AS is_untitled",
        f"LOWER(COALESCE({_SHOWN_TITLE}, '')) AS shown_title",
    ),
)

INDEX_RANGES = tuple(f"listed = {listed} AND archived = {archived}" for listed in (1, 0) for archived in (0, 1))
"""All sessions, as ranges of the list indexes."""


def _number(text: str) -> int | float:
    """Parse a whole number as one: otherwise the comparison with a column of whole numbers would not use its index."""
    try:
        return int(text)
    except ValueError:
        number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number
