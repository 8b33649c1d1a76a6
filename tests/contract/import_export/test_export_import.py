"""Export and import: what goes out comes back the same, once."""

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
"""What a message may have anew in another store."""


@pytest.fixture
def other(open_store: Opener) -> SessionDBProvider:
    """A second, empty store."""
    return open_store("other")


def fill(store: SessionDBProvider, clock: FakeClock, session_id: str = "s") -> None:
    """A session that has some of everything, a rewound message too."""
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
    """An export without what depends on the store it came from, and on the way it came."""
    return {
        **data,
        "imported_from": None,
        "messages": [{k: v for k, v in message.items() if k not in PLACE} for message in data["messages"]],
    }


def relatives(store: SessionDBProvider) -> dict[str, tuple[str | None, str | None]]:
    """Parent and kind of every session."""
    return {row["id"]: (row["parent_session_id"], row["child_kind"]) for row in store.search_sessions(limit=-1)}


class TestExport:
    def test_is_the_session_with_its_messages(self, store: SessionDBProvider, clock: FakeClock) -> None:
        fill(store, clock)
        assert exported(store, "s") == {**session_of(store, "s"), "messages": store.get_messages("s")}

    def test_has_rewound_messages_when_asked(self, store: SessionDBProvider, clock: FakeClock) -> None:
        fill(store, clock)
        data = exported(store, "s", include_inactive=True)
        assert column(data["messages"], "active") == [1, 1, 1, 1, 0]

    def test_is_json_once_lone_surrogates_are_escaped(self, store: SessionDBProvider, clock: FakeClock) -> None:
        fill(store, clock)
        data = exported(store, "s", include_inactive=True)
        assert json.loads(json.dumps(data)) == data

    def test_of_an_unknown_session_is_none(self, store: SessionDBProvider) -> None:
        assert store.export_session("nobody") is None

    def test_of_all_has_every_session_latest_activity_first(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "root")
        compress(store, clock, "root", "tip")
        clock.advance(1)
        start(store, "archived")
        store.set_session_archived("archived")
        assert ids(store.export_all()) == ["archived", "tip", "root"]

    def test_of_all_is_what_the_iteration_gives(self, store: SessionDBProvider, clock: FakeClock) -> None:
        fill(store, clock, "a")
        fill(store, clock, "b")
        assert store.export_all() == list(store.iter_export())

    def test_of_one_source(self, store: SessionDBProvider) -> None:
        start(store, "a", source="cli")
        start(store, "b", source="telegram")
        assert ids(store.export_all("cli")) == ids(store.iter_export("cli")) == ["a"]

    def test_iteration_can_carry_rewound_messages(self, store: SessionDBProvider, clock: FakeClock) -> None:
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

    def test_iteration_passes_over_a_session_that_is_deleted_meanwhile(self, store: SessionDBProvider) -> None:
        start(store, "a", "b")
        iteration = store.iter_export()
        first = next(iteration)["id"]
        store.delete_sessions({"a", "b"} - {first})
        assert list(iteration) == []


