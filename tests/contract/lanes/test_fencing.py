"""Fenced views: a node that has lost the lease of its lane stores nothing any more."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

import pytest

from hermes.errors import HermesError, InvalidValue, MessageSpooled, StaleLease, StoreCorrupt
from hermes.state.lanes.types import Claim, Lease
from hermes.state.owner import EVERYBODY, owner_of
from hermes.state.owner_view import OwnerView
from hermes.state.provider import SessionDBProvider
from tests.support.calls import OWNER, WRITES, Sample, fill
from tests.support.conversations import contents
from tests.support.lanes import KEY, OTHER, accept, claim, end_leases, start_lane
from tests.support.schedules import interleave, schedules, steps_are_scheduled
from tests.support.stores import Opener, engine_of
from tests.support.waiting import LIMIT_S

OF_A_VIEW = {name: call for name, call in WRITES.items() if hasattr(OwnerView, name)}
TABLES = (
    "sessions",
    "messages",
    "usage_events",
    "session_tools",
    "rewinds",
    "compression_locks",
    "pending_links",
    "lanes",
)
NEEDS = {
    "release_compression_lock": "try_acquire_compression_lock",
    "renew_compression_lock": "try_acquire_compression_lock",
}
"""What a call needs before it has anything to change."""
RANDOM_UID = re.compile("'uid': '~[^']*'")


def take(store: SessionDBProvider, node: str, key: str = KEY, seconds: float = 60.0) -> Lease:
    """Lease a lane for a node."""
    taken = store.turns.acquire(key, node, seconds)
    assert taken is not None
    return taken.lease


def view(store: SessionDBProvider, lease: Lease) -> OwnerView:
    """A fenced view of all sessions."""
    return store.for_owner(EVERYBODY).fenced(lease)


def everything(store: SessionDBProvider) -> dict[str, list[Any]]:
    """All rows of the tables that a view writes."""
    return engine_of(store).read(
        lambda tx: {table: sorted(map(repr, tx.rows(f"SELECT * FROM {table}"))) for table in TABLES}
    )


@pytest.fixture
def sample(store: SessionDBProvider, open_store: Opener, tmp_path: Any) -> Sample:
    """A store with a session `s` and some of everything."""
    assert OWNER == "telegram:1"
    return fill(store, open_store("other"), tmp_path / "other.db")


class TestPresentLease:
    @pytest.mark.parametrize("name", sorted(OF_A_VIEW))
    def test_every_write_does_what_it_does_without_a_fence(self, open_store: Opener, tmp_path: Any, name: str) -> None:
        results = []
        for number, is_fenced in enumerate((False, True)):
            store = open_store(f"main{number}")
            sample = fill(store, open_store(f"other{number}"), tmp_path / "other.db")
            plain = store.for_owner(EVERYBODY)
            given: Any = plain.fenced(take(store, "n1")) if is_fenced else plain
            if name in NEEDS:
                WRITES[NEEDS[name]](given, sample)
            try:
                result = RANDOM_UID.sub("", repr(WRITES[name](given, sample)))
            except HermesError as exc:
                result = exc.code
            results.append((result, {table: len(rows) for table, rows in everything(store).items()}))
        assert results[0] == results[1]

    def test_a_lease_that_ended_counts_until_another_node_has_the_lane(
        self, store: SessionDBProvider, sample: Sample
    ) -> None:
        lease = take(store, "n1", seconds=0)
        view(store, lease).append_message("s", "user", "late")
        take(store, "n2")
        with pytest.raises(StaleLease):
            view(store, lease).append_message("s", "user", "too late")
        assert "too late" not in contents(store.get_messages("s"))

    def test_a_renewed_lease_needs_no_new_view(self, store: SessionDBProvider, sample: Sample) -> None:
        lease = take(store, "n1")
        fenced = view(store, lease)
        store.turns.renew(lease)
        assert fenced.append_message("s", "user", "after") == store.get_messages("s")[-1]["id"]

    def test_a_lane_with_a_key_of_any_length_and_characters(self, store: SessionDBProvider, sample: Sample) -> None:
        for key in ("k" * 3_000, "a\0b\ud800", "'; --"):
            lease = take(store, "n1", key, seconds=0)
            view(store, lease).append_message("s", "user", "stored")
            take(store, "n2", key)
            with pytest.raises(StaleLease):
                view(store, lease).append_message("s", "user", "refused")

    def test_awaited_view_is_fenced_too(self, store: SessionDBProvider, sample: Sample) -> None:
        import asyncio

        from hermes.state.asynchronous.session_db import AsyncSessionDB

        lease = take(store, "n1", seconds=0)

        async def append() -> None:
            db = AsyncSessionDB(store)
            fenced = db.for_owner(EVERYBODY).fenced(lease)
            await fenced.append_message("s", "user", "in time")
            await db.turns.acquire(KEY, "n2")
            with pytest.raises(StaleLease):
                await fenced.append_message("s", "user", "late")

        asyncio.run(append())


class TestLostLease:
    @pytest.mark.parametrize("name", sorted(OF_A_VIEW))
    def test_every_write_raises_and_stores_nothing(self, store: SessionDBProvider, sample: Sample, name: str) -> None:
        lease = take(store, "n1", seconds=0)
        fenced: Any = view(store, lease)
        if name in NEEDS:
            WRITES[NEEDS[name]](fenced, sample)
        take(store, "n2")
        before = everything(store)
        with pytest.raises(StaleLease):
            WRITES[name](fenced, sample)
        assert everything(store) == before

    def test_a_message_for_a_new_session_is_not_stored(self, store: SessionDBProvider) -> None:
        lease = take(store, "n1", seconds=0)
        take(store, "n2")
        with pytest.raises(StaleLease):
            store.for_owner(EVERYBODY).fenced(lease).start_session("new", "cli", {"role": "user", "content": "x"})
        assert store.session_count() == 0

    def test_a_released_lease_is_lost(self, store: SessionDBProvider, sample: Sample) -> None:
        lease = take(store, "n1")
        store.turns.release(lease)
        with pytest.raises(StaleLease, match="n1"):
            view(store, lease).append_message("s", "user", "x")

    def test_the_same_node_with_a_newer_lease_needs_a_new_view(self, store: SessionDBProvider, sample: Sample) -> None:
        first = take(store, "n1", seconds=0)
        second = take(store, "n1")
        with pytest.raises(StaleLease):
            view(store, first).append_message("s", "user", "x")
        view(store, second).append_message("s", "user", "y")

    def test_an_unknown_lane_has_no_lease(self, store: SessionDBProvider, sample: Sample) -> None:
        with pytest.raises(StaleLease):
            view(store, Lease("nowhere", "n1", 1, 1e12)).append_message("s", "user", "x")

    def test_a_write_without_statements_is_refused_too(self, store: SessionDBProvider) -> None:
        fenced = store.for_owner(EVERYBODY).fenced(Lease(KEY, "n1", 1, 1e12))
        with pytest.raises(StaleLease):
            fenced._engine.write(lambda tx: None)

    def test_reads_need_no_lease(self, store: SessionDBProvider, sample: Sample) -> None:
        lease = take(store, "n1", seconds=0)
        take(store, "n2")
        fenced = view(store, lease)
        assert fenced.get_messages("s") == store.get_messages("s")
        assert [row["id"] for row in fenced.search_messages("hello")] == [sample.message_id]

    def test_a_narrowed_view_keeps_the_fence(self, store: SessionDBProvider, sample: Sample) -> None:
        lease = take(store, "n1", seconds=0)
        narrowed = store.for_owner(EVERYBODY).fenced(lease).narrowed_to(owner_of("telegram", "1"))
        narrowed.append_message("s", "user", "in time")
        take(store, "n2")
        with pytest.raises(StaleLease):
            narrowed.append_message("s", "user", "x")

    @pytest.mark.parametrize("lost", [KEY, OTHER])
    def test_a_view_with_two_fences_needs_both_leases(
        self, store: SessionDBProvider, sample: Sample, lost: str
    ) -> None:
        leases = [take(store, "n1", key, 0) for key in (KEY, OTHER)]
        fenced = view(store, leases[0]).fenced(leases[1])
        fenced.append_message("s", "user", "in time")
        take(store, "n2", lost)
        before = everything(store)
        with pytest.raises(StaleLease, match=lost):
            fenced.append_message("s", "user", "x")
        with pytest.raises(StaleLease, match=lost):
            fenced.set_session_title("s", "y")
        assert everything(store) == before

    @pytest.mark.parametrize("lease", [None, "n1", ("k", "n1", 1, 2.0)])
    def test_only_a_lease_makes_a_fence(self, store: SessionDBProvider, lease: Any) -> None:
        with pytest.raises(InvalidValue):
            store.for_owner(EVERYBODY).fenced(lease)


class TestSpool:
    def test_a_message_that_cannot_be_stored_is_not_spooled(
        self, store: SessionDBProvider, sample: Sample, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        engine = engine_of(store)
        lease = take(store, "n1")

        def refuse(*_: Any, **__: Any) -> Any:
            raise StoreCorrupt("damaged")

        with monkeypatch.context() as patch:
            patch.setattr(engine, "write", refuse)
            patch.setattr(engine, "append_alone", refuse)
            with pytest.raises(StoreCorrupt):
                view(store, lease).append_message("s", "user", "not spooled")
            with pytest.raises(MessageSpooled):
                store.append_message("s", "user", "spooled")
        view(store, lease).append_message("s", "user", "stored")
        assert "spooled" not in contents(store.get_messages("s"))  # a fenced view does not store the messages of others
        store.append_message("s", "user", "last")
        assert [text for text in contents(store.get_messages("s")) if "spooled" in str(text)] == ["spooled"]


class TestRaces:
    @pytest.mark.parametrize(
        "write",
        [
            lambda given, text: given.append_message("race", "user", text),
            lambda given, text: given.append_message("race", "user", text, uid=f"uid {text}"),
            lambda given, text: given.append_messages("race", [{"role": "user", "content": text}] * 2),
        ],
        ids=["one message", "one message with a uid", "two messages"],
    )
    def test_no_message_is_committed_after_another_node_has_the_lane(
        self, open_store: Opener, write: Callable[[OwnerView, str], Any]
    ) -> None:
        one, two = open_store(), open_store()
        one.create_session("race", "cli")
        one.append_message("race", "user", "first")
        seen = {"stored": 0, "refused": 0}
        with steps_are_scheduled():
            for first, second in schedules():
                key, text = f"lane {first}.{second}", f"message {first}.{second}"
                fenced = one.for_owner(EVERYBODY).fenced(take(one, "n1", key, 0))

                def take_over(key: str = key, text: str = text) -> bool:
                    """Take the lane, and look whether the message was committed before."""
                    take(two, "n2", key)
                    return text in contents(two.get_messages("race"))

                wrote, took, _ = interleave(lambda: write(fenced, text), take_over, first, second)  # noqa: B023
                assert took.error is None
                is_stored = text in contents(one.get_messages("race"))
                assert is_stored == (wrote.error is None)
                assert wrote.error is None or isinstance(wrote.error, StaleLease)
                assert not is_stored or took.result, f"committed after the take-over: {first}.{second}"
                seen["stored" if is_stored else "refused"] += 1
        assert all(seen.values()), seen

    def test_a_lost_lease_harms_no_other_writer(self, open_store: Opener) -> None:
        store = open_store()
        store.create_session("s", "cli")
        lost = take(store, "n1", seconds=0)
        take(store, "n2")
        kept = take(store, "n3", OTHER)
        begin = threading.Barrier(8)
        refused: list[str] = []
        errors: list[BaseException] = []

        def run(number: int) -> None:
            given = store.for_owner(EVERYBODY).fenced(lost if number % 2 else kept)
            begin.wait(LIMIT_S)
            for turn in range(25):
                try:
                    given.append_message("s", "user", f"{number}.{turn}")
                except StaleLease:
                    refused.append(f"{number}.{turn}")
                except BaseException as exc:
                    errors.append(exc)
                    raise

        threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(LIMIT_S)
        wanted = {f"{number}.{turn}" for number in range(8) for turn in range(25)}
        assert errors == []
        assert sorted(refused) == sorted(text for text in wanted if int(text[0]) % 2)
        assert sorted(contents(store.get_messages("s"))) == sorted(wanted - set(refused))
        assert store.message_count("s") == 100


def test_a_turn_stores_its_messages_under_its_lease(store: SessionDBProvider) -> None:
    start_lane(store)
    accept(store, "a")
    first: Claim = claim(store, "n1")
    fenced = store.for_owner(EVERYBODY).fenced(first.lease)
    fenced.append_message("s1", "user", "a", uid=first.started[0]["uid"])
    end_leases(store)
    second = claim(store, "n2")
    with pytest.raises(StaleLease):
        fenced.append_message("s1", "assistant", "from the dead")
    again = store.for_owner(EVERYBODY).fenced(second.lease)
    again.append_message("s1", "user", "a", uid=second.started[0]["uid"])
    again.append_message("s1", "assistant", "b")
    assert contents(store.get_messages("s1")) == ["a", "b"]
