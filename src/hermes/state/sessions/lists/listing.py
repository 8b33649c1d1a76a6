"""Lists of sessions: pages along an index, each conversation once."""

from __future__ import annotations

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
    fetch_sessions,
    hide_foreign_links,
    owner_condition,
    placeholders,
    row_limit,
    row_offset,
)
from hermes.state.owner import EVERYBODY, Asker, OwnerName
from hermes.state.rows import AnyRow, Row, optional_text, parse_timestamp, require_integer, session_row
from hermes.state.sessions.lineage.links import compression_tips
from hermes.state.sessions.lists.order import BY_ACTIVITY, BY_OWN_ACTIVITY, BY_START, INDEX_RANGES, ListOrder
from hermes.state.sessions.records import activity_tick

if TYPE_CHECKING:
    from hermes.state.row_types import FoundSession, ListedSession, Moment


ID_EQUALS, ID_STARTS_WITH, ID_CONTAINS = "{}", "{}%", "%{}%"

ALL_COLUMNS = "*"

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
LOWER_ASCII = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}

_LONGER_JOB = re.compile(r".+_\d{8}_\d{6}")


class Filter:
    """Conditions on sessions, and the values bound in them."""

    def __init__(self) -> None:
        self.conditions: list[str] = []
        self.values: Row = {}
        self.asker: Asker = EVERYBODY

    def add(self, condition: str, **values: Any) -> None:
        """Add a condition."""
        self.conditions.append(condition)
        self.values.update(values)

    def require_owner(self, asker: Asker) -> None:
        """Require that sessions belong to the asker."""
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
        """Return conversations with preview and last activity, newest first.

        A compressed conversation is one row, shown as its tip. `after` takes the `cursor` of a row and continues after
        it. `active_since` leaves out conversations without a message since then.
        """
        order = BY_ACTIVITY if order_by_last_active else BY_START
        wanted = make_filter(source, exclude_sources, min_message_count, self._asker_for(owner), active_since)
        if (optional_text(id_query, "id_query") or "").strip():
            _add_id_query(wanted, str(id_query).strip().lower(), ID_CONTAINS)
        ranges = dict.fromkeys(_index_ranges(include_children, include_archived, archived_only), order)

        edge = None if after is None else order.parse_cursor(after)
        as_tips = project_compression_tips and not include_children
        return self._engine.read(
            lambda tx: _page(tx, wanted, ranges, order, limit, offset=offset, edge=edge, as_tips=as_tips)
        )

    def search_sessions(
        self, source: str | None = None, limit: int | None = 20, offset: int = 0, *, owner: OwnerName = None
    ) -> list[FoundSession]:
        """Return all sessions, children and archived ones too, the most recently active first."""
        wanted = make_filter(source, None, 0, self._asker_for(owner))
        # A session's own activity is that of its chain, unless it was continued; those have an index of their own.
        ranges = {f"{index_range} AND chain_active = last_active": BY_ACTIVITY for index_range in INDEX_RANGES}
        ranges["chain_active > last_active"] = BY_OWN_ACTIVITY
        return self._engine.read(
            lambda tx: cast("list[FoundSession]", walk_list(tx, wanted, ranges, BY_OWN_ACTIVITY, limit, offset))
        )

    def search_sessions_by_id(
        self, query: str, limit: int | None = 20, include_archived: bool = True, *, owner: OwnerName = None
    ) -> list[ListedSession]:
        """Return conversations whose id contains a text: equal ids first, then ids that begin with it, then others."""
        needle = (optional_text(query, "query") or "").strip().lower()
        size, asker = row_limit(limit), self._asker_for(owner)
        found: dict[str, ListedSession] = {}
        for form in (ID_EQUALS, ID_STARTS_WITH, ID_CONTAINS):
            if not needle or len(found) >= size:
                break
            wanted = make_filter(None, None, 0, asker)
            _add_id_query(wanted, needle, form)
            ranges = dict.fromkeys(_index_ranges(False, include_archived, False), BY_ACTIVITY)
            rows = self._engine.read(partial(_page, wanted=wanted, ranges=ranges, order=BY_ACTIVITY, limit=limit))
            for row in rows:
                found.setdefault(row["id"], row)
        return list(found.values())[:size]

    def list_cron_job_runs(
        self, job_id: str, limit: int | None = 20, offset: int = 0, *, owner: OwnerName = None
    ) -> list[FoundSession]:
        """Return the runs of a scheduled job, newest first."""
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
        """Return the number of sessions; with `exclude_children`, the number of rows of the list."""
        wanted = make_filter(source, exclude_sources, min_message_count, self._asker_for(owner), active_since)
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
        """Return the number of sessions of each source, the largest first."""
        asker = self._asker_for(owner)
        counting = f"SELECT source, count(*) FROM sessions WHERE 1 = 1 {owner_condition(asker)} GROUP BY source"
        rows = self._engine.read(lambda tx: tx.rows(counting, whose=asker.stored))
        return dict(sorted(rows, key=lambda row: (-row[1], row[0])))


def make_filter(
    source: str | None,
    exclude_sources: Sequence[str] | None,
    min_message_count: int,
    asker: Asker,
    active_since: Moment | None = None,
) -> Filter:
    """Return the conditions that these arguments of a list stand for."""
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
        # The list index begins with the tick.
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


