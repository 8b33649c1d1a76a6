"""Quotas: turns are counted in all scopes or in none, and never above a limit."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.errors import InvalidValue
from hermes.state.lanes.quotas import QuotaDenied, QuotaLimits, QuotaUsage
from hermes.state.provider import SessionDBProvider
from tests.support.conversations import at_once
from tests.support.stores import Opener, engine_of

DAY, NEXT = "2026-01-31", "2026-02-01"
FREE = QuotaLimits()


def rows(store: SessionDBProvider) -> list[Any]:
    """All rows of the table."""
    return engine_of(store).read(lambda tx: tx.rows("SELECT * FROM usage_days ORDER BY id"))


class TestBegin:
    def test_a_turn_is_counted_in_every_scope(self, store: SessionDBProvider) -> None:
        for _ in range(3):
            assert store.quotas.begin({"user": FREE, "chat": QuotaLimits(turns=5)}, DAY) is None
        assert store.quotas.begin({"user": FREE}, DAY) is None
        assert [store.quotas.read(scope, DAY).turns for scope in ("user", "chat", "other")] == [4, 3, 0]
        assert store.quotas.read("user", NEXT) == QuotaUsage()

    def test_a_limit_of_turns_is_reached_exactly(self, store: SessionDBProvider) -> None:
        found = [store.quotas.begin({"user": QuotaLimits(turns=2)}, DAY) for _ in range(4)]
        assert found == [None, None, *[QuotaDenied("user", "turns", 2, 2)] * 2]
        assert store.quotas.read("user", DAY).turns == 2
        assert store.quotas.begin({"user": QuotaLimits(turns=2)}, NEXT) is None

    @pytest.mark.parametrize(
        ("limits", "denied"),
        [
            (QuotaLimits(tokens=100), ("tokens", 100, 100)),
            (QuotaLimits(tokens=101), None),
            (QuotaLimits(cost_usd=0.5), ("cost_usd", 0.5, 0.5)),
            (QuotaLimits(cost_usd=0.51), None),
            (QuotaLimits(turns=0), ("turns", 0, 0)),
            (QuotaLimits(turns=1, tokens=1, cost_usd=0.1), ("tokens", 1, 100)),
        ],
    )
    def test_every_limit_is_checked(self, store: SessionDBProvider, limits: QuotaLimits, denied: Any) -> None:
        store.quotas.add(["user"], DAY, tokens=100, cost_usd=0.5)
        assert store.quotas.begin({"user": limits}, DAY) == (denied and QuotaDenied("user", *denied))

    def test_if_one_scope_denies_nothing_is_counted(self, store: SessionDBProvider) -> None:
        store.quotas.begin({"full": FREE, "old": FREE}, DAY)
        before = rows(store)
        scopes = {"old": FREE, "new": FREE, "full": QuotaLimits(turns=1), "also full": QuotaLimits(turns=0)}
        assert store.quotas.begin(scopes, DAY) == QuotaDenied("full", "turns", 1, 1)
        assert rows(store) == before

    def test_without_scopes_everything_is_allowed(self, store: SessionDBProvider) -> None:
        assert store.quotas.begin({}, DAY) is None
        store.quotas.add([], DAY, tokens=1)
        assert rows(store) == []

    def test_scopes_may_have_any_characters_and_512_of_them(self, store: SessionDBProvider) -> None:
        scopes = ["x" * 512, "x" * 511 + "y", "nul \0", "\ud800", "\x01", " ", "A", "a", "ä", "😀" * 512, "100%_"]
        for count, scope in enumerate(scopes, start=1):
            for _ in range(count):
                assert store.quotas.begin({scope: FREE}, DAY) is None
        assert [store.quotas.read(scope, DAY).turns for scope in scopes] == list(range(1, len(scopes) + 1))

    @pytest.mark.parametrize(
        "scopes", [{"": FREE}, {"x" * 513: FREE}, {1: FREE}, {"u": None}, {"u": {"turns": 1}}, ["u"], None]
    )
    def test_wrong_scopes_are_refused(self, store: SessionDBProvider, scopes: Any) -> None:
        with pytest.raises(InvalidValue):
            store.quotas.begin(scopes, DAY)

    @pytest.mark.parametrize("limits", [{"turns": -1}, {"tokens": 1.5}, {"cost_usd": float("nan")}, {"turns": True}])
    def test_wrong_limits_are_refused(self, store: SessionDBProvider, limits: Any) -> None:
        with pytest.raises(InvalidValue):
            store.quotas.begin({"u": QuotaLimits(**limits)}, DAY)

    @pytest.mark.parametrize("day", ["", "2026-1-1", "2026-02-30", "20260131", "today", None, 5, "2026-01-31 "])
    def test_wrong_days_are_refused(self, store: SessionDBProvider, day: Any) -> None:
        for call in (
            lambda: store.quotas.begin({"u": FREE}, day),
            lambda: store.quotas.add(["u"], day),
            lambda: store.quotas.read("u", day),
            lambda: store.quotas.sweep(day),
        ):
            with pytest.raises(InvalidValue):
                call()


class TestAdd:
    def test_tokens_and_costs_are_added(self, store: SessionDBProvider) -> None:
        store.quotas.begin({"user": FREE}, DAY)
        for _ in range(2):
            store.quotas.add({"user": FREE, "chat": FREE}, DAY, tokens=7, cost_usd=0.25)
        assert store.quotas.read("user", DAY) == QuotaUsage(1, 14, 0.5)
        assert store.quotas.read("chat", DAY) == QuotaUsage(0, 14, 0.5)

    @pytest.mark.parametrize(
        "amounts", [{"tokens": -1}, {"tokens": 1.5}, {"cost_usd": -0.1}, {"cost_usd": float("inf")}]
    )
    def test_wrong_amounts_are_refused(self, store: SessionDBProvider, amounts: Any) -> None:
        with pytest.raises(InvalidValue):
            store.quotas.add(["u"], DAY, **amounts)
        with pytest.raises(InvalidValue):
            store.quotas.add("u", DAY)


class TestSweep:
    def test_days_before_are_removed(self, store: SessionDBProvider) -> None:
        for day in ("2025-12-31", "2026-01-30", DAY, NEXT):
            for number in range(3):
                store.quotas.begin({f"user {number}": FREE}, day)
        assert store.quotas.sweep(DAY) == 6
        assert store.quotas.sweep(DAY) == 0
        assert [store.quotas.read("user 1", day).turns for day in ("2026-01-30", DAY, NEXT)] == [0, 1, 1]

    def test_many_rows_are_removed_in_slices(self, store: SessionDBProvider) -> None:
        many = [{"id": f"{DAY} {number}", "scope": f"{number}", "day": DAY} for number in range(1_203)]
        sql = "INSERT INTO usage_days (id, scope, day) VALUES (:id, :scope, :day)"
        engine_of(store).write(lambda tx: tx.run_many(sql, many))
        assert store.quotas.sweep(NEXT) == 1_203
        assert rows(store) == []


class TestAtOnce:
    def test_no_update_is_lost_and_no_limit_exceeded(self, open_store: Opener) -> None:
        stores = [open_store() for _ in range(8)]
        limits = {"shared": QuotaLimits(turns=60), "also shared": FREE}

        def run(number: int) -> int:
            begun = 0
            for turn in range(12):
                own = {f"user {number}": QuotaLimits(turns=10)}
                # In different orders, so that callers meet.
                scopes = {**limits, **own} if (number + turn) % 2 else {**own, **dict(reversed(limits.items()))}
                if stores[number].quotas.begin(scopes, DAY) is None:
                    begun += 1
                    stores[number].quotas.add(scopes, DAY, tokens=3, cost_usd=0.5)
            return begun

        begun = at_once(8, run)
        assert sum(begun) == 60
        assert max(begun) <= 10
        for scope in limits:
            assert stores[0].quotas.read(scope, DAY) == QuotaUsage(60, 180, 30.0)
        assert [stores[0].quotas.read(f"user {number}", DAY).turns for number in range(8)] == begun
