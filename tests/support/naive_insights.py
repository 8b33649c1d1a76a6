"""Insights computed the slow way: every session, message and usage event is read one by one."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from typing import Any

from hermes.state.provider import SessionDBProvider
from hermes.state.rows import tool_names

Row = dict[str, Any]

COPYING = ("compression", "branch")
COUNTERS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


@dataclass(frozen=True)
class History:
    """The content of a store, read once."""

    sessions: dict[str, Row]
    messages: dict[str, list[Row]]
    bookings: dict[str, list[Row]]

    @classmethod
    def of(cls, store: SessionDBProvider) -> History:
        """Read everything in a store."""
        sessions: dict[str, Row] = {row["id"]: {**row} for row in store.search_sessions(limit=-1)}
        return cls(
            sessions,
            {session_id: [{**row} for row in store.get_messages(session_id)] for session_id in sessions},
            {session_id: [{**row} for row in store.list_usage_events(session_id)] for session_id in sessions},
        )


@dataclass
class Naive:
    """The insights of a period by their definitions; for zones in which every day begins at midnight."""

    history: History
    first: date
    last: date
    source: str | None = None
    owner: str | None = None

    @cached_property
    def since(self) -> float:
        """The first midnight."""
        return midnight(self.first)

    @cached_property
    def until(self) -> float:
        """The midnight at the end."""
        return midnight(self.last + timedelta(days=1))

    @cached_property
    def sessions(self) -> list[Row]:
        """The sessions that match the filter, at any time."""
        every = self.history.sessions.values()
        return [row for row in every if self.source in (None, row["source"]) and self.owner in (None, row["owner"])]

    @cached_property
    def conversations(self) -> list[Row]:
        """The listed sessions that, or whose continuations, were active."""
        newest: dict[str, float] = defaultdict(float)
        for row in self.history.sessions.values():
            root = row["chain_root"] or row["id"]
            newest[root] = max(newest[root], row["last_active"])
        return [row for row in self.sessions if row["listed"] and newest[row["id"]] >= self.since]

    @cached_property
    def active(self) -> list[Row]:
        """The sessions that were active themselves."""
        return [row for row in self.sessions if row["last_active"] >= self.since]

    @cached_property
    def messages(self) -> dict[str, list[Row]]:
        """The messages that count, by session; copies of older ones do not."""
        return {
            row["id"]: [
                message
                for message in self.history.messages[row["id"]]
                if self.is_in(message["timestamp"])
                and (row["child_kind"] not in COPYING or message["timestamp"] >= row["started_at"])
            ]
            for row in self.active
        }

    @cached_property
    def bookings(self) -> dict[str, list[Row]]:
        """The usage events that count, by session, each with its cost; None if it is unknown."""
        return {
            row["id"]: [
                {**each, "cost": _cost(each, row), "source": row["source"]}
                for each in self.history.bookings[row["id"]]
                if self.is_in(each["at"])
            ]
            for row in self.sessions
        }

    @cached_property
    def tools(self) -> dict[str, Counter[str]]:
        """Tool calls by session and tool."""
        found: dict[str, Counter[str]] = {}
        for row in self.active:
            if row["started_at"] < self.since or row["child_kind"] in COPYING:
                some = self.messages[row["id"]]
                found[row["id"]] = Counter(each["tool_name"] for each in some if each["role"] == "tool")
            else:
                every = self.history.messages[row["id"]]
                found[row["id"]] = Counter(name for each in every for name in tool_names(each["tool_calls"]))
        return found

    def is_in(self, moment: float) -> bool:
        """Whether a moment is in the period."""
        return self.first <= day_of(moment) <= self.last

    def duration(self, row: Row) -> float:
        """The time from a session's start to its last message, within the period."""
        if row["child_kind"] == "delegate":
            return 0.0
        return max(0.0, float(min(row["last_active"], self.until) - max(row["started_at"], self.since)))

    def notable(self) -> dict[str, tuple[float, str]]:
        """The maximum of each value, and the conversation that has it: the first by id if there are several."""
        sums: dict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
        for row in self.active:
            home = self._conversation_of(row)
            bookings = self.bookings[row["id"]]
            sums["duration_s"][home] += self.duration(row)
            sums["messages"][home] += len(self.messages[row["id"]])
            sums["tool_calls"][home] += self.tools[row["id"]].total()
            sums["tokens"][home] += sum(map(tokens, bookings))
            sums["cost_usd"][home] += sum(each["cost"] or 0.0 for each in bookings)
        best = {}
        for measure, amounts in sums.items():
            listed = {home: amount for home, amount in amounts.items() if self.history.sessions[home]["listed"]}
            most = max(listed.values(), default=0.0)
            if most > 0:
                best[measure] = (most, min(home for home, amount in listed.items() if amount == most))
        return best

    def _conversation_of(self, row: Row) -> str:
        whole = self.history.sessions[row["parent_session_id"]] if row["child_kind"] == "delegate" else row
        return str(whole["chain_root"] or whole["id"])


def midnight(day: date) -> float:
    """When a local day begins."""
    return time.mktime((day.year, day.month, day.day, 0, 0, 0, 0, 0, -1))


def day_of(moment: float) -> date:
    """The local day of a moment."""
    return date(*time.localtime(moment)[:3])


def tokens(booking: Row) -> int:
    """All tokens of a usage event."""
    return int(sum(booking[name] for name in COUNTERS))


def _cost(booking: Row, session: Row) -> float | None:
    actual: float | None = booking["actual_cost_usd"]
    estimated: float | None = booking["estimated_cost_usd"]
    if booking["kind"] != "opening":
        return estimated if actual is None else actual
    return actual or estimated or (0.0 if session["cost_status"] == "included" else None)
