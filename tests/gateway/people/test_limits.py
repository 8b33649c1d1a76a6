"""Limits of users and chats."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from hermes.chat_settings import LimitsConfig
from hermes.gateway import Platform, SessionSource, build_session_key, lane_owner
from hermes.gateway.engine.parts import TurnLimits
from hermes.gateway.people.limits import Limits, chat_scope, day_of, end_of_day, user_scope
from hermes.state.asynchronous.session_db import AsyncSessionDB
from hermes.state.owner import Owner
from hermes_state import SessionDB

BERLIN = ZoneInfo("Europe/Berlin")
EVENING = datetime(2026, 1, 15, 20, 48, tzinfo=BERLIN).timestamp()
ALICE = SessionSource(Platform.TELEGRAM, "1", user_id="7")
ALICE_IN_GROUP = SessionSource(Platform.TELEGRAM, "-9", chat_type="group", user_id="7")
BOB_IN_GROUP = SessionSource(Platform.TELEGRAM, "-9", chat_type="group", user_id="8")


def owner(source: SessionSource, *, is_shared: bool = False) -> Owner:
    return lane_owner(source, build_session_key(source, not is_shared), is_shared=is_shared)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SessionDB]:
    with SessionDB(tmp_path / "state.db") as store:
        yield store


class Counter:
    """Limits, called without a loop."""

    def __init__(self, store: SessionDB, zone: ZoneInfo | None = BERLIN, **settings: Any) -> None:
        self.limits = Limits(LimitsConfig(**settings), AsyncSessionDB(store).quotas, zone)
        checked: TurnLimits = self.limits
        assert checked is self.limits

    def begin(self, source: SessionSource = ALICE, now: float = EVENING, *, is_shared: bool = False) -> str | None:
        return asyncio.run(self.limits.begin(owner(source, is_shared=is_shared), source, now))

    def book(
        self, source: SessionSource = ALICE, now: float = EVENING, *, tokens: int = 0, cost_usd: float = 0.0
    ) -> None:
        asyncio.run(self.limits.book(owner(source), source, tokens=tokens, cost_usd=cost_usd, now=now))

    def today(self, source: SessionSource = ALICE, now: float = EVENING) -> dict[str, str]:
        return asyncio.run(self.limits.today(owner(source), source, now))


def rows(store: SessionDB) -> int:
    return int(store._engine.read(lambda tx: tx.value("SELECT COUNT(*) FROM usage_days")))


def test_the_refusal_names_the_limit_and_when_it_ends(store: SessionDB) -> None:
    counter = Counter(store, turns_per_user=2)
    assert [counter.begin(), counter.begin()] == [None, None]
    assert counter.begin() == (
        "Your 2 turns of today are used up. You can go on after 00:00 (Europe/Berlin), in 3 h 12 min."
    )
    assert counter.begin(now=EVENING + 3 * 3600 + 11 * 60 + 30) == (
        "Your 2 turns of today are used up. You can go on after 00:00 (Europe/Berlin), in 1 min."
    )
    assert counter.begin(now=EVENING + 3 * 3600 + 12 * 60) is None


@pytest.mark.parametrize(
    ("settings", "tokens", "cost_usd", "start"),
    [
        ({"turns_per_user": 1}, 0, 0.0, "Your 1 turn of today is used up."),
        ({"turns_per_chat": 1}, 0, 0.0, "This chat's 1 turn of today is used up."),
        ({"tokens_per_user": 1000}, 1000, 0.0, "Your 1,000 tokens of today are used up."),
        ({"tokens_per_chat": 1000}, 1000, 0.0, "This chat's 1,000 tokens of today are used up."),
        ({"cost_per_user": 0.5}, 0, 0.5, "Your 0.50 US dollars of today are used up."),
        ({"cost_per_chat": 0.5}, 0, 0.5, "This chat's 0.50 US dollars of today are used up."),
    ],
)
def test_every_limit_refuses_with_its_own_words(
    store: SessionDB, settings: dict[str, Any], tokens: int, cost_usd: float, start: str
) -> None:
    counter = Counter(store, **settings)
    assert counter.begin() is None
    counter.book(tokens=tokens, cost_usd=cost_usd)
    refused = counter.begin()
    assert refused is not None
    assert refused.startswith(f"{start} You can go on after 00:00")


def test_without_limits_nothing_is_stored(store: SessionDB) -> None:
    counter = Counter(store)
    assert counter.begin() is None
    counter.book(tokens=10, cost_usd=1.0)
    assert counter.today() == {}
    assert rows(store) == 0


def test_a_turn_that_used_nothing_stores_nothing(store: SessionDB) -> None:
    counter = Counter(store, tokens_per_user=5)
    counter.book()
    assert rows(store) == 0


def test_a_refused_turn_is_not_counted(store: SessionDB) -> None:
    counter = Counter(store, turns_per_user=1, turns_per_chat=10)
    counter.begin()
    counter.begin()
    assert counter.today() == {"Your turns today": "1 of 1", "This chat's turns today": "1 of 10"}


def test_a_user_has_one_limit_in_all_chats_also_in_shared_ones(store: SessionDB) -> None:
    counter = Counter(store, turns_per_user=2)
    assert counter.begin(ALICE) is None
    assert counter.begin(ALICE_IN_GROUP, is_shared=True) is None
    refused = counter.begin(ALICE_IN_GROUP, is_shared=True)
    assert refused is not None
    assert refused.startswith("Your 2 turns")
    assert counter.begin(BOB_IN_GROUP, is_shared=True) is None


def test_a_chat_has_one_limit_for_all_its_users(store: SessionDB) -> None:
    counter = Counter(store, turns_per_chat=2)
    assert [counter.begin(each) for each in (ALICE_IN_GROUP, BOB_IN_GROUP)] == [None, None]
    refused = counter.begin(BOB_IN_GROUP)
    assert refused is not None
    assert refused.startswith("This chat's 2 turns")
    assert counter.begin(ALICE) is None


def test_tokens_are_booked_on_the_day_of_the_turn(store: SessionDB) -> None:
    counter = Counter(store, tokens_per_user=100)
    counter.book(tokens=60)
    counter.book(tokens=60, now=EVENING + 12 * 3600)
    assert counter.today() == {"Your tokens today": "60 of 100"}
    assert counter.begin() is None


def test_a_refusal_does_not_name_other_users(store: SessionDB) -> None:
    counter = Counter(store, turns_per_chat=1)
    counter.begin(ALICE_IN_GROUP)
    refused = counter.begin(BOB_IN_GROUP)
    assert refused is not None
    assert "7" not in refused


def test_a_message_that_is_too_long_is_refused_with_both_numbers(store: SessionDB) -> None:
    limits = Counter(store, message_characters=2000).limits
    assert limits.check_size("x" * 2000) is None
    assert limits.check_size("x" * 2001) == (
        "The message has 2,001 characters; at most 2,000 are accepted. Please send a shorter one."
    )


@pytest.mark.parametrize(
    ("zone", "now", "day", "end"),
    [
        ("Europe/Berlin", "2026-01-15T23:30+00:00", "2026-01-16", "2026-01-17T00:00+01:00"),
        ("Asia/Tokyo", "2026-01-15T16:00+00:00", "2026-01-16", "2026-01-17T00:00+09:00"),
        ("Europe/Berlin", "2026-03-28T23:30+00:00", "2026-03-29", "2026-03-30T00:00+02:00"),
        ("Europe/Berlin", "2026-10-24T22:30+00:00", "2026-10-25", "2026-10-26T00:00+01:00"),
        # Clocks go from 00:00 to 01:00, so the next day starts at one.
        ("America/Santiago", "2026-09-05T20:00+00:00", "2026-09-05", "2026-09-06T01:00-03:00"),
    ],
)
def test_a_day_ends_at_midnight_of_its_time_zone(zone: str, now: str, day: str, end: str) -> None:
    moment = datetime.fromisoformat(now).timestamp()
    assert day_of(moment, ZoneInfo(zone)) == day
    assert end_of_day(moment, ZoneInfo(zone)).timestamp() == datetime.fromisoformat(end).timestamp()


def test_without_a_zone_the_day_is_that_of_the_machine(store: SessionDB) -> None:
    counter = Counter(store, zone=None, turns_per_user=1)
    counter.begin()
    refused = counter.begin()
    assert refused is not None
    midnight = end_of_day(EVENING, None)
    assert (midnight.hour, midnight.minute) == (0, 0)
    assert 0 < midnight.timestamp() - EVENING <= 86_400
    assert f"after 00:00 ({midnight.tzname()}), in " in refused


def test_ids_of_any_length_and_kind_have_scopes(store: SessionDB) -> None:
    counter = Counter(store, turns_per_user=1, turns_per_chat=1)
    for chat_id, user_id in (("x" * 5000, "y" * 5000), ("a\nb", "c\x00d"), ("\ud800", "\u200b"), ("1", None)):
        source = SessionSource(Platform.TELEGRAM, chat_id, user_id=user_id)
        assert counter.begin(source) is None
        assert counter.begin(source) is not None
        assert max(len(user_scope(owner(source), source)), len(chat_scope(source))) <= 512
