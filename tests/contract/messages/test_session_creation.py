"""A session and its first messages are created together, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.errors import Conflict, InvalidTitle, InvalidValue, UnknownSession
from hermes.state.provider import SessionDBProvider
from tests.support.clock import NOW, FakeClock
from tests.support.conversations import Row, at_once, column, contents, ids, known, session_of, start, talk

CALLS = [{"id": "c1", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}]
HELLO: Row = {"role": "user", "content": "hello", "uid": "u1"}

COPIED = (
    "role",
    "content",
    "tool_name",
    "tool_calls",
    "tool_call_id",
    "token_count",
    "finish_reason",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "codex_reasoning_items",
    "codex_message_items",
    "platform_message_id",
    "observed",
    "timestamp",
    "uid",
)


def everything(store: SessionDBProvider, session_id: str) -> list[int]:
    """Store messages with a value in every field."""
    start(store, session_id)
    return store.append_messages(
        session_id,
        [
            {
                "role": "user",
                "content": "list\x00 \ud800 them",
                "platform_message_id": "9",
                "observed": True,
                "uid": "a",
            },
            {
                "role": "assistant",
                "content": [{"type": "text", "text": "I look"}],
                "tool_calls": CALLS,
                "token_count": 7,
                "finish_reason": "tool_calls",
                "reasoning": "hm",
                "reasoning_content": "",
                "reasoning_details": [{"type": "x", "text": "ü"}],
                "codex_reasoning_items": [{"id": 1}],
                "codex_message_items": [{"id": 2}],
                "timestamp": NOW - 5,
            },
            {"role": "tool", "content": "a\nb", "tool_call_id": "c1", "tool_name": "terminal"},
            {"role": "assistant", "content": "\x01json:no json"},
        ],
    )


def copied(store: SessionDBProvider, session_id: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in COPIED) for row in map(dict[str, Any], store.get_messages(session_id))]


class TestStart:
    def test_start_session_creates_the_session_and_its_message(self, store: SessionDBProvider) -> None:
        answer = store.start_session("s", "cli", HELLO, model="m", cwd="/work", system_prompt="p")
        assert answer == {"message_id": ids(store.get_messages("s"))[0], "title": None}
        row = session_of(store, "s")
        assert (row["source"], row["model"], row["cwd"], row["system_prompt"]) == ("cli", "m", "/work", "p")
        assert (row["message_count"], row["preview"]) == (1, "hello")

    def test_start_session_sets_the_title_too(self, store: SessionDBProvider) -> None:
        assert store.start_session("s", "cli", HELLO, title=" My\tproject ")["title"] == "My project"
        assert store.get_session_title("s") == "My project"

    def test_start_session_leaves_a_taken_title_alone(self, store: SessionDBProvider) -> None:
        start(store, "other")
        store.set_session_title("other", "Taken")
        assert store.start_session("s", "cli", HELLO, title="Taken")["title"] is None
        assert store.get_session_title("s") is None
        assert contents(store.get_messages("s")) == ["hello"]

    def test_start_session_repeated_stores_the_message_once(self, store: SessionDBProvider) -> None:
        first = store.start_session("s", "cli", HELLO, title="One")
        assert store.start_session("s", "telegram", HELLO, title="Two") == first
        assert session_of(store, "s")["source"] == "cli"
        assert len(store.get_messages("s")) == 1

    @pytest.mark.parametrize(
        ("message", "options", "error"),
        [
            ({"role": "user", "content": 5}, {}, InvalidValue),
            ({"role": "user", "colour": "red"}, {}, InvalidValue),
            (HELLO, {"title": "x" * 101}, InvalidTitle),
            (HELLO, {"parent_session_id": "missing"}, UnknownSession),
        ],
    )
    def test_start_session_that_is_refused_creates_nothing(
        self, store: SessionDBProvider, message: Row, options: Row, error: type[Exception]
    ) -> None:
        with pytest.raises(error):
            store.start_session("s", "cli", message, **options)
        assert known(store) == set()


class TestBranch:
    def test_branch_copies_everything_that_the_messages_have(self, store: SessionDBProvider) -> None:
        everything(store, "s")
        assert store.branch_session("s", "b")["message_count"] == 4
        assert copied(store, "b") == copied(store, "s")

    def test_branch_counts_what_it_copied(self, store: SessionDBProvider) -> None:
        everything(store, "s")
        store.branch_session("s", "b")
        row = session_of(store, "b")
        assert (row["message_count"], row["tool_call_count"]) == (4, 1)
        assert row["preview"] == session_of(store, "s")["preview"]
        assert store.get_session_tools("b") == {"terminal": 1}

    def test_branch_does_not_copy_undone_messages(self, store: SessionDBProvider) -> None:
        start(store, "s")
        message_ids = talk(store, "s", 2)
        store.rewind_to_message("s", message_ids[2])
        store.branch_session("s", "b")
        assert contents(store.get_messages("b", include_inactive=True)) == ["question 0", "answer 0"]

    def test_branch_is_a_listed_branch_of_its_parent(self, store: SessionDBProvider) -> None:
        start(store, "s", model="m", cwd="/work", system_prompt="p", model_config={"a": 1})
        talk(store, "s", 1)
        store.branch_session("s", "b")
        row = session_of(store, "b")
        assert (row["parent_session_id"], row["child_kind"], row["ended_at"]) == ("s", "branch", None)
        assert [row[name] for name in ("model", "cwd", "system_prompt")] == ["m", "/work", "p"]
        assert set(ids(store.list_sessions_rich())) == {"s", "b"}

    def test_branch_has_the_owner_of_its_parent(self, store: SessionDBProvider) -> None:
        store.create_session("s", "telegram", user_id="1", owner="agent:main:telegram:group:7")
        talk(store, "s", 1)
        store.branch_session("s", "b")
        assert session_of(store, "b")["owner"] == "agent:main:telegram:group:7"

    def test_branch_ends_its_parent_and_changes_nothing_else(self, store: SessionDBProvider, clock: FakeClock) -> None:
        everything(store, "s")
        before = session_of(store, "s")
        clock.advance(10)
        store.branch_session("s", "b")
        assert session_of(store, "s") == {**before, "ended_at": NOW + 10, "end_reason": "branched"}

    def test_branch_of_an_ended_session_keeps_its_end_reason(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.end_session("s", "user_exit")
        store.branch_session("s", "b")
        assert session_of(store, "s")["end_reason"] == "user_exit"

    @pytest.mark.parametrize(
        ("parent_title", "name", "title"),
        [
            (None, None, "branch"),
            (None, "Another way", "Another way"),
            ("Plan", None, "Plan #2"),
            ("Plan", "Plan", "Plan (2)"),
            ("Plan #2", None, "Plan #3"),
            ("Plan", "Other", "Other"),
        ],
    )
    def test_branch_gets_a_free_title(
        self, store: SessionDBProvider, parent_title: str | None, name: str | None, title: str
    ) -> None:
        start(store, "s")
        store.set_session_title("s", parent_title)
        assert store.branch_session("s", "b", name)["title"] == title
        assert store.get_session_title("s") == parent_title

    def test_branch_does_not_count_the_tokens_again(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.update_token_counts("s", input_tokens=10)
        store.branch_session("s", "b")
        assert session_of(store, "b")["input_tokens"] == 0

    def test_branch_can_be_searched(self, store: SessionDBProvider) -> None:
        start(store, "s")
        talk(store, "s", 1)
        store.branch_session("s", "b")
        assert set(column(store.search_messages("answer"), "session_id")) == {"s", "b"}

    def test_branch_repeated_for_the_same_child_changes_nothing(self, store: SessionDBProvider) -> None:
        start(store, "s")
        talk(store, "s", 1)
        first = store.branch_session("s", "b")
        talk(store, "s", 1)
        assert store.branch_session("s", "b", "Other") == first
        assert len(store.get_messages("b")) == 2

    def test_branch_of_a_missing_session_raises_unknown_session(self, store: SessionDBProvider) -> None:
        with pytest.raises(UnknownSession):
            store.branch_session("missing", "b")

    def test_branch_never_replaces_an_existing_session(self, store: SessionDBProvider) -> None:
        start(store, "s", "b")
        with pytest.raises(Conflict):
            store.branch_session("s", "b")


class TestCompress:
    def test_continuation_has_the_head_the_summary_and_the_tail(self, store: SessionDBProvider) -> None:
        start(store, "s")
        message_ids = talk(store, "s", 4)
        answer = store.compress_session("s", "c", "in short", head_upto=message_ids[1], tail_from=message_ids[6])
        assert answer == {"title": None, "message_count": 5}
        assert contents(store.get_messages("c")) == ["question 0", "answer 0", "in short", "question 3", "answer 3"]
        assert column(store.get_messages("c"), "role")[2] == "system"

    def test_compress_copies_the_tail_unchanged(self, store: SessionDBProvider) -> None:
        message_ids = everything(store, "s")
        store.compress_session("s", "c", "in short", tail_from=message_ids[0])
        assert copied(store, "c")[1:] == copied(store, "s")

    def test_compress_never_copies_a_message_twice(self, store: SessionDBProvider) -> None:
        start(store, "s")
        message_ids = talk(store, "s", 2)
        store.compress_session("s", "c", "in short", head_upto=message_ids[3], tail_from=message_ids[2])
        assert contents(store.get_messages("c")) == ["question 0", "answer 0", "in short", "question 1", "answer 1"]

    def test_compress_copies_messages_stored_meanwhile(self, store: SessionDBProvider) -> None:
        start(store, "s")
        message_ids = talk(store, "s", 2)
        store.append_message("s", "user", "one more thing", uid="late")
        store.compress_session("s", "c", "in short", tail_from=message_ids[2])
        assert contents(store.get_messages("c"))[-1] == "one more thing"

    def test_continuation_recognizes_a_repeated_message(self, store: SessionDBProvider) -> None:
        start(store, "s")
        first = store.append_message("s", "user", "hello", uid="platform-1")
        store.compress_session("s", "c", "in short", tail_from=first)
        store.append_message("c", "user", "hello", uid="platform-1")
        assert contents(store.get_messages("c")) == ["in short", "hello"]

    def test_continuation_is_the_tip_of_the_chain(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "s", model="m", cwd="/work", system_prompt="old")
        message_ids = talk(store, "s", 1)
        clock.advance(10)
        store.compress_session("s", "c", "in short", tail_from=message_ids[0], system_prompt="new")
        row = session_of(store, "c")
        assert (row["parent_session_id"], row["child_kind"], row["chain_root"]) == ("s", "compression", "s")
        assert [row[name] for name in ("source", "model", "cwd", "system_prompt")] == ["cli", "m", "/work", "new"]
        assert store.get_compression_tip("s") == "c"
        (listed,) = store.list_sessions_rich(order_by_last_active=True)
        assert (listed["id"], listed["_lineage_root_id"], listed["preview"]) == ("c", "s", "question 0")

    def test_compress_overwrites_the_end_reason_of_its_parent(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "s")
        message_ids = talk(store, "s", 1)
        store.end_session("s", "cli_close")
        clock.advance(10)
        store.compress_session("s", "c", "in short", tail_from=message_ids[0])
        assert (session_of(store, "s")["end_reason"], session_of(store, "s")["ended_at"]) == ("compression", NOW)

    def test_continuation_gets_the_next_title_number(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.set_session_title("s", "Plan")
        message_ids = talk(store, "s", 1)
        assert store.compress_session("s", "c", "in short", tail_from=message_ids[0])["title"] == "Plan #2"
        assert store.compress_session("c", "d", "shorter", tail_from=message_ids[0])["title"] == "Plan #3"
        assert store.resolve_session_by_title("Plan") == "d"

    def test_continuation_inherits_pin_and_owner(self, store: SessionDBProvider) -> None:
        store.create_session("s", "telegram", user_id="1")
        store.set_session_pinned("s")
        store.compress_session("s", "c", "in short", tail_from=1)
        assert (session_of(store, "c")["pinned"], session_of(store, "c")["owner"]) == (1, "telegram:1")

    def test_compress_repeated_for_the_same_child_changes_nothing(self, store: SessionDBProvider) -> None:
        start(store, "s")
        message_ids = talk(store, "s", 1)
        store.try_acquire_compression_lock("s", "me")
        first = store.compress_session("s", "c", "in short", tail_from=message_ids[0], holder="me")
        assert store.compress_session("s", "c", "in short", tail_from=message_ids[0], holder="me") == first
        assert len(store.get_messages("c")) == 3

    def test_session_can_be_compressed_only_once(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.compress_session("s", "c", "in short", tail_from=1)
        with pytest.raises(Conflict, match="already continued in 'c'"):
            store.compress_session("s", "d", "in short", tail_from=1)
        assert known(store) == {"s", "c"}

    def test_session_is_compressed_once_by_many_callers_at_the_same_time(self, store: SessionDBProvider) -> None:
        start(store, "s")

        def compress(number: int) -> bool:
            try:
                store.compress_session("s", f"c{number}", "in short", tail_from=1)
            except Conflict:
                return False
            return True

        assert sorted(at_once(8, compress)) == [False] * 7 + [True]
        assert len(known(store)) == 2

    def test_compress_releases_the_lock(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.try_acquire_compression_lock("s", "me")
        store.compress_session("s", "c", "in short", tail_from=1, holder="me")
        assert store.get_compression_lock_holder("s") is None

    @pytest.mark.parametrize("holder_now", [None, "another holder", "me, but too late"])
    def test_compress_is_refused_without_the_lock(
        self, store: SessionDBProvider, clock: FakeClock, holder_now: str | None
    ) -> None:
        start(store, "s")
        if holder_now is not None:
            store.try_acquire_compression_lock("s", "me" if "late" in holder_now else holder_now, 5)
            clock.advance(10 if "late" in holder_now else 0)
        with pytest.raises(Conflict, match="lost"):
            store.compress_session("s", "c", "in short", tail_from=1, holder="me")
        assert known(store) == {"s"}
        assert session_of(store, "s")["ended_at"] is None

    def test_compress_of_a_missing_session_raises_unknown_session(self, store: SessionDBProvider) -> None:
        with pytest.raises(UnknownSession):
            store.compress_session("missing", "c", "in short", tail_from=1)

    def test_compress_never_replaces_an_existing_session(self, store: SessionDBProvider) -> None:
        start(store, "s", "c")
        with pytest.raises(Conflict, match="already"):
            store.compress_session("s", "c", "in short", tail_from=1)

    @pytest.mark.parametrize("summary", ["", " \n", None, 5])
    def test_compress_without_a_summary_is_refused(self, store: SessionDBProvider, summary: Any) -> None:
        start(store, "s")
        with pytest.raises(InvalidValue, match="summary"):
            store.compress_session("s", "c", summary, tail_from=1)
