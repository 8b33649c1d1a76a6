"""Lists of sessions: pages along an index, each conversation once."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from hermes.errors import InvalidValue
from hermes.state.engine import Reading
from hermes.state.filters import parse_names
from hermes.state.operations import (
    LIKE_ESCAPES,
    UNLIMITED,
    Operations,
    chunks,
    fetch_sessions,
    hide_foreign_links,
    owner_condition,
    placeholders,
    row_limit,
    row_offset,
)
from hermes.state.owner import EVERYBODY, Asker, OwnerName
from hermes.state.rows import AnyRow, Row, optional_text, parse_timestamp, require_integer, session_row
from hermes.state.sessions.records import activity_tick

if TYPE_CHECKING:
    from hermes.state.row_types import FoundSession, ListedSession, Moment

BY_START = ("started_at", "id")
BY_ACTIVITY = ("active_tick", "chain_active", "started_at", "id")
BY_OWN_ACTIVITY = ("last_active", "started_at", "id")

ID_EQUALS, ID_STARTS_WITH, ID_CONTAINS = "{}", "{}%", "%{}%"

INDEX_RANGES = tuple(f"listed = {listed} AND archived = {archived}" for listed in (1, 0) for archived in (0, 1))
"""All sessions, in stretches of the list indexes."""

TIP_FIELDS = (
    "id",
    "ended_at",
    "end_reason",
    "message_count",
    "tool_call_count",
    "title",
    "last_active",
    "preview",
    "model",
    "system_prompt",
    "cwd",
)
_LONGER_JOB = re.compile(r".+_\d{8}_\d{6}")


class Filter:
    """Conditions on sessions, and the values bound in them."""

    def __init__(self) -> None:
        self.conditions: list[str] = []
        self.values: Row = {}
        self.asker: Asker = EVERYBODY

    def add(self, condition: str, **values: Any) -> None:
        """Require one more thing."""
        self.conditions.append(condition)
        self.values.update(values)

    def require_owner(self, asker: Asker) -> None:
        """Require that sessions are the asker's."""
        self.asker = asker
        self.values["whose"] = asker.stored

    def where(self) -> str:
        """The conditions as SQL."""
        return f"{' AND '.join(self.conditions) or '1 = 1'} {owner_condition(self.asker)}"


