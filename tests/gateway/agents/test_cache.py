"""The cache of conversations: its limits, and that a running one is never dropped to make space."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, replace

from hermes.gateway.agents.cache import AgentCache, CacheFigures, Signature

SIGNATURE = Signature("m", "openai", None, frozenset(), "s1")


@dataclass(eq=False)
class Weight:
    """A conversation of a known weight."""

    bytes: int = 10

    def weight(self) -> int:
        return self.bytes


class Time:
    """A clock that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_least_recently_used_one_is_dropped() -> None:
    cache: AgentCache[Weight] = AgentCache(max_entries=2)
    one, two, three = Weight(), Weight(), Weight()
    cache.put("1", SIGNATURE, one)
    cache.put("2", SIGNATURE, two)
    assert cache.get("1", SIGNATURE) is one
    cache.put("3", SIGNATURE, three)
    assert [cache.get(key, SIGNATURE) for key in "123"] == [one, None, three]
    assert cache.figures() == CacheFigures(entries=2, running=0, bytes=20, hits=3, misses=1, evictions=1)


def test_another_signature_is_a_miss_and_drops_the_old_one() -> None:
    cache: AgentCache[Weight] = AgentCache()
    for changed in (
        replace(SIGNATURE, model="other"),
        replace(SIGNATURE, provider="other"),
        replace(SIGNATURE, base_url="http://x"),
        replace(SIGNATURE, toolsets=frozenset({"memory"})),
        replace(SIGNATURE, session_id="s2"),
    ):
        cache.put("1", SIGNATURE, Weight())
        assert cache.get("1", changed) is None
        assert cache.figures().entries == 0


def test_bytes_are_limited_and_measured_again() -> None:
    cache: AgentCache[Weight] = AgentCache(max_bytes=100)
    heavy, light = Weight(60), Weight(30)
    cache.put("1", SIGNATURE, heavy)
    cache.put("2", SIGNATURE, light)
    assert cache.figures().bytes == 90
    assert cache.borrow("2", SIGNATURE) is light
    light.bytes = 70
    cache.give_back("2", SIGNATURE, light)
    assert (cache.figures().entries, cache.figures().bytes) == (1, 70)
    cache.put("3", SIGNATURE, Weight(1000))
    assert (cache.figures().entries, cache.figures().bytes) == (0, 0)


def test_a_borrowed_one_is_not_dropped_to_make_space() -> None:
    time = Time()
    cache: AgentCache[Weight] = AgentCache(max_entries=1, idle_s=10, clock=time)
    one = Weight()
    cache.lend("1", SIGNATURE, one)
    cache.lend("2", SIGNATURE, Weight())
    cache.lend("3", SIGNATURE, Weight())
    time.now = 100
    assert cache.sweep() == 0
    assert (cache.figures().entries, cache.figures().running) == (3, 3)
    cache.give_back("1", SIGNATURE, one)
    assert (cache.figures().entries, cache.figures().running) == (2, 2)


def test_a_borrowed_one_is_not_lent_twice() -> None:
    cache: AgentCache[Weight] = AgentCache()
    first, second = Weight(), Weight()
    cache.put("1", SIGNATURE, first)
    assert cache.borrow("1", SIGNATURE) is first
    assert cache.borrow("1", SIGNATURE) is None
    assert cache.borrow("1", replace(SIGNATURE, model="other")) is None
    cache.lend("1", SIGNATURE, second)
    cache.give_back("1", SIGNATURE, second)
    cache.give_back("1", replace(SIGNATURE, session_id="s2"), first)
    assert cache.get("1", replace(SIGNATURE, session_id="s2")) is first


def test_an_evicted_one_does_not_come_back() -> None:
    cache: AgentCache[Weight] = AgentCache()
    given_up, fresh = Weight(), Weight()
    cache.lend("1", SIGNATURE, given_up)
    assert cache.evict("1")
    assert not cache.evict("1")
    cache.lend("1", SIGNATURE, fresh)
    cache.give_back("1", SIGNATURE, given_up)
    assert cache.figures().running == 1
    assert not cache.evict("1", given_up)
    cache.give_back("1", SIGNATURE, fresh)
    assert cache.get("1", SIGNATURE) is fresh


def test_idle_ones_are_swept() -> None:
    time = Time()
    cache: AgentCache[Weight] = AgentCache(idle_s=3600, clock=time)
    cache.put("1", SIGNATURE, Weight())
    time.now = 1800
    cache.put("2", SIGNATURE, Weight())
    time.now = 3601
    assert cache.sweep() == 1
    assert cache.get("2", SIGNATURE) is not None
    cache.clear()
    assert (cache.figures().entries, cache.figures().bytes) == (0, 0)


def test_threads_share_a_cache() -> None:
    cache: AgentCache[Weight] = AgentCache(max_entries=5, max_bytes=400)
    holders: dict[str, int] = dict.fromkeys(map(str, range(10)), 0)
    wrong: list[str] = []
    lock = threading.Lock()

    def use(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(500):
            key = str(chance.randrange(10))
            value = cache.borrow(key, SIGNATURE)
            if value is not None:
                with lock:
                    holders[key] += 1
                    if holders[key] > 1:
                        wrong.append(key)
                    holders[key] -= 1
                value.bytes = chance.randrange(100)
                cache.give_back(key, SIGNATURE, value)
            elif chance.random() < 0.5:
                cache.put(key, SIGNATURE, Weight(chance.randrange(100)))
            if chance.random() < 0.1:
                cache.sweep()

    threads = [threading.Thread(target=use, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    figures = cache.figures()
    cache.clear()
    assert wrong == []
    assert figures.entries <= 5
    assert figures.running == 0
    assert cache.figures().bytes == 0
