"""The ledger decides whether a store can be used."""

from __future__ import annotations

import pytest

from hermes.errors import StoreError, StoreTooNew
from hermes.state.server.ledger import FORMAT, Ledger, SchemaState

KNOWN = {"0001_store": "aa", "0002_more": "bb"}


@pytest.mark.parametrize(
    ("applied", "state", "pending"),
    [
        (None, SchemaState.FRESH, ["0001_store", "0002_more"]),
        ({"0001_store": "aa"}, SchemaState.BEHIND, ["0002_more"]),
        ({"0001_store": "aa", "0002_more": "bb"}, SchemaState.CURRENT, []),
        ({"0001_store": "aa", "0002_more": "bb", "0003_later": "cc"}, SchemaState.NEWER, []),
        ({"0001_store": "xx", "0002_more": "bb"}, SchemaState.CHANGED, []),
    ],
)
def test_schema_state_follows_from_the_ledger(
    applied: dict[str, str] | None, state: SchemaState, pending: list[str]
) -> None:
    ledger = Ledger(applied)
    assert (ledger.state(KNOWN), ledger.pending(KNOWN)) == (state, pending)


def test_an_unknown_addition_alone_does_no_harm() -> None:
    Ledger({**KNOWN, "0003_later": "cc"}, FORMAT, FORMAT).require_usable(KNOWN, "here", read_only=False)


def test_a_newer_format_is_not_written() -> None:
    ledger = Ledger(KNOWN, min_reader=FORMAT, min_writer=FORMAT + 1)
    with pytest.raises(StoreTooNew, match="here") as caught:
        ledger.require_usable(KNOWN, "here", read_only=False)
    assert "read_only=True" in caught.value.hint
    ledger.require_usable(KNOWN, "here", read_only=True)


def test_a_format_that_cannot_be_read_is_not_opened_at_all() -> None:
    with pytest.raises(StoreTooNew) as caught:
        Ledger(KNOWN, FORMAT + 1, FORMAT + 1).require_usable(KNOWN, "here", read_only=True)
    assert "read_only" not in caught.value.hint


def test_tables_of_another_edition_are_left_alone() -> None:
    with pytest.raises(StoreError, match="different edition"):
        Ledger({"0001_store": "xx"}).require_usable(KNOWN, "here", read_only=True)