class Listing(Operations):
    """Operations that list and count sessions."""

    def list_sessions_rich(
        self,
        source: str | None = None,
        exclude_sources: Sequence[str] | None = None,
        limit: int | None = 20,
        offset: int = 0,
        include_children: bool = False,
        min_message_count: int = 0,
        project_compression_tips: bool = True,
        order_by_last_active: bool = False,
        include_archived: bool = False,
        archived_only: bool = False,
        id_query: str | None = None,
        *,
        owner: OwnerName = None,
        after: str | None = None,
        active_since: Moment | None = None,
    ) -> list[ListedSession]:
        """Conversations with preview and last activity, newest first.

        A compressed conversation is one row, shown as its newest session. `after` takes the `cursor` of a row and goes
        on behind it. `active_since` leaves out those in which nothing was said since a moment.
        """
        order = BY_ACTIVITY if order_by_last_active else BY_START
        wanted = _filter(source, exclude_sources, min_message_count, self._asker_for(owner), active_since)
        if (optional_text(id_query, "id_query") or "").strip():
            _add_id_query(wanted, str(id_query).strip().lower(), ID_CONTAINS)
        ranges = dict.fromkeys(_index_ranges(include_children, include_archived, archived_only), order)

        as_tips = project_compression_tips and not include_children
        return self._engine.read(
            lambda tx: _page(tx, wanted, ranges, order, limit, offset=offset, after=after, as_tips=as_tips)
        )

    def search_sessions(
        self, source: str | None = None, limit: int | None = 20, offset: int = 0, *, owner: OwnerName = None
    ) -> list[FoundSession]:
        """All sessions, children and archived ones too, the most recently active first."""
        wanted = _filter(source, None, 0, self._asker_for(owner))
        # A session's own activity is that of its chain, unless it was continued; those have an index of their own.
        ranges: dict[str, Sequence[str]] = {
            f"{index_range} AND chain_active = last_active": BY_ACTIVITY for index_range in INDEX_RANGES
        }
        ranges["chain_active > last_active"] = BY_OWN_ACTIVITY
        return self._engine.read(
            lambda tx: cast("list[FoundSession]", _walk(tx, wanted, ranges, BY_OWN_ACTIVITY, limit, offset, None))
        )

    def search_sessions_by_id(
        self, query: str, limit: int | None = 20, include_archived: bool = True, *, owner: OwnerName = None
    ) -> list[ListedSession]:
        """Conversations whose id contains a text: equal ids first, then those that begin with it, then the others."""
        needle = (optional_text(query, "query") or "").strip().lower()
        size, asker = row_limit(limit), self._asker_for(owner)
        found: dict[str, ListedSession] = {}
        for form in (ID_EQUALS, ID_STARTS_WITH, ID_CONTAINS):
            if not needle or len(found) >= size:
                break
            wanted = _filter(None, None, 0, asker)
            _add_id_query(wanted, needle, form)
            ranges = dict.fromkeys(_index_ranges(False, include_archived, False), BY_ACTIVITY)
            rows = self._engine.read(partial(_page, wanted=wanted, ranges=ranges, order=BY_ACTIVITY, limit=limit))
            for row in rows:
                found.setdefault(row["id"], row)
        return list(found.values())[:size]

    def list_cron_job_runs(
        self, job_id: str, limit: int | None = 20, offset: int = 0, *, owner: OwnerName = None
    ) -> list[FoundSession]:
        """The runs of a scheduled job, newest first."""
        prefix = f"cron_{job_id}_"
        first, size = row_offset(offset), row_limit(limit)
        asker = self._asker_for(owner)

        def runs(tx: Reading) -> list[FoundSession]:
            found = tx.rows(
                f"""SELECT id, started_at FROM sessions
                    WHERE source = 'cron' AND {tx.dialect.starts_with("id", "prefix")} {owner_condition(asker)}""",
                prefix=prefix,
                whose=asker.stored,
            )
            # `cron_a_b_<stamp>` is a run of job `a_b`, not of job `a`.
            own = [(started, run) for run, started in found if not _LONGER_JOB.match(run[len(prefix) :])]
            chosen = [run for _, run in sorted(own, reverse=True)][first : first + size]
            rows = fetch_sessions(tx, chosen)
            sessions = hide_foreign_links(tx, [_rich({**rows[run]}) for run in chosen], asker)
            return cast("list[FoundSession]", sessions)

        return self._engine.read(runs)

    def session_count(
        self,
        source: str | None = None,
        min_message_count: int = 0,
        include_archived: bool = False,
        archived_only: bool = False,
        exclude_children: bool = False,
        exclude_sources: Sequence[str] | None = None,
        *,
        owner: OwnerName = None,
        active_since: Moment | None = None,
    ) -> int:
        """How many sessions there are; with `exclude_children` as many as the list has rows."""
        wanted = _filter(source, exclude_sources, min_message_count, self._asker_for(owner), active_since)
        ranges = _index_ranges(not exclude_children, include_archived, archived_only)
        return self._engine.read(
            lambda tx: sum(
                int(
                    tx.value(f"SELECT count(*) FROM sessions WHERE {index_range} AND {wanted.where()}", **wanted.values)
                )
                for index_range in ranges
            )
        )

    def count_by_source(self, *, owner: OwnerName = None) -> dict[str, int]:
        """How many sessions came from where, the largest first."""
        asker = self._asker_for(owner)
        counting = f"SELECT source, count(*) FROM sessions WHERE 1 = 1 {owner_condition(asker)} GROUP BY source"
        rows = self._engine.read(lambda tx: tx.rows(counting, whose=asker.stored))
        return dict(sorted(rows, key=lambda row: (-row[1], row[0])))


def _filter(
    source: str | None,
    exclude_sources: Sequence[str] | None,
    min_message_count: int,
    asker: Asker,
    active_since: Moment | None = None,
) -> Filter:
    wanted = Filter()
    if source is not None:
        wanted.add("source = :source", source=source)
    if isinstance(exclude_sources, str):
        raise InvalidValue("exclude_sources must be a list of sources")
    if excluded := parse_names(exclude_sources, "exclude_sources"):
        listed, values = placeholders("excluded", excluded)
        wanted.add(f"source NOT IN ({listed})", **values)
    if (least := require_integer(min_message_count, "min_message_count")) > 0:
        wanted.add("message_count >= :min_messages", min_messages=least)
    wanted.require_owner(asker)
    if active_since is not None:
        since = parse_timestamp(active_since, 0.0)
        # The tick is what the list index begins with.
        wanted.add(
            "active_tick >= :since_tick AND chain_active >= :since", since=since, since_tick=activity_tick(since)
        )
    return wanted


def _add_id_query(wanted: Filter, needle: str, form: str) -> None:
    pattern = form.format(needle.translate(LIKE_ESCAPES))
    wanted.add(
        f"""(LOWER(id) LIKE :id_query ESCAPE '!' OR id IN (
                SELECT c.chain_root FROM sessions c
                WHERE LOWER(c.id) LIKE :id_query ESCAPE '!' {owner_condition(wanted.asker, "c.owner")}))""",
        id_query=pattern,
    )


def _index_ranges(include_children: bool, include_archived: bool, archived_only: bool) -> list[str]:
    """The stretches of the list index to walk; each is in order, so that a page is a merge of their heads."""
    kinds = (1, 0) if include_children else (1,)
    archived = (1,) if archived_only else (0, 1) if include_archived else (0,)
    return [f"listed = {kind} AND archived = {value}" for kind in kinds for value in archived]