def add_words(wanted: Filter, words: str) -> None:
    """Require that each word is in a title, a preview, an id or the source of one of a conversation's sessions."""
    number = 0
    for word in words.split():
        forms = []
        for form in _forms(word):
            wanted.values[f"word{number}"] = "%" + form.translate(LIKE_ESCAPES) + "%"
            forms.append(f"{{names}} LIKE :word{number} ESCAPE '!'")
            number += 1
        condition = " OR ".join(forms)
        own, continued = condition.format(names=_names("")), condition.format(names=_names("c."))
        wanted.add(
            f"""({own} OR id IN (SELECT c.chain_root FROM sessions c WHERE c.chain_root IS NOT NULL
                AND ({continued}) {owner_condition(wanted.asker, "c.owner")}))"""
        )


def _names(alias: str) -> str:
    columns = ", ".join(f"{alias}{column}" for column in ("title", "preview", "id", "source"))
    return f"LOWER(concat_ws(' ', {columns}))"


def _forms(word: str) -> list[str]:
    """A word as it may stand in the result of LOWER, which in some engines changes ASCII letters only."""
    forms = (word.lower(), word, word.upper(), word.title())
    return list(dict.fromkeys(form.translate(LOWER_ASCII) for form in forms))


def _index_ranges(include_children: bool, include_archived: bool, archived_only: bool) -> list[str]:
    """The ranges of the list index to walk; each is in order, so a page is a merge of their first rows."""
    kinds = (1, 0) if include_children else (1,)
    archived = (1,) if archived_only else (0, 1) if include_archived else (0,)
    return [f"listed = {kind} AND archived = {value}" for kind in kinds for value in archived]


def _page(
    tx: Reading,
    wanted: Filter,
    ranges: Mapping[str, ListOrder],
    order: ListOrder,
    limit: int | None,
    *,
    offset: int = 0,
    edge: Sequence[Any] | None = None,
    as_tips: bool = True,
) -> list[ListedSession]:
    """Return a page of conversations, each with the cursor to continue from."""
    rows = walk_list(tx, wanted, ranges, order, limit, offset, edge)
    for row in rows:
        row["cursor"] = order.cursor_of(row)
    shown = show_as_tips(tx, rows, wanted.asker) if as_tips else rows
    return cast("list[ListedSession]", shown)


def list_conversations(tx: Reading, wanted: Filter, limit: int | None) -> list[ListedSession]:
    """Return the conversations that a filter selects, the most recently active first."""
    return _page(tx, wanted, dict.fromkeys(_index_ranges(False, False, False), BY_ACTIVITY), BY_ACTIVITY, limit)


def walk_list(
    tx: Reading,
    wanted: Filter,
    ranges: Mapping[str, ListOrder],
    order: ListOrder,
    limit: int | None,
    offset: int = 0,
    edge: Sequence[Any] | None = None,
    columns: str = ALL_COLUMNS,
) -> list[Row]:
    """Return the rows of a page; `edge` is where the page before ended."""
    skipped = row_offset(offset)
    values = {**wanted.values, "size": min(UNLIMITED, row_limit(limit) + skipped)}
    condition = wanted.where()
    if edge is not None:
        listed, bound = placeholders("edge", edge)
        values |= bound
        condition += f" AND ({', '.join(order.columns)}) {'>' if order.is_ascending else '<'} ({listed})"
    elif BY_ACTIVITY in ranges.values():
        # This only names the index to walk: without it the planner may take one that begins with the same columns.
        condition += " AND active_tick <= :newest_tick"
        values["newest_tick"] = UNLIMITED
    walks = [
        f"SELECT {columns} FROM {each.table} WHERE {index_range} AND {condition} ORDER BY {each.sql} LIMIT :size"
        for index_range, each in ranges.items()
    ]
    if len(walks) == 1:
        sql = walks[0]
    else:
        merged = " UNION ALL ".join(f"SELECT * FROM ({walk}) AS range{i}" for i, walk in enumerate(walks))
        sql = f"{merged} ORDER BY {order.sql} LIMIT :size"
    names, rows = tx.table(sql, **values)
    return hide_foreign_links(tx, [_rich(session_row(names, row)) for row in rows[skipped:]], wanted.asker)


def _rich(row: Row) -> Row:
    row["preview"] = row["preview"] or ""
    return row


def show_as_tips(tx: Reading, rows: list[Row], asker: Asker, columns: str = ALL_COLUMNS) -> list[Row]:
    """Return the rows of first sessions with what is shown of them taken from their tips."""
    tips = compression_tips(tx, {row["id"]: row["id"] for row in rows}, asker)
    continued = [tip for root, tip in tips.items() if tip != root]
    if not continued:
        return rows
    sessions = fetch_sessions(tx, continued, columns)
    return [_as_tip(row, sessions[tips[row["id"]]]) if tips[row["id"]] in sessions else row for row in rows]


def _as_tip(row: Row, tip: AnyRow) -> Row:
    shown = {**row, **{name: tip[name] for name in TIP_FIELDS if name in tip}, "_lineage_root_id": row["id"]}
    return _rich(shown)
