"""When things happened: by local day, day of the week and hour of the day."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import date
from typing import NamedTuple

from hermes.state.usage.aggregates import MessageCell, UsageCell
from hermes.state.usage.period import date_of
from hermes.state.usage.totals import UsageTotals, add_totals

HOURS = 24
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Day(NamedTuple):
    """What happened on one day."""

    date: date
    messages: int
    tokens: int
    cost_usd: float


class Activity(NamedTuple):
    """Messages by when they were said, and what was used meanwhile."""

    days: list[Day]
    """Those on which something happened, the oldest first."""
    weekdays: list[int]
    """Messages, from Monday on."""
    hours: list[int]
    """Messages, from midnight on."""

    @property
    def active_days(self) -> int:
        """On how many days something was said."""
        return sum(day.messages > 0 for day in self.days)

    @property
    def longest_streak(self) -> int:
        """On how many days in a row something was said."""
        longest, streak, before = 0, 0, None
        for day in self.days:
            if day.messages > 0:
                streak = streak + 1 if before is not None and (day.date - before).days == 1 else 1
                longest, before = max(longest, streak), day.date
        return longest

    @property
    def busiest_weekday(self) -> int | None:
        """The day of the week with the most messages; Monday is 0."""
        return _busiest(self.weekdays)

    @property
    def busiest_hour(self) -> int | None:
        """The hour with the most messages."""
        return _busiest(self.hours)


def build_activity(messages: Iterable[MessageCell], usage: Iterable[UsageCell]) -> Activity:
    """Activity by the local calendar."""
    said: Counter[int] = Counter()
    weekdays, hours = [0] * len(WEEKDAYS), [0] * HOURS
    for message in messages:
        day, hour = divmod(message.hour, HOURS)
        said[day] += message.messages
        hours[hour] += message.messages
    for day, count in said.items():
        weekdays[date_of(day).weekday()] += count
    used: dict[int, list[UsageTotals]] = defaultdict(list)
    for cell in usage:
        used[cell.day].append(cell.totals)
    days = []
    for day in sorted(said.keys() | used.keys()):
        spent = add_totals(used[day])
        days.append(Day(date_of(day), said[day], spent.total_tokens, spent.cost_usd))
    return Activity(days, weekdays, hours)


def _busiest(counts: Sequence[int]) -> int | None:
    """Where the most are, the first of several."""
    most = max(counts)
    return counts.index(most) if most else None
