"""Messages by hour: sessions of one hour are counted as a whole, others message by message, with the same result."""

from __future__ import annotations

import time
from collections import Counter
from random import Random

import pytest

from hermes.state.operations import read
from hermes.state.provider import SessionDBProvider
from hermes.state.usage.message_counts import count_messages
from hermes.state.usage.period import last_days
from hermes.state.usage.period_sessions import InsightsFilter
from tests.support.zones import BERLIN, KATHMANDU, LORD_HOWE, SANTIAGO, local_zone

HOUR_S = 3600
ROLES = ("user", "assistant", "tool", "system")
NOON = 1_750_000_000.0 // HOUR_S * HOUR_S

Counts = Counter[tuple[int, str, str]]


def counted(store: SessionDBProvider, days: int, now: float) -> Counts:
    """Return the counts of the database by hour, source and role."""
    found: Counts = Counter()
    where = InsightsFilter(last_days(days, now))
    for cell in read(store, lambda tx: count_messages(tx, where)):
        found[cell.hour, cell.source, ""] += cell.messages
        for role in ("user", "assistant", "tool"):
            found[cell.hour, cell.source, role] += getattr(cell, role)
    return +found


def expected(store: SessionDBProvider, days: int, now: float) -> Counts:
    """Return the same counts from single messages."""
    period = last_days(days, now)
    found: Counts = Counter()
    for session in store.search_sessions(limit=None):
        for message in store.get_messages(session["id"]):
            moment = message["timestamp"]
            if period.since <= moment < period.until:
                hour = int(moment + time.localtime(moment).tm_gmtoff) // HOUR_S
                found[hour, session["source"], ""] += 1
                found[hour, session["source"], message["role"]] += message["role"] != "system"
    return +found


def fill(store: SessionDBProvider, around: float, seed: int) -> None:
    """Create sessions that are short and long, with undone messages, and messages before the start."""
    rng = Random(seed)
    for number in range(40):
        session_id = f"s{number:03d}"
        started = around + rng.uniform(-3 * HOUR_S, 3 * HOUR_S)
        longest = rng.choice((60, 600, HOUR_S, 3 * HOUR_S))
        store.create_session(session_id, rng.choice(("cli", "telegram")), started_at=started)
        moments = sorted(started + rng.uniform(rng.choice((0, -30, -90, -HOUR_S)), longest) for _ in range(4))
        roles = [*rng.choices(ROLES, k=2), "user", rng.choice(ROLES)]
        messages = [
            {"role": role, "content": "hello", "timestamp": moment} for role, moment in zip(roles, moments, strict=True)
        ]
        ids = store.append_messages(session_id, messages)
        if number % 5 == 0:
            store.rewind_to_message(session_id, ids[2])


@pytest.mark.parametrize(
    ("zone", "around"),
    [
        (KATHMANDU, 1_741_300_000.0),
        (BERLIN, 1_743_296_400.0),
        (BERLIN, 1_761_440_400.0),
        (LORD_HOWE, 1_743_865_200.0),
        (LORD_HOWE, 1_759_591_800.0),
        (SANTIAGO, 1_743_908_400.0),
    ],
    ids=["kathmandu", "berlin-spring", "berlin-autumn", "lord-howe-autumn", "lord-howe-spring", "santiago"],
)
def test_hours_agree_with_single_messages_when_clocks_change(
    store: SessionDBProvider, zone: str, around: float
) -> None:
    fill(store, around, seed=17)
    with local_zone(zone):
        for days, now in ((1, around), (2, around + 6 * HOUR_S), (30, around + 86_400)):
            assert counted(store, days, now) == expected(store, days, now)


def test_a_very_large_session_of_one_hour_is_counted(store: SessionDBProvider) -> None:
    store.create_session("large", "cli", started_at=NOON + 60)
    messages = [{"role": "user", "content": "x", "timestamp": NOON + 120 + n / 10} for n in range(8_500)]
    store.append_messages("large", messages)
    assert sum(count for (_, _, role), count in counted(store, 1, NOON).items() if role == "user") == 8_500


def test_a_message_long_before_its_session_is_counted_in_its_own_hour(store: SessionDBProvider) -> None:
    store.create_session("a", "cli", started_at=NOON + 1800)
    for moment in (NOON - 3 * HOUR_S, NOON + 1810):
        store.append_message("a", "user", "hello", timestamp=moment)
    with local_zone(BERLIN):
        assert sorted(hour - NOON // HOUR_S for hour, _, role in counted(store, 1, NOON) if not role) == [-1, 2]
