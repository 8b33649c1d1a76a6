"""What a file may not do: change what was made here, take its place, belong to others, or come from the future."""

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


def their(session_id: str, *texts: str, **told: Any) -> Row:
    """A session as a file may tell of it."""
    messages = [{"role": "user", "content": text, "uid": f"{session_id}-{text}"} for text in texts]
    return {"schema": SCHEMA, "id": session_id, "source": "cli", "messages": messages, **told}


@pytest.fixture
def mine(store: SessionDBProvider) -> Row:
    """A session that was made here, ended by a compression that has not come to its end."""
    start(store, "mine")
    say(store, "mine", "own")
    store.end_session("mine", "compression")
    return exported(store, "mine")


class TestMark:
    def test_is_the_name_of_the_file(self, store: SessionDBProvider) -> None:
        store.import_session(their("s", "hello"), imported_from="ada.jsonl")
        assert session_of(store, "s")["imported_from"] == "ada.jsonl"

    def test_is_there_without_a_name(self, store: SessionDBProvider) -> None:
        store.import_session(their("s", "hello"))
        assert session_of(store, "s")["imported_from"] == "import_session"

    def test_cannot_be_left_out(self, store: SessionDBProvider) -> None:
        with pytest.raises(InvalidValue):
            store.import_session(their("s", "hello"), imported_from="")

    def test_is_not_believed(self, store: SessionDBProvider) -> None:
        store.import_session(their("s", "hello", imported_from=None))
        store.import_session(their("t", "hello", imported_from="elsewhere"))
        assert {session_of(store, each)["imported_from"] for each in "st"} == {"import_session"}

    def test_is_not_on_what_was_made_here(self, store: SessionDBProvider, mine: Row) -> None:
        assert mine["imported_from"] is None

    def test_goes_on_to_branches_and_continuations(self, store: SessionDBProvider) -> None:
        store.import_session(their("s", "hello"), imported_from="ada.jsonl")
        store.branch_session("s", "branch")
        store.compress_session("branch", "tip", "in short", tail_from=store.get_messages("branch")[0]["id"])
        assert {session_of(store, each)["imported_from"] for each in ("branch", "tip")} == {"ada.jsonl"}


class TestMine:
    @pytest.mark.parametrize("on_conflict", ["skip", "merge", "rename"])
    def test_stays_as_it_is(self, store: SessionDBProvider, mine: Row, on_conflict: Any) -> None:
        usage = [{"at": 5.0, "kind": "delta", "input_tokens": 99}]
        store.import_session(their("mine", "evil", title="Mine", usage=usage), on_conflict=on_conflict)
        assert exported(store, "mine") == mine

    def test_gets_messages_from_a_file_that_may_add_to_it(self, store: SessionDBProvider, mine: Row) -> None:
        store.import_session(their("mine", "more"), on_conflict="merge", add_to_own=True)
        assert contents(store.get_messages("mine")) == ["own", "more"]

    @pytest.mark.parametrize("kind", ["compression", "branch", "delegate", "reset", None])
    def test_gets_no_child_from_a_file(self, store: SessionDBProvider, mine: Row, kind: str | None) -> None:
        told = {} if kind is None else {"child_kind": kind}
        store.import_session(their("evil", "evil", parent_session_id="mine", **told))
        assert store.get_compression_tip("mine") == "mine"
        assert session_of(store, "evil")["parent_session_id"] is None
        assert session_of(store, "evil")["chain_root"] is None

    def test_gets_no_child_that_waits_for_it(self, store: SessionDBProvider) -> None:
        store.import_session(their("evil", "evil", parent_session_id="later", child_kind="compression"))
        start(store, "later")
        say(store, "later", "own")
        store.import_session(their("later", "own"), on_conflict="merge")
        assert store.get_compression_tip("later") == "later"

    def test_gets_a_child_from_a_file_that_may_add_to_it(self, store: SessionDBProvider, mine: Row) -> None:
        told = their("next", "more", parent_session_id="mine", child_kind="compression")
        store.import_session(told, add_to_own=True)
        assert store.get_compression_tip("mine") == "next"


class TestTitle:
    @pytest.mark.parametrize("title", ["Docker", "Docker #7"])
    @pytest.mark.parametrize("comes_first", [True, False])
    def test_of_mine_still_leads_to_mine(self, store: SessionDBProvider, title: str, comes_first: bool) -> None:
        if comes_first:
            store.import_session(their("evil", "evil", title="Docker #7"))
        start(store, "mine")
        store.set_session_title("mine", "Docker")
        if not comes_first:
            store.import_session(their("evil", "evil", title=title))
        assert store.resolve_session_by_title("Docker") == "mine"

    def test_of_a_file_leads_to_its_newest(self, store: SessionDBProvider) -> None:
        for number, title in enumerate(["Docker #2", "Docker"]):
            store.import_session(their(f"s{number}", "hello", title=title))
        assert store.resolve_session_by_title("Docker") == "s0"


