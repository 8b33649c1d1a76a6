"""Activity by local day, day of the week and hour of the day."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import date
from typing import NamedTuple

from hermes.state.usage.aggregates import UsageCell
from hermes.state.usage.message_counts import MessageCell
from hermes.state.usage.period import date_of
from hermes.state.usage.totals import UsageTotals, add_totals

HOURS = 24
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Day(NamedTuple):
    """The activity of one day."""

    date: date
    messages: int
    tokens: int
    cost_usd: float


class Activity(NamedTuple):
    """Messages by time, and the usage of each day."""

    days: list[Day]
    """The days with activity, oldest first."""
    weekdays: list[int]
    """Messages per weekday, starting with Monday."""
    hours: list[int]
    """Messages per hour, starting at midnight."""

    @property
    def active_days(self) -> int:
        """The number of days with messages."""
        return sum(day.messages > 0 for day in self.days)

    @property
    def longest_streak(self) -> int:
        """The longest run of consecutive days with messages."""
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
    """Return the activity by the local calendar."""
    messages_by_day: Counter[int] = Counter()
    weekdays, hours = [0] * len(WEEKDAYS), [0] * HOURS
    for message in messages:
        day, hour = divmod(message.hour, HOURS)
        messages_by_day[day] += message.messages
        hours[hour] += message.messages
    for day, count in messages_by_day.items():
        weekdays[date_of(day).weekday()] += count
    used: dict[int, list[UsageTotals]] = defaultdict(list)
    for cell in usage:
        used[cell.day].append(cell.totals)
    days = []
    for day in sorted(messages_by_day.keys() | used.keys()):
        spent = add_totals(used[day])
        days.append(Day(date_of(day), messages_by_day[day], spent.total_tokens, spent.cost_usd))
    return Activity(days, weekdays, hours)


def _busiest(counts: Sequence[int]) -> int | None:
    """Return the index of the largest count, the first of several."""
    most = max(counts)
    return counts.index(most) if most else None
