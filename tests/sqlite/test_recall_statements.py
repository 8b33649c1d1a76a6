"""Recall reads what it needs at once: more matches and longer lineages need hardly more statements."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_state import SessionDB
from tests.sqlite.statements import recorded
from tests.support.conversations import start
from tests.support.recall import found, recall

MORE_BATCHES = 2
"""Matches are read in a few batches, and each batch asks once which of its sessions continue another one."""


def statements_of_a_discovery(path: Path, *, generations: int, matches: int) -> list[str]:
    """The statements that find three lineages of `generations` sessions with `matches` matches each."""
    with recorded() as record, SessionDB(path) as store:
        for lineage in "abc":
            start(store, f"{lineage}0")
            for number in range(1, generations):
                start(store, f"{lineage}{number}", parent_session_id=f"{lineage}{number - 1}", child_kind="branch")
            for number in range(generations):
                messages = [{"role": "user", "content": "lantern"}] * matches
                store.append_messages(f"{lineage}{number}", messages)
        with record.listening() as statements:
            assert len(found(recall(store, query="lantern"))) == 3
        return [each.sql for each in statements]


@pytest.mark.parametrize(("generations", "matches"), [(1, 10), (3, 4), (4, 4)])
def test_discovery_takes_hardly_more_statements_for_more_of_the_same(
    tmp_path: Path, generations: int, matches: int
) -> None:
    few = statements_of_a_discovery(tmp_path / "few.db", generations=1, matches=1)
    many = statements_of_a_discovery(tmp_path / "many.db", generations=generations, matches=matches)
    assert len(many) <= len(few) + MORE_BATCHES
