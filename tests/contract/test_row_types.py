"""Rows have the keys and value types that their types declare, on every engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

import pytest

from hermes.state import row_types
from hermes.state.provider import SessionDBProvider
from hermes_state import SessionDB
from tests.support.calls import Sample, fill
from tests.support.stores import Opener

Question = Callable[[SessionDBProvider, Sample], object]

QUESTIONS: dict[str, tuple[Question, object]] = {
    "get_session": (lambda db, _: db.get_session("s"), row_types.SessionRow),
    "get_session_by_title": (lambda db, _: db.get_session_by_title("Title"), row_types.SessionRow),
    "list_pending_handoffs": (lambda db, _: db.list_pending_handoffs(), list[row_types.SessionRow]),
    "list_sessions_rich": (lambda db, _: db.list_sessions_rich(), list[row_types.ListedSession]),
    "a compressed conversation": (lambda db, _: db.list_sessions_rich(id_query="whole"), list[row_types.ListedSession]),
    "search_sessions": (lambda db, _: db.search_sessions(), list[row_types.FoundSession]),
    "search_sessions_by_id": (lambda db, _: db.search_sessions_by_id("s"), list[row_types.ListedSession]),
    "list_cron_job_runs": (lambda db, _: db.list_cron_job_runs("job"), list[row_types.FoundSession]),
    "get_messages": (lambda db, _: db.get_messages("s", True), list[row_types.MessageRow]),
    "get_messages_as_conversation": (
        lambda db, _: db.get_messages_as_conversation("part", include_ancestors=True),
        list[row_types.ConversationMessage],
    ),
    "list_recent_user_messages": (lambda db, _: db.list_recent_user_messages("s"), list[row_types.UserMessage]),
    "get_messages_around": (lambda db, it: db.get_messages_around("s", it.message_id), row_types.MessagesAround),
    "get_anchored_view": (lambda db, it: db.get_anchored_view("s", it.message_id), row_types.AnchoredView),
    "search_messages": (lambda db, _: db.search_messages("hello"), list[row_types.SearchHit]),
    "export_all": (lambda db, _: db.export_all(), list[row_types.ExportedSession]),
    "list_rewinds": (lambda db, _: db.list_rewinds("s"), list[row_types.RewindRow]),
    "get_ancestors": (lambda db, _: db.get_ancestors("part"), list[row_types.Ancestor]),
    "get_descendants": (lambda db, _: db.get_descendants("whole"), list[row_types.Descendant]),
    "usage_by_model": (lambda db, _: db.usage_by_model(), list[row_types.ModelUsage]),
    "top_sessions": (lambda db, _: db.top_sessions(), list[row_types.TopSession]),
    "list_usage_events": (lambda db, _: db.list_usage_events("s"), list[row_types.UsageEvent]),
    "get_telegram_topic_binding": (
        lambda db, _: db.get_telegram_topic_binding(chat_id="1", thread_id="7"),
        row_types.TelegramTopicBinding,
    ),
    "list_unlinked_telegram_sessions_for_user": (
        lambda db, _: db.list_unlinked_telegram_sessions_for_user(chat_id="1", user_id="7"),
        list[row_types.ListedSession],
    ),
    "get_handoff_state": (lambda db, _: db.get_handoff_state("s"), row_types.HandoffState),
    "health": (lambda db, _: db.health(), row_types.Health),
    "rewind_to_message": (lambda db, it: db.rewind_to_message("s", it.message_id), row_types.Rewound),
    "start_session": (
        lambda db, _: db.start_session("new", "cli", {"role": "user", "content": "x"}),
        row_types.StartedSession,
    ),
    "branch_session": (lambda db, _: db.branch_session("s", "branch"), row_types.ContinuedSession),
    "import_database": (lambda db, it: db.import_database(it.database), row_types.ImportCounts),
    "maybe_auto_prune_and_vacuum": (lambda db, _: db.maybe_auto_prune_and_vacuum(0), row_types.PruneOutcome),
}


@pytest.fixture
def sample(store: SessionDBProvider, tmp_path: Path) -> Sample:
    """Create a store with rows in every table, and a compressed conversation."""
    with SessionDB(tmp_path / "other.db") as other:
        made = fill(store, other, tmp_path / "other.db")
    store.create_session("whole", "cli", model="m", cwd="/")
    store.append_message("whole", "user", [{"type": "text", "text": "hello"}], platform_message_id="7", observed=True)
    last = store.append_message(
        "whole", "assistant", "well", reasoning="r", reasoning_content="c", reasoning_details=[{}, {"a": 1}]
    )
    store.compress_session("whole", "part", "in short", tail_from=last)
    store.create_session("unlinked", "telegram", user_id="7")
    store.update_token_counts("s", input_tokens=1, estimated_cost_usd=0.5)
    return made


@pytest.mark.parametrize("name", QUESTIONS)
def test_result_has_its_declared_type(store: SessionDBProvider, sample: Sample, name: str) -> None:
    ask, hint = QUESTIONS[name]
    answer = ask(store, sample)
    assert answer
    assert list(faults(answer, hint)) == []


def test_row_of_a_read_only_store_has_its_declared_type(
    open_store: Opener, store: SessionDBProvider, sample: Sample
) -> None:
    with open_store(read_only=True) as reader:
        assert list(faults(reader.get_session("s"), row_types.SessionRow)) == []


def faults(value: object, hint: Any, where: str = "") -> list[str]:
    """Return where a value differs from its declared type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return []
    if origin is NotRequired:
        return faults(value, arguments[0], where)
    if origin in (Union, UnionType):
        return [] if any(not faults(value, each) for each in arguments) else [f"{where}: {value!r} is no {hint}"]
    if origin is Literal:
        return [] if value in arguments else [f"{where}: {value!r} is not one of {arguments}"]
    if origin is list and isinstance(value, list):
        return [fault for each in value for fault in faults(each, arguments[0], f"{where}[]")]
    if is_typeddict(hint):
        return faults_of_row(value, hint, where)
    if hint is float:
        return [] if type(value) in (int, float) else [f"{where}: {value!r} is no number"]
    kind = NoneType if hint is None else origin or hint
    return [] if isinstance(value, kind) else [f"{where}: {value!r} is no {hint}"]


def faults_of_row(value: object, hint: Any, where: str) -> list[str]:
    if not isinstance(value, Mapping):
        return [f"{where}: {value!r} is no row"]
    hints = get_type_hints(hint)
    missing = [f"{where}.{name} is missing" for name in sorted(hint.__required_keys__ - value.keys())]
    unknown = [f"{where}.{name} is not declared" for name in sorted(value.keys() - hints.keys())]
    wrong = [
        fault for name in value.keys() & hints.keys() for fault in faults(value[name], hints[name], f"{where}.{name}")
    ]
    return missing + unknown + wrong