class TestOtherFiles:
    def test_are_not_continued(self, store: SessionDBProvider) -> None:
        store.import_session(their("s", "hello"), imported_from="ada.jsonl")
        told = their("evil", "evil", parent_session_id="s", child_kind="compression")
        store.import_session(told, imported_from="evil.jsonl")
        assert store.get_compression_tip("s") == "s"
        assert set(ids(store.list_sessions_rich())) == {"s", "evil"}

    def test_are_not_continued_by_what_waits_for_them(self, store: SessionDBProvider) -> None:
        told = their("evil", "evil", parent_session_id="s", child_kind="compression")
        store.import_session(told, imported_from="evil.jsonl")
        store.import_session(their("s", "hello"), imported_from="ada.jsonl")
        assert store.get_compression_tip("s") == "s"

    def test_may_be_what_a_branch_came_from(self, store: SessionDBProvider) -> None:
        store.import_session(their("s", "hello"), imported_from="one.jsonl")
        store.import_session(their("t", "hi", parent_session_id="s", child_kind="branch"), imported_from="two.jsonl")
        assert session_of(store, "t")["parent_session_id"] == "s"

    def test_a_family_too_deep_to_be_walked_through_is_not_linked_further(
        self, store: SessionDBProvider, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("hermes.state.import_export.session_writer.MOST_GENERATIONS", 5)
        for number in range(8):
            told = {"parent_session_id": f"s{number - 1}", "child_kind": "branch"} if number else {}
            store.import_session(their(f"s{number}", "x", **told))
        parents = [session_of(store, f"s{number}")["parent_session_id"] for number in range(8)]
        assert parents == [None, "s0", "s1", "s2", "s3", "s4", None, "s6"]


class TestOwner:
    TOLD: tuple[Row, ...] = ({"owner": "telegram:1"}, {"source": "telegram", "user_id": "1", "schema": None})

    @pytest.mark.parametrize("told", TOLD)
    def test_is_nobody_but_the_terminal(self, store: SessionDBProvider, told: Row) -> None:
        store.import_session(their("s", "hello", **told))
        assert session_of(store, "s")["owner"] is None

    @pytest.mark.parametrize("told", TOLD)
    def test_is_the_one_that_is_told_if_that_is_wished(self, store: SessionDBProvider, told: Row) -> None:
        store.import_session(their("s", "hello", **told), keep_owner=True)
        assert session_of(store, "s")["owner"] == "telegram:1"


class TestTimes:
    def test_are_never_in_the_future(self, store: SessionDBProvider, clock: FakeClock) -> None:
        told = their("s", "one", "two", started_at=FUTURE, ended_at=FUTURE + 9, end_reason="user_exit")
        told["messages"][0]["timestamp"] = FUTURE
        told["messages"][1]["timestamp"] = NOW - 5
        told["usage"] = [{"at": FUTURE, "kind": "delta", "input_tokens": 5}]
        told["rewinds"] = [{"action": "rewind", "target_uid": "s-one", "message_count": 1, "at": FUTURE}]
        store.import_session(told)
        row = session_of(store, "s")
        assert [row[name] for name in ("started_at", "ended_at", "last_active")] == [NOW, NOW, NOW]
        assert [each["timestamp"] for each in store.get_messages("s")] == [NOW, NOW - 5]
        assert contents(store.get_messages("s")) == ["one", "two"]
        assert [each["at"] for each in store.list_usage_events("s")] == [NOW]

    def test_of_messages_that_are_added_are_neither(self, store: SessionDBProvider) -> None:
        store.import_session(their("s", "one"))
        more = their("s", "one", "two")
        more["messages"][1]["timestamp"] = FUTURE
        store.import_session(more, on_conflict="merge")
        assert session_of(store, "s")["last_active"] == NOW


def test_a_mark_of_this_program_is_removed(store: SessionDBProvider) -> None:
    store.import_session(their("s", "hello", model_config={"_resumed_here": True, "a": 1}))
    store.import_session(their("t", "hello", model_config='{"_resumed_here": 1}'))
    assert json.loads(session_of(store, "s")["model_config"]) == {"a": 1}
    assert session_of(store, "t")["model_config"] is None


def test_a_configuration_that_is_nested_too_deeply_is_no_obstacle(store: SessionDBProvider) -> None:
    config = '{"_branched_from":' + "[" * 100_000
    store.import_session(their("s", "hello", model_config=config))
    assert session_of(store, "s")["model_config"] == config


def test_a_chain_of_one_file_stays_one(store: SessionDBProvider, clock: FakeClock) -> None:
    start(store, "root")
    say(store, "root", "hello")
    compress(store, clock, "root", "tip")
    files = [exported(store, each) for each in ("tip", "root")]
    store.delete_sessions(["root", "tip"])
    for each in files:
        store.import_session(each, imported_from="ada.jsonl")
    assert store.get_compression_tip("root") == "tip"
