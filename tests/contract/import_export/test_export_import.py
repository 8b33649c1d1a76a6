"""An exported session is imported unchanged, and only once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import HermesError, InvalidTitle, InvalidValue
from hermes.state.provider import SessionDBProvider
from hermes_state import SessionDB
from tests.support.clock import FakeClock
from tests.support.conversations import (
    Row,
    column,
    compress,
    contents,
    exported,
    ids,
    say,
    session_of,
    start,
    talk,
)
from tests.support.stores import Opener

CALLS = [{"id": "c1", "function": {"name": "terminal", "arguments": "{}"}}]
PLACE = {"id", "session_id"}
"""Columns of a message that another store assigns again."""


@pytest.fixture
def other(open_store: Opener) -> SessionDBProvider:
    """A second, empty store."""
    return open_store("other")


def fill(store: SessionDBProvider, clock: FakeClock, session_id: str = "s") -> None:
    """Create a session with rows in every table, including an undone message."""
    start(
        store,
        session_id,
        source="telegram",
        user_id="1",
        model="m",
        model_config={"t": 1},
        system_prompt="a\0b",
        cwd="/",
    )
    store.set_session_title(session_id, f"Title of {session_id}")
    store.append_message(
        session_id, "user", [{"type": "text", "text": "look"}], platform_message_id="tg-1", observed=True
    )
    clock.advance(1)
    store.append_message(
        session_id, "assistant", None, tool_calls=CALLS, reasoning="hm", reasoning_details=[{"a": "ü"}]
    )
    store.append_message(session_id, "tool", "out\0put \ud800", tool_name="terminal", tool_call_id="c1")
    store.append_message(session_id, "assistant", "", finish_reason="stop", reasoning_content="", token_count=5)
    rewound = store.append_message(session_id, "user", "oops")
    store.rewind_to_message(session_id, rewound)
    store.update_token_counts(session_id, 10, 20, estimated_cost_usd=0.5, billing_provider="p", cost_status="final")
    store.set_session_pinned(session_id)
    store.end_session(session_id, "user_exit")


def portable(data: Row) -> Row:
    """Return an export without the values that depend on its store or on its import."""
    return {
        **data,
        "imported_from": None,
        "messages": [{k: v for k, v in message.items() if k not in PLACE} for message in data["messages"]],
    }


def relatives(store: SessionDBProvider) -> dict[str, tuple[str | None, str | None]]:
    """Return parent and kind of every session."""
    return {row["id"]: (row["parent_session_id"], row["child_kind"]) for row in store.search_sessions(limit=-1)}


class TestExport:
    def test_export_is_the_session_with_its_messages(self, store: SessionDBProvider, clock: FakeClock) -> None:
        fill(store, clock)
        assert exported(store, "s") == {**session_of(store, "s"), "messages": store.get_messages("s")}

    def test_export_includes_undone_messages_on_request(self, store: SessionDBProvider, clock: FakeClock) -> None:
        fill(store, clock)
        data = exported(store, "s", include_inactive=True)
        assert column(data["messages"], "active") == [1, 1, 1, 1, 0]

    def test_export_is_json_once_lone_surrogates_are_escaped(self, store: SessionDBProvider, clock: FakeClock) -> None:
        fill(store, clock)
        data = exported(store, "s", include_inactive=True)
        assert json.loads(json.dumps(data)) == data

    def test_export_of_an_unknown_session_is_none(self, store: SessionDBProvider) -> None:
        assert store.export_session("missing") is None

    def test_export_all_has_every_session_latest_activity_first(
        self, store: SessionDBProvider, clock: FakeClock
    ) -> None:
        start(store, "root")
        compress(store, clock, "root", "tip")
        clock.advance(1)
        start(store, "archived")
        store.set_session_archived("archived")
        assert ids(store.export_all()) == ["archived", "tip", "root"]

    def test_export_all_equals_iter_export(self, store: SessionDBProvider, clock: FakeClock) -> None:
        fill(store, clock, "a")
        fill(store, clock, "b")
        assert store.export_all() == list(store.iter_export())

    def test_export_can_be_limited_to_one_source(self, store: SessionDBProvider) -> None:
        start(store, "a", source="cli")
        start(store, "b", source="telegram")
        assert ids(store.export_all("cli")) == ids(store.iter_export("cli")) == ["a"]

    def test_iteration_can_include_undone_messages(self, store: SessionDBProvider, clock: FakeClock) -> None:
        fill(store, clock)
        assert [len(each["messages"]) for each in store.iter_export(include_inactive=True)] == [5]

    def test_iteration_neither_repeats_nor_skips_while_sessions_change(
        self, store: SessionDBProvider, clock: FakeClock
    ) -> None:
        start(store, "a", "b", "c")
        seen = []
        for data in store.iter_export():
            seen.append(data["id"])
            clock.advance(1)
            say(store, "a", "busy")
        assert sorted(seen) == ["a", "b", "c"]

    def test_iteration_skips_a_session_that_is_deleted_meanwhile(self, store: SessionDBProvider) -> None:
        start(store, "a", "b")
        iteration = store.iter_export()
        first = next(iteration)["id"]
        store.delete_sessions({"a", "b"} - {first})
        assert list(iteration) == []


class TestRoundTrip:
    def test_round_trip_is_exact(self, store: SessionDBProvider, other: SessionDBProvider, clock: FakeClock) -> None:
        fill(store, clock)
        data = exported(store, "s", include_inactive=True)
        assert other.import_session(data, keep_owner=True) == "s"
        assert portable(exported(other, "s", include_inactive=True)) == portable(data)

    def test_round_trip_through_json_is_exact(
        self, store: SessionDBProvider, other: SessionDBProvider, clock: FakeClock
    ) -> None:
        fill(store, clock)
        data = exported(store, "s", include_inactive=True)
        other.import_session(json.loads(json.dumps(data)), keep_owner=True)
        assert portable(exported(other, "s", include_inactive=True)) == portable(data)

    def test_round_trip_keeps_the_conversation(
        self, store: SessionDBProvider, other: SessionDBProvider, clock: FakeClock
    ) -> None:
        fill(store, clock)
        other.import_session(exported(store, "s"))
        assert other.get_messages_as_conversation("s") == store.get_messages_as_conversation("s")

    def test_round_trip_keeps_undone_messages_hidden(
        self, store: SessionDBProvider, other: SessionDBProvider, clock: FakeClock
    ) -> None:
        fill(store, clock)
        other.import_session(exported(store, "s", include_inactive=True))
        assert column(other.get_messages("s", include_inactive=True), "active") == [1, 1, 1, 1, 0]

    def test_round_trip_keeps_counters_the_sums_of_events(
        self, store: SessionDBProvider, other: SessionDBProvider, clock: FakeClock
    ) -> None:
        fill(store, clock)
        other.import_session(exported(store, "s"))
        booked = [
            (event["kind"], event["input_tokens"], event["output_tokens"]) for event in other.list_usage_events("s")
        ]
        assert booked == [("opening", 10, 20)]

    def test_round_trip_keeps_the_count_of_tools(
        self, store: SessionDBProvider, other: SessionDBProvider, clock: FakeClock
    ) -> None:
        fill(store, clock)
        other.import_session(exported(store, "s"))
        assert other.get_session_tools("s") == {"terminal": 1}

    def test_round_trip_of_all_sessions_keeps_their_relations(
        self, store: SessionDBProvider, other: SessionDBProvider, clock: FakeClock
    ) -> None:
        start(store, "root")
        talk(store, "root", 1)
        compress(store, clock, "root", "tip")
        say(store, "tip", "after")
        start(store, "branch", parent_session_id="root", child_kind="branch")
        start(store, "helper", parent_session_id="tip", child_kind="delegate")
        for data in store.iter_export(include_inactive=True):
            other.import_session(data)
        assert relatives(other) == relatives(store)

    def test_round_trip_of_all_sessions_keeps_the_list(
        self, store: SessionDBProvider, other: SessionDBProvider, clock: FakeClock
    ) -> None:
        start(store, "root")
        clock.advance(1)
        start(store, "newer")
        compress(store, clock, "root", "tip")
        say(store, "tip", "after")
        for data in store.iter_export():
            other.import_session(data)
        listed = other.list_sessions_rich(order_by_last_active=True)
        assert ids(listed) == ids(store.list_sessions_rich(order_by_last_active=True)) == ["tip", "newer"]


class TestConflict:
    @pytest.fixture
    def data(self, store: SessionDBProvider) -> Row:
        """Export a session with two messages that has three afterwards."""
        start(store, "s", model="m")
        store.set_session_title("s", "Docker")
        say(store, "s", "one", "two")
        data = exported(store, "s")
        say(store, "s", "three")
        return data

    def test_skip_leaves_the_session_alone(self, store: SessionDBProvider, data: Row) -> None:
        before = exported(store, "s")
        assert store.import_session({**data, "model": "another"}) == "s"
        assert exported(store, "s") == before

    def test_rename_takes_a_new_id(self, store: SessionDBProvider, data: Row) -> None:
        renamed = store.import_session(data, on_conflict="rename")
        assert renamed != "s"
        assert contents(store.get_messages(renamed)) == ["one", "two"]

    def test_rename_leaves_the_old_session_alone(self, store: SessionDBProvider, data: Row) -> None:
        before = exported(store, "s")
        store.import_session(data, on_conflict="rename")
        assert exported(store, "s") == before

    def test_rename_numbers_the_title(self, store: SessionDBProvider, data: Row) -> None:
        assert store.get_session_title(store.import_session(data, on_conflict="rename")) == "Docker (2)"

    def test_rename_without_conflict_keeps_the_id(self, other: SessionDBProvider, data: Row) -> None:
        assert other.import_session(data, on_conflict="rename") == "s"

    def test_merge_adds_what_is_missing(self, store: SessionDBProvider, other: SessionDBProvider, data: Row) -> None:
        other.import_session(data)
        other.import_session(exported(store, "s"), on_conflict="merge")
        assert contents(other.get_messages("s")) == ["one", "two", "three"]

    def test_merge_changes_no_existing_message(self, store: SessionDBProvider, data: Row) -> None:
        before = exported(store, "s")
        store.import_session({**data, "title": "Another", "model": "another"}, on_conflict="merge")
        assert exported(store, "s") == before

    @pytest.mark.parametrize("on_conflict", ["skip", "merge"])
    def test_importing_twice_adds_nothing(self, other: SessionDBProvider, data: Row, on_conflict: Any) -> None:
        other.import_session(data, on_conflict=on_conflict)
        once = exported(other, "s")
        other.import_session(data, on_conflict=on_conflict)
        assert exported(other, "s") == once

    @pytest.mark.parametrize("on_conflict", ["skip", "merge"])
    def test_importing_twice_adds_no_messages_without_uid(self, other: SessionDBProvider, on_conflict: Any) -> None:
        messages = [{"role": "user", "content": "same"}, {"role": "user", "content": "same"}]
        for _ in range(2):
            other.import_session({"id": "s", "messages": messages}, on_conflict=on_conflict)
        assert contents(other.get_messages("s")) == ["same", "same"]

    def test_taken_title_gets_a_number(self, store: SessionDBProvider, other: SessionDBProvider) -> None:
        start(store, "s")
        store.set_session_title("s", "Docker")
        start(other, "holder")
        other.set_session_title("holder", "Docker")
        other.import_session(exported(store, "s"))
        assert other.get_session_title("s") == "Docker (2)"


class TestForeignData:
    @pytest.mark.parametrize(("given", "archived"), [(True, 1), (2, 1), (0, 0), (False, 0)])
    def test_flag_becomes_yes_or_no(self, store: SessionDBProvider, given: object, archived: int) -> None:
        store.import_session({"id": "s", "source": "cli", "archived": given})
        assert session_of(store, "s")["archived"] == archived

    def test_import_needs_only_an_id(self, store: SessionDBProvider) -> None:
        store.import_session({"id": "s"})
        assert session_of(store, "s")["source"] == "unknown"

    def test_unknown_parent_does_not_stop_an_import(self, store: SessionDBProvider) -> None:
        store.import_session({"id": "s", "parent_session_id": "elsewhere"})
        assert ids(store.list_sessions_rich()) == ["s"]

    def test_unknown_columns_are_ignored(self, store: SessionDBProvider) -> None:
        store.import_session(
            {"id": "s", "mood": "good", "messages": [{"role": "user", "content": "x", "mood": "good"}]}
        )
        assert contents(store.get_messages("s")) == ["x"]

    @pytest.mark.parametrize(
        "data",
        [
            None,
            [],
            "s",
            {},
            {"id": ""},
            {"id": 5},
            {"id": "s", "messages": "x"},
            {"id": "s", "messages": {"role": "user"}},
            {"id": "s", "messages": ["x"]},
            {"id": "s", "messages": [{"content": "x"}]},
            {"id": "s", "messages": [{"role": "user", "content": 5}]},
            {"id": "s", "child_kind": "cousin"},
            {"id": "s", "model": 5},
            {"id": "s", "ended_at": "yesterday"},
            {"id": "s", "ended_at": {}},
            {"id": "s", "end_reason": 5},
            {"id": "s", "archived": "no"},
            {"id": "s", "input_tokens": "many"},
            {"id": "s", "input_tokens": 1.5},
            {"id": "s", "estimated_cost_usd": "free"},
            {"id": "s", "billing_provider": ["x"]},
        ],
        ids=str,
    )
    def test_invalid_data_is_refused_completely(self, store: SessionDBProvider, data: Any) -> None:
        with pytest.raises(InvalidValue):
            store.import_session(data)
        assert store.session_count() == 0

    def test_title_that_is_too_long_is_refused(self, store: SessionDBProvider) -> None:
        with pytest.raises(InvalidTitle):
            store.import_session({"id": "s", "title": "A" * 101})

    def test_unknown_on_conflict_value_is_refused(self, store: SessionDBProvider) -> None:
        way: Any = "overwrite"
        with pytest.raises(InvalidValue, match="skip, rename or merge"):
            store.import_session({"id": "s"}, on_conflict=way)


class TestDatabase:
    @pytest.fixture
    def file(self, tmp_path: Path, clock: FakeClock) -> Path:
        """Create a database file with a chain, a branch and a session with rows in every table."""
        path = tmp_path / "elsewhere.db"
        with SessionDB(path, clock=clock) as source:
            start(source, "root")
            talk(source, "root", 1)
            compress(source, clock, "root", "tip")
            say(source, "tip", "after")
            start(source, "branch", parent_session_id="root", child_kind="branch")
            fill(source, clock, "full")
        return path

    def test_import_of_a_database_counts_what_was_new(self, store: SessionDBProvider, file: Path) -> None:
        assert store.import_database(file) == {"sessions": 4, "messages": 8, "sessions_seen": 4}

    def test_second_import_of_a_database_finds_nothing_new(self, store: SessionDBProvider, file: Path) -> None:
        store.import_database(file)
        assert store.import_database(file) == {"sessions": 0, "messages": 0, "sessions_seen": 4}

    def test_import_of_a_database_is_exact(self, store: SessionDBProvider, file: Path) -> None:
        store.import_database(str(file), keep_owners=True)
        with SessionDB(file, read_only=True) as source:
            theirs = {each["id"]: portable({**each}) for each in source.iter_export(include_inactive=True)}
        ours = {each["id"]: portable({**each}) for each in store.iter_export(include_inactive=True)}
        assert ours == theirs

    def test_import_of_a_database_keeps_relations(self, store: SessionDBProvider, file: Path) -> None:
        store.import_database(file)
        with SessionDB(file, read_only=True) as source:
            assert relatives(store) == relatives(source)

    def test_import_of_a_database_merges_into_existing_sessions_if_allowed(
        self, store: SessionDBProvider, file: Path
    ) -> None:
        start(store, "tip")
        say(store, "tip", "own")
        assert store.import_database(file, add_to_own=True)["sessions"] == 3
        assert contents(store.get_messages("tip")) == ["own", "after"]

    def test_import_of_a_database_leaves_own_sessions_alone(self, store: SessionDBProvider, file: Path) -> None:
        start(store, "tip")
        say(store, "tip", "own")
        before = exported(store, "tip")
        assert store.import_database(file) == {"sessions": 3, "messages": 7, "sessions_seen": 4}
        assert exported(store, "tip") == before

    def test_import_of_a_database_marks_its_sessions(self, store: SessionDBProvider, file: Path) -> None:
        store.import_database(file)
        assert {row["imported_from"] for row in store.search_sessions(limit=-1)} == {str(file)}

    def test_missing_file_is_an_error(self, store: SessionDBProvider, tmp_path: Path) -> None:
        with pytest.raises(HermesError):
            store.import_database(tmp_path / "missing.db")
        assert not (tmp_path / "missing.db").exists()
