"""Stores that are closed or read-only: what they refuse, and what they still answer."""

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
    """The store, filled with some of everything."""
    path = tmp_path / "elsewhere.db"
    with SessionDB(path) as other:
        return fill(store, other, path)


class TestClosedStore:
    @pytest.mark.parametrize("calls", [READS, WRITES], ids=["reads", "writes"])
    def test_refuses_every_call(self, store: SessionDBProvider, sample: Sample, calls: dict[str, Any]) -> None:
        store.close()
        assert refusals(calls, store, sample, StoreClosed) == set(calls)

    def test_says_what_to_do(self, store: SessionDBProvider) -> None:
        store.close()
        with pytest.raises(StoreClosed) as caught:
            store.get_session("s")
        error = caught.value
        assert (error.code, error.retryable, error.hint) == ("store_closed", False, "open a new SessionDB")

    def test_can_be_closed_again(self, store: SessionDBProvider) -> None:
        store.close()
        store.close()
        with pytest.raises(StoreClosed):
            store.session_count()

    def test_is_what_a_with_block_leaves(self, store: SessionDBProvider) -> None:
        with store as entered:
            assert entered is store
        with pytest.raises(StoreClosed):
            store.session_count()

    def test_leaves_other_handles_open(self, store: SessionDBProvider, open_store: Opener) -> None:
        other = open_store()
        store.close()
        start(other, "s")
        assert other.session_count() == 1


class TestReadOnlyStore:
    def test_refuses_every_write(self, open_store: Opener, sample: Sample) -> None:
        # What is done at every start, where there is something to do, has nothing to do here.
        writes = set(WRITES) - {"maybe_auto_prune_and_vacuum"}
        assert refusals(WRITES, open_store(read_only=True), sample, StoreReadOnly) == writes

    def test_answers_every_read_as_a_writable_one_does(
        self, store: SessionDBProvider, open_store: Opener, sample: Sample
    ) -> None:
        reader = open_store(read_only=True)
        answers = {name: call(reader, sample) for name, call in READS.items()}
        assert answers == {name: call(store, sample) for name, call in READS.items()}

    def test_says_so(self, store: SessionDBProvider, open_store: Opener) -> None:
        assert (store.read_only, open_store(read_only=True).read_only) == (False, True)

    def test_error_has_code_and_hint(self, store: SessionDBProvider, open_store: Opener) -> None:
        with pytest.raises(StoreReadOnly) as caught:
            open_store(read_only=True).create_session("s", "cli")
        error = caught.value
        assert (error.code, error.retryable, bool(error.hint)) == ("store_read_only", False, True)

    def test_sees_what_is_written_after_it_was_opened(self, store: SessionDBProvider, open_store: Opener) -> None:
        reader = open_store(read_only=True)
        start(store, "s")
        assert reader.get_session("s") is not None

    def test_that_does_not_exist_is_an_error(self, open_store: Opener) -> None:
        with pytest.raises(StoreError):
            open_store("missing", read_only=True)