class TestRoundTrip:
    def test_is_exact(self, store: SessionDBProvider, other: SessionDBProvider, clock: FakeClock) -> None:
        fill(store, clock)
        data = exported(store, "s", include_inactive=True)
        assert other.import_session(data, keep_owner=True) == "s"
        assert portable(exported(other, "s", include_inactive=True)) == portable(data)

    def test_through_json_is_exact(self, store: SessionDBProvider, other: SessionDBProvider, clock: FakeClock) -> None:
        fill(store, clock)
        data = exported(store, "s", include_inactive=True)
        other.import_session(json.loads(json.dumps(data)), keep_owner=True)
        assert portable(exported(other, "s", include_inactive=True)) == portable(data)

    def test_keeps_the_conversation(self, store: SessionDBProvider, other: SessionDBProvider, clock: FakeClock) -> None:
        fill(store, clock)
        other.import_session(exported(store, "s"))
        assert other.get_messages_as_conversation("s") == store.get_messages_as_conversation("s")

    def test_keeps_rewound_messages_hidden(
        self, store: SessionDBProvider, other: SessionDBProvider, clock: FakeClock
    ) -> None:
        fill(store, clock)
        other.import_session(exported(store, "s", include_inactive=True))
        assert column(other.get_messages("s", include_inactive=True), "active") == [1, 1, 1, 1, 0]

    def test_keeps_counters_the_sums_of_events(
        self, store: SessionDBProvider, other: SessionDBProvider, clock: FakeClock
    ) -> None:
        fill(store, clock)
        other.import_session(exported(store, "s"))
        booked = [
            (event["kind"], event["input_tokens"], event["output_tokens"]) for event in other.list_usage_events("s")
        ]
        assert booked == [("opening", 10, 20)]

    def test_keeps_the_count_of_tools(
        self, store: SessionDBProvider, other: SessionDBProvider, clock: FakeClock
    ) -> None:
        fill(store, clock)
        other.import_session(exported(store, "s"))
        assert other.get_session_tools("s") == {"terminal": 1}

    def test_of_all_sessions_keeps_their_relations(
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

    def test_of_all_sessions_keeps_the_list(
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
        """An export with two messages, of a session that has three by now."""
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

    def test_merge_changes_nothing_that_is_there(self, store: SessionDBProvider, data: Row) -> None:
        before = exported(store, "s")
        store.import_session({**data, "title": "Another", "model": "another"}, on_conflict="merge")
        assert exported(store, "s") == before

    @pytest.mark.parametrize("on_conflict", ["skip", "merge"])
    def test_twice_is_once(self, other: SessionDBProvider, data: Row, on_conflict: Any) -> None:
        other.import_session(data, on_conflict=on_conflict)
        once = exported(other, "s")
        other.import_session(data, on_conflict=on_conflict)
        assert exported(other, "s") == once

    @pytest.mark.parametrize("on_conflict", ["skip", "merge"])
    def test_twice_is_once_for_messages_without_uid(self, other: SessionDBProvider, on_conflict: Any) -> None:
        messages = [{"role": "user", "content": "same"}, {"role": "user", "content": "same"}]
        for _ in range(2):
            other.import_session({"id": "s", "messages": messages}, on_conflict=on_conflict)
        assert contents(other.get_messages("s")) == ["same", "same"]

    def test_title_that_is_taken_gets_a_number(self, store: SessionDBProvider, other: SessionDBProvider) -> None:
        start(store, "s")
        store.set_session_title("s", "Docker")
        start(other, "holder")
        other.set_session_title("holder", "Docker")
        other.import_session(exported(store, "s"))
        assert other.get_session_title("s") == "Docker (2)"


class TestForeignData:
    @pytest.mark.parametrize(("told", "archived"), [(True, 1), (2, 1), (0, 0), (False, 0)])
    def test_flag_becomes_yes_or_no(self, store: SessionDBProvider, told: object, archived: int) -> None:
        store.import_session({"id": "s", "source": "cli", "archived": told})
        assert session_of(store, "s")["archived"] == archived

    def test_only_an_id_is_needed(self, store: SessionDBProvider) -> None:
        store.import_session({"id": "s"})
        assert session_of(store, "s")["source"] == "unknown"

    def test_unknown_parent_is_no_obstacle(self, store: SessionDBProvider) -> None:
        store.import_session({"id": "s", "parent_session_id": "elsewhere"})
        assert ids(store.list_sessions_rich()) == ["s"]

    def test_unknown_columns_are_passed_over(self, store: SessionDBProvider) -> None:
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
    def test_rubbish_is_refused_whole(self, store: SessionDBProvider, data: Any) -> None:
        with pytest.raises(InvalidValue):
            store.import_session(data)
        assert store.session_count() == 0

    def test_title_that_is_too_long_is_refused(self, store: SessionDBProvider) -> None:
        with pytest.raises(InvalidTitle):
            store.import_session({"id": "s", "title": "A" * 101})

    def test_unknown_way_of_solving_conflicts_is_refused(self, store: SessionDBProvider) -> None:
        way: Any = "overwrite"
        with pytest.raises(InvalidValue, match="skip, rename or merge"):
            store.import_session({"id": "s"}, on_conflict=way)


class TestDatabase:
    @pytest.fixture
    def file(self, tmp_path: Path, clock: FakeClock) -> Path:
        """A database file with a chain, a branch and a session with some of everything."""
        path = tmp_path / "elsewhere.db"
        with SessionDB(path, clock=clock) as source:
            start(source, "root")
            talk(source, "root", 1)
            compress(source, clock, "root", "tip")
            say(source, "tip", "after")
            start(source, "branch", parent_session_id="root", child_kind="branch")
            fill(source, clock, "full")
        return path

    def test_counts_what_was_new(self, store: SessionDBProvider, file: Path) -> None:
        assert store.import_database(file) == {"sessions": 4, "messages": 8, "sessions_seen": 4}

    def test_a_second_time_finds_nothing_new(self, store: SessionDBProvider, file: Path) -> None:
        store.import_database(file)
        assert store.import_database(file) == {"sessions": 0, "messages": 0, "sessions_seen": 4}

    def test_is_exact(self, store: SessionDBProvider, file: Path) -> None:
        store.import_database(str(file), keep_owners=True)
        with SessionDB(file, read_only=True) as source:
            theirs = {each["id"]: portable({**each}) for each in source.iter_export(include_inactive=True)}
        ours = {each["id"]: portable({**each}) for each in store.iter_export(include_inactive=True)}
        assert ours == theirs

    def test_keeps_relations(self, store: SessionDBProvider, file: Path) -> None:
        store.import_database(file)
        with SessionDB(file, read_only=True) as source:
            assert relatives(store) == relatives(source)

    def test_merges_into_sessions_that_are_there_if_it_may(self, store: SessionDBProvider, file: Path) -> None:
        start(store, "tip")
        say(store, "tip", "own")
        assert store.import_database(file, add_to_own=True)["sessions"] == 3
        assert contents(store.get_messages("tip")) == ["own", "after"]

    def test_leaves_sessions_alone_that_were_made_here(self, store: SessionDBProvider, file: Path) -> None:
        start(store, "tip")
        say(store, "tip", "own")
        before = exported(store, "tip")
        assert store.import_database(file) == {"sessions": 3, "messages": 7, "sessions_seen": 4}
        assert exported(store, "tip") == before

    def test_marks_its_sessions(self, store: SessionDBProvider, file: Path) -> None:
        store.import_database(file)
        assert {row["imported_from"] for row in store.search_sessions(limit=-1)} == {str(file)}

    def test_missing_file_is_an_error(self, store: SessionDBProvider, tmp_path: Path) -> None:
        with pytest.raises(HermesError):
            store.import_database(tmp_path / "missing.db")
        assert not (tmp_path / "missing.db").exists()
