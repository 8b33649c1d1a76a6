"""A file cannot change or replace own sessions, choose owners, or set times in the future."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hermes.errors import InvalidValue
from hermes.state.provider import SessionDBProvider
from tests.support.clock import NOW, FakeClock
from tests.support.conversations import Row, compress, contents, exported, ids, say, session_of, start

FUTURE = NOW + 10**8
SCHEMA = "hermes.export/1"


def foreign_export(session_id: str, *texts: str, **fields: Any) -> Row:
    """Return a session as a file may contain it."""
    messages = [{"role": "user", "content": text, "uid": f"{session_id}-{text}"} for text in texts]
    return {"schema": SCHEMA, "id": session_id, "source": "cli", "messages": messages, **fields}


@pytest.fixture
def mine(store: SessionDBProvider) -> Row:
    """Create an own session, ended by a compression that is not finished."""
    start(store, "mine")
    say(store, "mine", "own")
    store.end_session("mine", "compression")
    return exported(store, "mine")


class TestMark:
    def test_import_mark_is_the_name_of_the_file(self, store: SessionDBProvider) -> None:
        store.import_session(foreign_export("s", "hello"), imported_from="ada.jsonl")
        assert session_of(store, "s")["imported_from"] == "ada.jsonl"

    def test_import_mark_exists_without_a_file_name(self, store: SessionDBProvider) -> None:
        store.import_session(foreign_export("s", "hello"))
        assert session_of(store, "s")["imported_from"] == "import_session"

    def test_import_mark_cannot_be_omitted_by_the_file(self, store: SessionDBProvider) -> None:
        with pytest.raises(InvalidValue):
            store.import_session(foreign_export("s", "hello"), imported_from="")

    def test_import_mark_inside_a_file_is_ignored(self, store: SessionDBProvider) -> None:
        store.import_session(foreign_export("s", "hello", imported_from=None))
        store.import_session(foreign_export("t", "hello", imported_from="elsewhere"))
        assert {session_of(store, each)["imported_from"] for each in "st"} == {"import_session"}

    def test_import_mark_is_not_on_own_sessions(self, store: SessionDBProvider, mine: Row) -> None:
        assert mine["imported_from"] is None

    def test_import_mark_is_inherited_by_branches_and_continuations(self, store: SessionDBProvider) -> None:
        store.import_session(foreign_export("s", "hello"), imported_from="ada.jsonl")
        store.branch_session("s", "branch")
        store.compress_session("branch", "tip", "in short", tail_from=store.get_messages("branch")[0]["id"])
        assert {session_of(store, each)["imported_from"] for each in ("branch", "tip")} == {"ada.jsonl"}


class TestMine:
    @pytest.mark.parametrize("on_conflict", ["skip", "merge", "rename"])
    def test_own_session_is_not_changed_by_an_import(
        self, store: SessionDBProvider, mine: Row, on_conflict: Any
    ) -> None:
        usage = [{"at": 5.0, "kind": "delta", "input_tokens": 99}]
        store.import_session(foreign_export("mine", "evil", title="Mine", usage=usage), on_conflict=on_conflict)
        assert exported(store, "mine") == mine

    def test_own_session_gets_messages_from_a_file_that_may_merge(self, store: SessionDBProvider, mine: Row) -> None:
        store.import_session(foreign_export("mine", "more"), on_conflict="merge", add_to_own=True)
        assert contents(store.get_messages("mine")) == ["own", "more"]

    @pytest.mark.parametrize("kind", ["compression", "branch", "delegate", "reset", None])
    def test_own_session_gets_no_child_from_a_file(self, store: SessionDBProvider, mine: Row, kind: str | None) -> None:
        fields = {} if kind is None else {"child_kind": kind}
        store.import_session(foreign_export("evil", "evil", parent_session_id="mine", **fields))
        assert store.get_compression_tip("mine") == "mine"
        assert session_of(store, "evil")["parent_session_id"] is None
        assert session_of(store, "evil")["chain_root"] is None

    def test_own_session_gets_no_pending_child_from_a_file(self, store: SessionDBProvider) -> None:
        store.import_session(foreign_export("evil", "evil", parent_session_id="later", child_kind="compression"))
        start(store, "later")
        say(store, "later", "own")
        store.import_session(foreign_export("later", "own"), on_conflict="merge")
        assert store.get_compression_tip("later") == "later"

    def test_own_session_gets_a_child_from_a_file_that_may_merge(self, store: SessionDBProvider, mine: Row) -> None:
        fields = foreign_export("next", "more", parent_session_id="mine", child_kind="compression")
        store.import_session(fields, add_to_own=True)
        assert store.get_compression_tip("mine") == "next"


class TestTitle:
    @pytest.mark.parametrize("title", ["Docker", "Docker #7"])
    @pytest.mark.parametrize("comes_first", [True, False])
    def test_title_of_an_own_session_still_finds_it(
        self, store: SessionDBProvider, title: str, comes_first: bool
    ) -> None:
        if comes_first:
            store.import_session(foreign_export("evil", "evil", title="Docker #7"))
        start(store, "mine")
        store.set_session_title("mine", "Docker")
        if not comes_first:
            store.import_session(foreign_export("evil", "evil", title=title))
        assert store.resolve_session_by_title("Docker") == "mine"

    def test_title_of_imported_sessions_finds_the_newest(self, store: SessionDBProvider) -> None:
        for number, title in enumerate(["Docker #2", "Docker"]):
            store.import_session(foreign_export(f"s{number}", "hello", title=title))
        assert store.resolve_session_by_title("Docker") == "s0"


class TestOtherFiles:
    def test_sessions_of_other_files_are_not_continued(self, store: SessionDBProvider) -> None:
        store.import_session(foreign_export("s", "hello"), imported_from="ada.jsonl")
        fields = foreign_export("evil", "evil", parent_session_id="s", child_kind="compression")
        store.import_session(fields, imported_from="evil.jsonl")
        assert store.get_compression_tip("s") == "s"
        assert set(ids(store.list_sessions_rich())) == {"s", "evil"}

    def test_sessions_of_other_files_are_not_continued_by_pending_children(self, store: SessionDBProvider) -> None:
        fields = foreign_export("evil", "evil", parent_session_id="s", child_kind="compression")
        store.import_session(fields, imported_from="evil.jsonl")
        store.import_session(foreign_export("s", "hello"), imported_from="ada.jsonl")
        assert store.get_compression_tip("s") == "s"

    def test_sessions_of_other_files_may_be_parents_of_branches(self, store: SessionDBProvider) -> None:
        store.import_session(foreign_export("s", "hello"), imported_from="one.jsonl")
        store.import_session(
            foreign_export("t", "hi", parent_session_id="s", child_kind="branch"), imported_from="two.jsonl"
        )
        assert session_of(store, "t")["parent_session_id"] == "s"

    def test_a_family_that_is_too_deep_is_not_linked_further(
        self, store: SessionDBProvider, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("hermes.state.import_export.session_writer.MOST_GENERATIONS", 5)
        for number in range(8):
            fields = {"parent_session_id": f"s{number - 1}", "child_kind": "branch"} if number else {}
            store.import_session(foreign_export(f"s{number}", "x", **fields))
        parents = [session_of(store, f"s{number}")["parent_session_id"] for number in range(8)]
        assert parents == [None, "s0", "s1", "s2", "s3", "s4", None, "s6"]


class TestOwner:
    OWNER_FIELDS: tuple[Row, ...] = ({"owner": "telegram:1"}, {"source": "telegram", "user_id": "1", "schema": None})

    @pytest.mark.parametrize("fields", OWNER_FIELDS)
    def test_owner_of_an_import_is_the_terminal(self, store: SessionDBProvider, fields: Row) -> None:
        store.import_session(foreign_export("s", "hello", **fields))
        assert session_of(store, "s")["owner"] is None

    @pytest.mark.parametrize("fields", OWNER_FIELDS)
    def test_owner_of_an_import_is_kept_on_request(self, store: SessionDBProvider, fields: Row) -> None:
        store.import_session(foreign_export("s", "hello", **fields), keep_owner=True)
        assert session_of(store, "s")["owner"] == "telegram:1"


class TestTimes:
    def test_imported_times_are_never_in_the_future(self, store: SessionDBProvider, clock: FakeClock) -> None:
        fields = foreign_export("s", "one", "two", started_at=FUTURE, ended_at=FUTURE + 9, end_reason="user_exit")
        fields["messages"][0]["timestamp"] = FUTURE
        fields["messages"][1]["timestamp"] = NOW - 5
        fields["usage"] = [{"at": FUTURE, "kind": "delta", "input_tokens": 5}]
        fields["rewinds"] = [{"action": "rewind", "target_uid": "s-one", "message_count": 1, "at": FUTURE}]
        store.import_session(fields)
        row = session_of(store, "s")
        assert [row[name] for name in ("started_at", "ended_at", "last_active")] == [NOW, NOW, NOW]
        assert [each["timestamp"] for each in store.get_messages("s")] == [NOW, NOW - 5]
        assert contents(store.get_messages("s")) == ["one", "two"]
        assert [each["at"] for each in store.list_usage_events("s")] == [NOW]

    def test_times_of_merged_messages_are_never_in_the_future(self, store: SessionDBProvider) -> None:
        store.import_session(foreign_export("s", "one"))
        more = foreign_export("s", "one", "two")
        more["messages"][1]["timestamp"] = FUTURE
        store.import_session(more, on_conflict="merge")
        assert session_of(store, "s")["last_active"] == NOW


def test_a_mark_of_this_program_is_removed(store: SessionDBProvider) -> None:
    store.import_session(foreign_export("s", "hello", model_config={"_resumed_here": True, "a": 1}))
    store.import_session(foreign_export("t", "hello", model_config='{"_resumed_here": 1}'))
    assert json.loads(session_of(store, "s")["model_config"]) == {"a": 1}
    assert session_of(store, "t")["model_config"] is None


def test_a_deeply_nested_model_config_does_not_stop_an_import(store: SessionDBProvider) -> None:
    config = '{"_branched_from":' + "[" * 100_000
    store.import_session(foreign_export("s", "hello", model_config=config))
    assert session_of(store, "s")["model_config"] == config


def test_a_chain_of_one_file_stays_a_chain(store: SessionDBProvider, clock: FakeClock) -> None:
    start(store, "root")
    say(store, "root", "hello")
    compress(store, clock, "root", "tip")
    files = [exported(store, each) for each in ("tip", "root")]
    store.delete_sessions(["root", "tip"])
    for each in files:
        store.import_session(each, imported_from="ada.jsonl")
    assert store.get_compression_tip("root") == "tip"
