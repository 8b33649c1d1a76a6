"""Children and chains in lists: which are shown, and as what."""

from __future__ import annotations

import pytest

from hermes.state.provider import SessionDBProvider
from tests.support.clock import NOW, FakeClock
from tests.support.conversations import column, compress, ids, say, start, start_apart, talk


class TestChildren:
    @pytest.mark.parametrize(
        ("kind", "listed"),
        [
            ("branch", True),
            ("reset", True),
            ("import", True),
            ("compression", False),
            ("delegate", False),
            (None, False),
        ],
    )
    def test_children_are_listed_by_kind(self, store: SessionDBProvider, kind: str | None, listed: bool) -> None:
        start(store, "parent")
        start(store, "child", parent_session_id="parent", child_kind=kind)
        rows = store.list_sessions_rich(project_compression_tips=False)
        assert ("child" in ids(rows)) == listed

    def test_children_are_all_listed_when_asked_for(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start_apart(store, clock, "parent")
        start_apart(store, clock, "delegate", parent_session_id="parent", child_kind="delegate")
        start_apart(store, clock, "other", parent_session_id="parent")
        assert ids(store.list_sessions_rich(include_children=True)) == ["other", "delegate", "parent"]

    def test_delegate_without_parent_stays_hidden(self, store: SessionDBProvider) -> None:
        start(store, "helper", child_kind="delegate")
        assert store.list_sessions_rich() == []


class TestChains:
    @pytest.fixture
    def chain(self, store: SessionDBProvider, clock: FakeClock) -> SessionDBProvider:
        start(store, "root", model="old model", system_prompt="old prompt", cwd="/old")
        say(store, "root", "root preview")
        store.update_token_counts("root", input_tokens=7)
        store.set_session_title("root", "Docker")
        compress(store, clock, "root", "middle")
        compress(store, clock, "middle", "tip", model="new model", system_prompt="new prompt", cwd="/new")
        talk(store, "tip", 2)
        store.set_session_title("tip", "Docker #3")
        return store

    def test_chain_is_listed_as_one_row(self, chain: SessionDBProvider) -> None:
        assert ids(chain.list_sessions_rich()) == ["tip"]

    def test_row_of_a_chain_names_its_root(self, chain: SessionDBProvider) -> None:
        assert chain.list_sessions_rich()[0]["_lineage_root_id"] == "root"

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("title", "Docker #3"),
            ("preview", "question 0"),
            ("message_count", 4),
            ("model", "new model"),
            ("system_prompt", "new prompt"),
            ("cwd", "/new"),
            ("end_reason", None),
            ("last_active", NOW + 2),
        ],
    )
    def test_row_of_a_chain_shows_its_tip(self, chain: SessionDBProvider, name: str, value: object) -> None:
        assert column(chain.list_sessions_rich(), name) == [value]

    @pytest.mark.parametrize(("name", "value"), [("started_at", NOW), ("input_tokens", 7), ("parent_session_id", None)])
    def test_row_of_a_chain_keeps_values_of_its_root(self, chain: SessionDBProvider, name: str, value: object) -> None:
        assert column(chain.list_sessions_rich(), name) == [value]

    def test_chains_are_shown_as_roots_when_not_projected(self, chain: SessionDBProvider) -> None:
        (row,) = chain.list_sessions_rich(project_compression_tips=False)
        assert (row["id"], "_lineage_root_id" in row) == ("root", False)

    def test_chains_are_shown_link_by_link_with_children(self, chain: SessionDBProvider) -> None:
        assert ids(chain.list_sessions_rich(include_children=True)) == ["tip", "middle", "root"]

    def test_session_ended_by_compression_without_continuation_is_listed_itself(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.end_session("s", "compression")
        (row,) = store.list_sessions_rich()
        assert (row["id"], "_lineage_root_id" in row) == ("s", False)

    def test_chain_is_archived_as_one(self, chain: SessionDBProvider) -> None:
        chain.set_session_archived("tip")
        assert (chain.list_sessions_rich(), ids(chain.list_sessions_rich(archived_only=True))) == ([], ["tip"])