def _page(
    tx: Reading,
    wanted: Filter,
    ranges: Mapping[str, Sequence[str]],
    order: Sequence[str],
    limit: int | None,
    *,
    offset: int = 0,
    after: str | None = None,
    as_tips: bool = True,
) -> list[ListedSession]:
    """A page of conversations, each with the cursor to go on from."""
    rows = _walk(tx, wanted, ranges, order, limit, offset, after)
    for row in rows:
        row["cursor"] = _cursor(order, row)
    shown = _as_tips(tx, rows, wanted.asker) if as_tips else rows
    return cast("list[ListedSession]", shown)


def _walk(
    tx: Reading,
    wanted: Filter,
    ranges: Mapping[str, Sequence[str]],
    order: Sequence[str],
    limit: int | None,
    offset: int,
    after: str | None,
) -> list[Row]:
    """The rows of a page, in descending order."""
    skipped = row_offset(offset)
    values = {**wanted.values, "size": min(UNLIMITED, row_limit(limit) + skipped)}
    condition = wanted.where()
    if after is not None:
        edge = _parse_cursor(after, order)
        values |= {f"edge{i}": value for i, value in enumerate(edge)}
        condition += f" AND ({', '.join(order)}) < ({', '.join(f':edge{i}' for i in range(len(order)))})"
    elif BY_ACTIVITY in ranges.values():
        # Says nothing but which index to walk: without it the planner may take one that begins with the same columns.
        condition += " AND active_tick <= :newest_tick"
        values["newest_tick"] = UNLIMITED
    walks = [
        f"SELECT * FROM sessions WHERE {index_range} AND {condition} ORDER BY {_descending(columns)} LIMIT :size"
        for index_range, columns in ranges.items()
    ]
    if len(walks) == 1:
        sql = walks[0]
    else:
        merged = " UNION ALL ".join(f"SELECT * FROM ({walk}) AS range{i}" for i, walk in enumerate(walks))
        sql = f"{merged} ORDER BY {_descending(order)} LIMIT :size"
    columns, rows = tx.table(sql, **values)
    return hide_foreign_links(tx, [_rich(session_row(columns, row)) for row in rows[skipped:]], wanted.asker)


def _descending(columns: Sequence[str]) -> str:
    return ", ".join(f"{column} DESC" for column in columns)


def _rich(row: Row) -> Row:
    row["preview"] = row["preview"] or ""
    return row


def _as_tips(tx: Reading, rows: list[Row], asker: Asker) -> list[Row]:
    """Show compressed conversations as their newest session."""
    tips = _tips(tx, [row["id"] for row in rows], asker)
    if not tips:
        return rows
    sessions = fetch_sessions(tx, list(tips.values()))
    return [_as_tip(row, sessions[tips[row["id"]]]) if row["id"] in tips else row for row in rows]


def _as_tip(row: Row, tip: AnyRow) -> Row:
    shown = {**row, **{name: tip[name] for name in TIP_FIELDS}, "_lineage_root_id": row["id"]}
    return _rich(shown)


def _tips(tx: Reading, roots: list[str], asker: Asker) -> dict[str, str]:
    """The newest session of each compression chain that begins at one of the roots."""
    newest: dict[str, tuple[float, str]] = {}
    for some in chunks(roots):
        listed, values = placeholders("root", some)
        for child, parent, started_at in tx.rows(
            f"""SELECT id, parent_session_id, started_at FROM sessions
                WHERE chain_root IN ({listed}) AND child_kind = 'compression' {owner_condition(asker)}""",
            whose=asker.stored,
            **values,
        ):
            newest[parent] = max(newest.get(parent, (started_at, child)), (started_at, child))
    tips = {}
    for root in roots:
        tip, seen = root, {root}
        while tip in newest and newest[tip][1] not in seen:
            tip = newest[tip][1]
            seen.add(tip)
        if tip != root:
            tips[root] = tip
    return tips


def _cursor(order: Sequence[str], row: Row) -> str:
    """Where a row stands in a list: what orders it, the moments, then its id."""
    return "|".join([order[0], *(repr(row[column]) for column in order[:-1]), row["id"]])


def _parse_cursor(cursor: str, order: Sequence[str]) -> list[Any]:
    try:
        first, *moments, last = cursor.split("|", len(order))
        if first == order[0] and len(moments) == len(order) - 1 and last:
            return [*(_number(moment) for moment in moments), last]
    except (AttributeError, TypeError, ValueError):
        pass
    raise InvalidValue(
        f"this is not a cursor of this list: {cursor!r}",
        hint="pass the `cursor` of a row from a list in the same order",
    )


def _number(text: str) -> int | float:
    """A number of the kind that it was: a column of whole numbers is not compared with fractions along its index."""
    try:
        return int(text)
    except ValueError:
        number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number
