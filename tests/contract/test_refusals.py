"""Closed and read-only stores: what they refuse, and what they still return."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes.errors import (
    StoreClosed,
    StoreError,
    StoreReadOnly,
)
from hermes.state.provider import SessionDBProvider
from hermes_state import SessionDB
from tests.support.calls import READS, WRITES, Sample, fill, refusals
from tests.support.conversations import start
from tests.support.stores import Opener


@pytest.fixture
def sample(store: SessionDBProvider, tmp_path: Path) -> Sample:
    """Fill the store with rows in every table."""
    path = tmp_path / "elsewhere.db"
    with SessionDB(path) as other:
        return fill(store, other, path)


class TestClosedStore:
    @pytest.mark.parametrize("calls", [READS, WRITES], ids=["reads", "writes"])
    def test_closed_store_refuses_every_call(
        self, store: SessionDBProvider, sample: Sample, calls: dict[str, Any]
    ) -> None:
        store.close()
        assert refusals(calls, store, sample, StoreClosed) == set(calls)

    def test_closed_store_says_what_to_do(self, store: SessionDBProvider) -> None:
        store.close()
        with pytest.raises(StoreClosed) as caught:
            store.get_session("s")
        error = caught.value
        assert (error.code, error.retryable, error.hint) == ("store_closed", False, "open a new SessionDB")

    def test_closed_store_can_be_closed_again(self, store: SessionDBProvider) -> None:
        store.close()
        store.close()
        with pytest.raises(StoreClosed):
            store.session_count()

    def test_with_block_closes_the_store(self, store: SessionDBProvider) -> None:
        with store as entered:
            assert entered is store
        with pytest.raises(StoreClosed):
            store.session_count()

    def test_closed_store_leaves_other_handles_open(self, store: SessionDBProvider, open_store: Opener) -> None:
        other = open_store()
        store.close()
        start(other, "s")
        assert other.session_count() == 1


class TestReadOnlyStore:
    def test_read_only_store_refuses_every_write(self, open_store: Opener, sample: Sample) -> None:
        # Maintenance at start-up has nothing to do here, so it does not write.
        writes = set(WRITES) - {"maybe_auto_prune_and_vacuum"}
        assert refusals(WRITES, open_store(read_only=True), sample, StoreReadOnly) == writes

    def test_read_only_store_returns_the_same_as_a_writable_one(
        self, store: SessionDBProvider, open_store: Opener, sample: Sample
    ) -> None:
        reader = open_store(read_only=True)
        answers = {name: call(reader, sample) for name, call in READS.items()}
        assert answers == {name: call(store, sample) for name, call in READS.items()}

    def test_read_only_store_has_read_only_set(self, store: SessionDBProvider, open_store: Opener) -> None:
        assert (store.read_only, open_store(read_only=True).read_only) == (False, True)

    def test_error_of_a_read_only_store_has_code_and_hint(self, store: SessionDBProvider, open_store: Opener) -> None:
        with pytest.raises(StoreReadOnly) as caught:
            open_store(read_only=True).create_session("s", "cli")
        error = caught.value
        assert (error.code, error.retryable, bool(error.hint)) == ("store_read_only", False, True)

    def test_read_only_store_sees_what_is_written_after_it_was_opened(
        self, store: SessionDBProvider, open_store: Opener
    ) -> None:
        reader = open_store(read_only=True)
        start(store, "s")
        assert reader.get_session("s") is not None

    def test_missing_read_only_store_is_an_error(self, open_store: Opener) -> None:
        with pytest.raises(StoreError):
            open_store("missing", read_only=True)
