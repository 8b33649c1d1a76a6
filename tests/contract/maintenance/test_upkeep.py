"""Receipts and previews of deletions, automatic pruning, and vacuum."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.state.maintenance.receipt import Outlook, Receipt
from hermes.state.provider import SessionDBProvider
from tests.support.clock import DAY_S, NOW, FakeClock
from tests.support.conversations import ids, known, say, start, start_ended


class TestReceipt:
    def test_receipt_counts_what_was_deleted(self, store: SessionDBProvider, tmp_path: Path) -> None:
        start_ended(store, "s", "t")
        say(store, "s", "more")
        start(store, "helper", parent_session_id="s", child_kind="delegate")
        say(store, "helper", "done")
        (tmp_path / "s.jsonl").write_text("{}")
        (tmp_path / "request_dump_helper_1.json").write_text("{}")
        receipt = store.delete_with_receipt(["s", "unknown"], tmp_path)
        assert receipt == Receipt(sessions=1, delegates=1, messages=3, files=2)
        assert known(store) == {"t"}

    def test_receipt_of_nothing_is_empty(self, store: SessionDBProvider) -> None:
        assert store.delete_with_receipt([]) == store.delete_with_receipt(["unknown"]) == Receipt()

    def test_receipt_of_a_prune_counts_every_slice(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start_ended(store, *(f"s{n}" for n in range(450)))
        clock.advance(100 * DAY_S)
        reports: list[tuple[str, int, int]] = []
        receipt = store.prune_with_receipt(report=lambda *progress: reports.append(progress))
        assert (receipt.sessions, receipt.messages) == (450, 450)
        assert reports == [("deleting", 200, 450), ("deleting", 400, 450), ("deleting", 450, 450)]

    def test_receipt_records_erasure(self, store: SessionDBProvider) -> None:
        start_ended(store, "s", "t")
        assert store.delete_with_receipt(["s"], secure=True).is_erased
        assert [each["session_id"] for each in store.search_messages("x")] == ["t"]

    def test_receipt_of_a_prune_records_erasure(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start_ended(store, "s")
        clock.advance(100 * DAY_S)
        assert store.prune_with_receipt(secure=True).is_erased


class TestPrunePreview:
    def test_prune_preview_counts_what_would_be_deleted(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start_ended(store, "old", "older", source="telegram")
        start(store, "helper", parent_session_id="old", child_kind="delegate")
        say(store, "helper", "done")
        clock.advance(2 * DAY_S)
        start_ended(store, "titled")
        store.set_session_title("titled", "Kept in mind")
        store.set_session_archived("titled")
        clock.advance(100 * DAY_S)
        start_ended(store, "fresh")
        assert store.preview_prune() == Outlook(
            sessions=3,
            delegates=1,
            messages=4,
            titled=1,
            archived=1,
            oldest=NOW,
            newest=NOW + 2 * DAY_S,
            by_source=(("telegram", 2), ("cli", 1)),
        )
        assert known(store) == {"old", "older", "helper", "titled", "fresh"}

    def test_prune_preview_is_empty_without_old_sessions(self, store: SessionDBProvider) -> None:
        start_ended(store, "s")
        assert store.preview_prune() == Outlook()

    def test_prune_preview_equals_what_a_prune_deletes(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start_ended(store, "a", "b", source="telegram")
        start(store, "open", source="telegram")
        clock.advance(40 * DAY_S)
        outlook = store.preview_prune(30, "telegram", include_open=True)
        receipt = store.prune_with_receipt(30, "telegram", include_open=True)
        assert (receipt.sessions, receipt.messages) == (outlook.sessions, outlook.messages) == (3, 2)


class TestIndexAndVacuum:
    def test_results_are_the_same_after_merging(self, store: SessionDBProvider) -> None:
        start_ended(store, *(f"s{n}" for n in range(20)))
        before = ids(store.search_messages("x"))
        assert store.optimize_fts() == 2
        assert ids(store.search_messages("x")) == before

    def test_everything_is_there_after_a_vacuum(self, store: SessionDBProvider) -> None:
        start_ended(store, "s", "t")
        store.delete_session("s")
        assert store.vacuum() == 2
        assert known(store) == {"t"}
        say(store, "t", "still here")
        assert ids(store.search_messages("still"))


class TestAutoPrune:
    def test_auto_prune_deletes_and_vacuums(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start_ended(store, "old")
        clock.advance(100 * DAY_S)
        start_ended(store, "new")
        assert store.maybe_auto_prune_and_vacuum() == {"skipped": False, "pruned": 1, "vacuumed": True}
        assert known(store) == {"new"}

    def test_auto_prune_is_skipped_for_a_day(self, store: SessionDBProvider, clock: FakeClock) -> None:
        assert store.maybe_auto_prune_and_vacuum() == {"skipped": False, "pruned": 0, "vacuumed": False}
        start_ended(store, "old")
        clock.advance(0.9 * DAY_S)
        assert store.maybe_auto_prune_and_vacuum(0.1) == {"skipped": True, "pruned": 0, "vacuumed": False}
        clock.advance(0.2 * DAY_S)
        assert store.maybe_auto_prune_and_vacuum(0.1, vacuum=False)["pruned"] == 1

    @pytest.mark.parametrize("note", ["garbage", "", "nan", f"{NOW + 400 * DAY_S}"])
    def test_invalid_time_of_the_last_prune_is_ignored(
        self, store: SessionDBProvider, clock: FakeClock, note: str
    ) -> None:
        store.set_meta("last_auto_prune", note)
        start_ended(store, "old")
        clock.advance(100 * DAY_S)
        assert store.maybe_auto_prune_and_vacuum(vacuum=False)["pruned"] == 1

    def test_each_source_has_its_own_retention(self, store: SessionDBProvider, clock: FakeClock) -> None:
        for source in ("cli", "telegram", "discord"):
            start_ended(store, source, source=source)
        clock.advance(40 * DAY_S)
        outcome = store.maybe_auto_prune_and_vacuum(30, retention_by_source={"telegram": 50, "discord": 0})
        assert (outcome["pruned"], known(store)) == (1, {"telegram", "discord"})
        clock.advance(400 * DAY_S)
        store.maybe_auto_prune_and_vacuum(30, retention_by_source={"telegram": 50, "discord": 0})
        assert known(store) == {"discord"}

    def test_failed_prune_is_reported_and_retried(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start_ended(store, "old")
        clock.advance(100 * DAY_S)
        assert "older_than_days" in store.maybe_auto_prune_and_vacuum(-1)["error"]
        assert store.maybe_auto_prune_and_vacuum()["pruned"] == 1
