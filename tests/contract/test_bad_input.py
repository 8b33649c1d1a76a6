"""Invalid input raises an error that says what to do, and changes nothing."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import (
    HermesError,
    InvalidTitle,
    InvalidValue,
    TitleTaken,
    UnknownMessage,
    UnknownSession,
)
from hermes.state.provider import SessionDBProvider
from tests.support.conversations import say, session_of, start

Call = Callable[[SessionDBProvider], object]


def too_deep() -> list[Any]:
    """Return lists within lists, deeper than JSON allows."""
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    return deep


def endless() -> list[Any]:
    """Return a list that contains itself."""
    endless: list[Any] = []
    endless.append(endless)
    return endless


class TestUnknownSession:
    @pytest.mark.parametrize(
        ("name", "arguments"),
        [
            ("end_session", ["user_exit"]),
            ("reopen_session", []),
            ("update_session_cwd", ["/"]),
            ("update_session_meta", ["{}"]),
            ("update_system_prompt", ["x"]),
            ("update_session_model", ["x"]),
            ("set_session_archived", [True]),
            ("set_session_pinned", [True]),
            ("set_session_title", ["Title"]),
            ("delete_session", []),
            ("delete_session_if_empty", []),
            ("clear_messages", []),
            ("request_handoff", ["telegram"]),
            ("claim_handoff", []),
            ("complete_handoff", []),
            ("fail_handoff", ["why"]),
        ],
    )
    def test_unknown_session_cannot_be_changed(
        self, store: SessionDBProvider, name: str, arguments: list[object]
    ) -> None:
        assert getattr(store, name)("missing", *arguments) is False
        assert store.session_count() == 0

    @pytest.mark.parametrize(
        ("name", "arguments"),
        [
            ("append_message", {"session_id": "missing", "role": "user"}),
            ("append_messages", {"session_id": "missing", "messages": [{"role": "user"}]}),
            ("append_messages", {"session_id": "missing", "messages": []}),
            ("replace_messages", {"session_id": "missing", "messages": []}),
            ("create_session", {"session_id": "s", "source": "cli", "parent_session_id": "missing"}),
        ],
    )
    def test_unknown_session_cannot_be_written_to(
        self, store: SessionDBProvider, name: str, arguments: dict[str, object]
    ) -> None:
        with pytest.raises(UnknownSession, match="missing"):
            getattr(store, name)(**arguments)

    @pytest.mark.parametrize("session_id", ["missing", "", "a\0b", "\ud800"], ids=ascii)
    def test_unknown_session_reads_as_nothing(self, store: SessionDBProvider, session_id: str) -> None:
        start(store, "s")
        assert {
            "get_session": store.get_session(session_id),
            "get_session_title": store.get_session_title(session_id),
            "resolve_session_id": store.resolve_session_id(session_id),
            "export_session": store.export_session(session_id),
            "get_handoff_state": store.get_handoff_state(session_id),
            "get_compression_lock_holder": store.get_compression_lock_holder(session_id),
        } == {
            "get_session": None,
            "get_session_title": None,
            "resolve_session_id": None,
            "export_session": None,
            "get_handoff_state": None,
            "get_compression_lock_holder": None,
        }

    @pytest.mark.parametrize("session_id", ["missing", "", "a\0b", "\ud800"], ids=ascii)
    def test_unknown_session_reads_as_an_empty_list(self, store: SessionDBProvider, session_id: str) -> None:
        start(store, "s")
        found = [
            *store.get_messages(session_id),
            *store.get_messages_as_conversation(session_id, include_ancestors=True),
            *store.list_recent_user_messages(session_id),
            *store.get_ancestors(session_id),
            *store.get_descendants(session_id),
            *store.list_usage_events(session_id),
            *store.get_session_tools(session_id),
            *store.list_rewinds(session_id),
        ]
        assert found == []


BY_ID: dict[str, Callable[[SessionDBProvider, Any], object]] = {
    "get_session": lambda db, bad: db.get_session(bad),
    "get_messages": lambda db, bad: db.get_messages(bad),
    "end_session": lambda db, bad: db.end_session(bad, "user_exit"),
    "set_session_title": lambda db, bad: db.set_session_title(bad, "Title"),
    "delete_session": lambda db, bad: db.delete_session(bad),
    "resolve_session_id": lambda db, bad: db.resolve_session_id(bad),
}


class TestIdOfTheWrongType:
    @pytest.mark.parametrize(
        "bad", [None, 5, b"s", ["s"], {"s": 1}, object(), 2**70], ids=lambda bad: type(bad).__name__
    )
    @pytest.mark.parametrize("name", BY_ID)
    def test_id_of_the_wrong_type_is_refused_or_unknown_but_no_error_of_the_database(
        self, store: SessionDBProvider, name: str, bad: object
    ) -> None:
        start(store, "s")
        with contextlib.suppress(InvalidValue):
            assert not BY_ID[name](store, bad)


class TestCreate:
    @pytest.mark.parametrize("bad", [None, "", 5, b"s", ["s"], "a\0b", "\ud800"], ids=ascii)
    @pytest.mark.parametrize("field", ["session_id", "source"])
    def test_create_session_needs_a_name(self, store: SessionDBProvider, field: str, bad: Any) -> None:
        fields = {"session_id": "s", "source": "cli", field: bad}
        with pytest.raises(InvalidValue, match=field):
            store.create_session(**fields)
        assert store.session_count() == 0

    @pytest.mark.parametrize(
        ("field", "bad"),
        [
            ("model", 5),
            ("system_prompt", ["x"]),
            ("cwd", Path("/tmp")),
            ("user_id", 5),
            ("user_id", "a\0b"),
            ("owner", 5),
            ("parent_session_id", 5),
            ("child_kind", "cousin"),
            ("child_kind", 5),
            ("model_config", {"x": {1, 2}}),
            ("model_config", {"x": object()}),
        ],
    )
    def test_create_session_refuses_a_field_of_the_wrong_type(
        self, store: SessionDBProvider, field: str, bad: Any
    ) -> None:
        with pytest.raises(InvalidValue):
            store.create_session("s", "cli", **{field: bad})
        assert store.session_count() == 0


class TestAppend:
    @pytest.mark.parametrize(
        "content",
        [5, 1.5, True, b"x", {1, 2}, object(), [{"x": {1}}], {"x": b"y"}, {1: "x"}, [{None: "x"}], [10**5000]],
        ids=lambda content: type(content).__name__,
    )
    def test_append_refuses_content_that_cannot_round_trip(self, store: SessionDBProvider, content: Any) -> None:
        start(store, "s")
        with pytest.raises(InvalidValue):
            store.append_message("s", "user", content)
        assert session_of(store, "s")["message_count"] == 0

    @pytest.mark.parametrize("make", [too_deep, endless])
    def test_append_refuses_endless_content(self, store: SessionDBProvider, make: Callable[[], list[Any]]) -> None:
        start(store, "s")
        with pytest.raises(InvalidValue):
            store.append_message("s", "user", make())

    @pytest.mark.parametrize(
        ("field", "bad"),
        [
            ("role", None),
            ("role", ""),
            ("role", 5),
            ("role", "a\0b"),
            ("tool_name", 5),
            ("tool_call_id", 5),
            ("finish_reason", 5),
            ("reasoning", ["x"]),
            ("reasoning_content", 5),
            ("platform_message_id", 5.5),
            ("token_count", "5"),
            ("token_count", 1.5),
            ("token_count", True),
            ("token_count", 2**63),
            ("tool_calls", {1, 2}),
            ("reasoning_details", [object()]),
            ("uid", ""),
            ("uid", 5),
            ("uid", "a\0b"),
        ],
    )
    def test_append_refuses_a_field_of_the_wrong_type(self, store: SessionDBProvider, field: str, bad: Any) -> None:
        start(store, "s")
        fields: dict[str, Any] = {"role": "user", "content": "x", field: bad}
        with pytest.raises(InvalidValue):
            store.append_message("s", **fields)
        assert session_of(store, "s")["message_count"] == 0

    @pytest.mark.parametrize(
        "bad",
        [
            "user",
            5,
            None,
            ["role", "user"],
            {},
            {"content": "x"},
            {"role": "user", "contents": "x"},
            {"role": "user", 1: 2},
        ],
        ids=str,
    )
    def test_append_messages_refuses_an_invalid_message(self, store: SessionDBProvider, bad: Any) -> None:
        start(store, "s")
        with pytest.raises(InvalidValue):
            store.append_messages("s", [{"role": "user", "content": "good"}, bad])
        assert store.message_count("s") == 0

    @pytest.mark.parametrize("bad", ["user", 5, None, {"role": 5}, {"role": "user", "content": 5}], ids=str)
    def test_replace_refuses_an_invalid_message(self, store: SessionDBProvider, bad: Any) -> None:
        start(store, "s")
        say(store, "s", "old")
        with pytest.raises(InvalidValue):
            store.replace_messages("s", [bad])
        assert store.message_count("s") == 1


class TestOtherValues:
    @pytest.mark.parametrize(
        ("name", "arguments"),
        [
            ("end_session", {"session_id": "s", "end_reason": ""}),
            ("end_session", {"session_id": "s", "end_reason": None}),
            ("update_session_cwd", {"session_id": "s", "cwd": 5}),
            ("update_session_meta", {"session_id": "s", "model_config_json": {"x": {1}}}),
            ("update_session_meta", {"session_id": "s", "model_config_json": "{}", "model": 5}),
            ("update_system_prompt", {"session_id": "s", "system_prompt": 5}),
            ("update_session_model", {"session_id": "s", "model": 5}),
            ("update_token_counts", {"session_id": ""}),
            ("update_token_counts", {"session_id": "s", "input_tokens": "5"}),
            ("update_token_counts", {"session_id": "s", "input_tokens": 1.5}),
            ("update_token_counts", {"session_id": "s", "input_tokens": True}),
            ("update_token_counts", {"session_id": "s", "input_tokens": 2**63}),
            ("update_token_counts", {"session_id": "s", "model": 5}),
            ("update_token_counts", {"session_id": "s", "cost_status": 5}),
            ("update_token_counts", {"session_id": "s", "estimated_cost_usd": "free"}),
            ("update_token_counts", {"session_id": "s", "estimated_cost_usd": math.nan}),
            ("update_token_counts", {"session_id": "s", "actual_cost_usd": math.inf}),
            ("prune_sessions", {"older_than_days": -1}),
            ("prune_sessions", {"older_than_days": "90"}),
            ("prune_sessions", {"older_than_days": True}),
            ("prune_sessions", {"older_than_days": None}),
            ("prune_sessions", {"older_than_days": math.nan}),
            ("list_prunable", {"older_than_days": math.nan}),
            ("set_meta", {"key": "", "value": "x"}),
            ("set_meta", {"key": 5, "value": "x"}),
            ("set_meta", {"key": "key", "value": 5}),
            ("try_acquire_compression_lock", {"session_id": "s", "holder": ""}),
            ("try_acquire_compression_lock", {"session_id": "s", "holder": None}),
            ("try_acquire_compression_lock", {"session_id": "s", "holder": "me", "ttl_seconds": "long"}),
            ("try_acquire_compression_lock", {"session_id": "s", "holder": "me", "ttl_seconds": math.nan}),
            ("request_handoff", {"session_id": "s", "platform": ""}),
            ("request_handoff", {"session_id": "s", "platform": None}),
        ],
        ids=str,
    )
    def test_wrong_values_are_refused_and_change_nothing(
        self, store: SessionDBProvider, name: str, arguments: dict[str, object]
    ) -> None:
        start(store, "s")
        before = session_of(store, "s")
        with pytest.raises(InvalidValue):
            getattr(store, name)(**arguments)
        assert session_of(store, "s") == before

    def test_failed_handoff_needs_a_reason(self, store: SessionDBProvider) -> None:
        start(store, "s")
        reason: Any = None
        with pytest.raises(InvalidValue, match="error must be a string"):
            store.fail_handoff("s", reason)


class TestTitle:
    @pytest.mark.parametrize(
        "bad", ["A" * 101, " A " * 51, "🌍" * 101, 5, b"Title", ["Title"], "\ud800"], ids=lambda bad: ascii(bad)[:12]
    )
    def test_invalid_title_is_refused(self, store: SessionDBProvider, bad: Any) -> None:
        start(store, "s")
        with pytest.raises(InvalidTitle):
            store.set_session_title("s", bad)
        assert store.get_session_title("s") is None

    def test_title_with_control_characters_is_cleaned_not_refused(self, store: SessionDBProvider) -> None:
        start(store, "s")
        assert store.set_session_title("s", "\x07Docker\x1b\x00 Build\x7f")
        assert store.get_session_title("s") == "Docker Build"


class TestErrors:
    """Every error has a class, a code, `retryable` and a hint."""

    @pytest.mark.parametrize(
        ("call", "kind", "code", "hint"),
        [
            (lambda db: db.append_message("missing", "user", "x"), UnknownSession, "unknown_session", "sessions list"),
            (lambda db: db.set_session_title("s", "A" * 101), InvalidTitle, "invalid_title", "shorten"),
            (lambda db: db.set_session_title("s", "Taken"), TitleTaken, "title_taken", "another title"),
            (lambda db: db.append_message("s", "user", 5), InvalidValue, "invalid_value", "convert it to text"),
            (lambda db: db.list_sessions_rich(after="x"), InvalidValue, "invalid_value", "`cursor`"),
            (lambda db: db.rewind_to_message("s", 10**6), UnknownMessage, "unknown_message", ""),
        ],
    )
    def test_errors_have_class_code_and_hint(
        self, store: SessionDBProvider, call: Call, kind: type[HermesError], code: str, hint: str
    ) -> None:
        start(store, "s", "holder")
        store.set_session_title("holder", "Taken")
        with pytest.raises(kind) as caught:
            call(store)
        error = caught.value
        assert (type(error), error.code, error.retryable, hint in error.hint) == (kind, code, False, True)

    @pytest.mark.parametrize("kind", [InvalidValue, InvalidTitle, TitleTaken, UnknownMessage])
    def test_errors_of_wrong_values_are_value_errors_too(self, kind: type[HermesError]) -> None:
        assert issubclass(kind, ValueError)

    def test_text_of_an_error_ends_with_the_hint(self, store: SessionDBProvider) -> None:
        with pytest.raises(UnknownSession) as caught:
            store.append_message("missing", "user", "x")
        assert str(caught.value) == f"there is no session 'missing' ({caught.value.hint})"

    def test_undoing_to_an_answer_hints_at_the_candidates(self, store: SessionDBProvider) -> None:
        start(store, "s")
        (answer,) = say(store, "s", "x", role="assistant")
        with pytest.raises(InvalidValue) as caught:
            store.rewind_to_message("s", answer)
        assert "list_recent_user_messages" in caught.value.hint
