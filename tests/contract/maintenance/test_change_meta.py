"""Values that several processes change."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from hermes.state.maintenance.meta import change_meta
from hermes.state.provider import SessionDBProvider


def increase(text: str | None) -> tuple[str, int]:
    number = int(text or "0") + 1
    return str(number), number


def test_no_change_is_lost_when_several_callers_change_a_value(store: SessionDBProvider) -> None:
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: change_meta(store, "counted", increase), range(20)))
    assert sorted(results) == list(range(1, 21))
    assert store.get_meta("counted") == "20"
