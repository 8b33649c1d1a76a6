"""Every operation of a store, called with arguments that reach the database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes.state.provider import SessionDBProvider

Call = Callable[[SessionDBProvider, "Sample"], object]

OWNER = "telegram:1"
STRANGER = "telegram:2"


@dataclass(frozen=True, slots=True)
class Sample:
    """The content of a store that every call can refer to."""

    message_id: int
    exported: dict[str, Any]
    database: Path
    """A file with a session, for `import_database`."""


def fill(store: SessionDBProvider, other: SessionDBProvider, database: Path) -> Sample:
    """Create a session `s` with some of everything, a cron run and an old empty session, all of `OWNER`."""
    store.create_session("s", "telegram", user_id="1", model="m")
    store.set_session_title("s", "Title")
    message_id = store.append_message("s", "user", "hello")
    calls = [{"id": "c", "function": {"name": "terminal", "arguments": "{}"}}]
    store.append_message("s", "assistant", "hi", tool_calls=calls)
    store.update_token_counts("s", input_tokens=1)
    rewound = store.append_message("s", "user", "oops")
    store.rewind_to_message("s", rewound)
    store.request_handoff("s", "discord")
    store.enable_telegram_topic_mode(chat_id="1", user_id="1")
    store.bind_telegram_topic(chat_id="1", thread_id="7", user_id="1", session_key="k", session_id="s")
    store.create_session("cron_job_20260101_000000", "cron", owner=OWNER)
    store.create_session("ghost", "tui", owner=OWNER, started_at=1.0)
    store.end_session("ghost", "tui_close")
    other.create_session("elsewhere", "cli")
    data = store.export_session("s")
    assert data is not None
    return Sample(message_id, {**data, "id": "imported", "title": None}, database)


READS: dict[str, Call] = {
    "count_by_source": lambda db, _: db.count_by_source(),
    "count_empty_sessions": lambda db, _: db.count_empty_sessions(),
    "export_all": lambda db, _: db.export_all(),
    "export_session": lambda db, _: db.export_session("s"),
    "get_anchored_view": lambda db, sample: db.get_anchored_view("s", sample.message_id),
    "get_ancestors": lambda db, _: db.get_ancestors("s"),
    "get_compression_lock_holder": lambda db, _: db.get_compression_lock_holder("s"),
    "get_compression_tip": lambda db, _: db.get_compression_tip("s"),
    "get_descendants": lambda db, _: db.get_descendants("s"),
    "get_handoff_state": lambda db, _: db.get_handoff_state("s"),
    "get_messages": lambda db, _: db.get_messages("s"),
    "get_messages_around": lambda db, sample: db.get_messages_around("s", sample.message_id),
    "get_messages_as_conversation": lambda db, _: db.get_messages_as_conversation("s"),
    "get_meta": lambda db, _: db.get_meta("k"),
    "get_next_title_in_lineage": lambda db, _: db.get_next_title_in_lineage("Title"),
    "get_session": lambda db, _: db.get_session("s"),
    "get_session_by_title": lambda db, _: db.get_session_by_title("Title"),
    "get_session_title": lambda db, _: db.get_session_title("s"),
    "get_session_tools": lambda db, _: db.get_session_tools("s"),
    "get_telegram_topic_binding": lambda db, _: db.get_telegram_topic_binding(chat_id="1", thread_id="7"),
    "get_telegram_topic_binding_by_session": lambda db, _: db.get_telegram_topic_binding_by_session(session_id="s"),
    "health": lambda db, _: db.health()["ok"],
    "is_telegram_session_linked_to_topic": lambda db, _: db.is_telegram_session_linked_to_topic(session_id="s"),
    "is_telegram_topic_mode_enabled": lambda db, _: db.is_telegram_topic_mode_enabled(chat_id="1", user_id="1"),
    "iter_export": lambda db, _: list(db.iter_export()),
    "list_cron_job_runs": lambda db, _: db.list_cron_job_runs("job"),
    "list_pending_handoffs": lambda db, _: db.list_pending_handoffs(),
    "list_prunable": lambda db, _: db.list_prunable(),
    "list_recent_user_messages": lambda db, _: db.list_recent_user_messages("s"),
    "list_rewinds": lambda db, _: db.list_rewinds("s"),
    "list_sessions_rich": lambda db, _: db.list_sessions_rich(),
    "list_telegram_topic_bindings_for_chat": lambda db, _: db.list_telegram_topic_bindings_for_chat(chat_id="1"),
    "list_unlinked_telegram_sessions_for_user": lambda db, _: db.list_unlinked_telegram_sessions_for_user(
        chat_id="1", user_id="1"
    ),
    "list_usage_events": lambda db, _: db.list_usage_events("s"),
    "message_count": lambda db, _: db.message_count("s"),
    "preview_prune": lambda db, _: db.preview_prune(),
    "resolve_resume_session_id": lambda db, _: db.resolve_resume_session_id("s"),
    "resolve_session_by_title": lambda db, _: db.resolve_session_by_title("Title"),
    "resolve_session_id": lambda db, _: db.resolve_session_id("s"),
    "schema_version": lambda db, _: db.schema_version(),
    "search_messages": lambda db, _: db.search_messages("hello"),
    "search_sessions": lambda db, _: db.search_sessions(),
    "search_sessions_by_id": lambda db, _: db.search_sessions_by_id("s"),
    "session_count": lambda db, _: db.session_count(),
    "top_sessions": lambda db, _: db.top_sessions(),
    "usage_by_model": lambda db, _: db.usage_by_model(),
}

WRITES: dict[str, Call] = {
    "apply_telegram_topic_migration": lambda db, _: db.apply_telegram_topic_migration(),
    "append_message": lambda db, _: db.append_message("s", "user", "x"),
    "append_messages": lambda db, _: db.append_messages("s", [{"role": "user", "content": "x"}]),
    "bind_telegram_topic": lambda db, _: db.bind_telegram_topic(
        chat_id="1", thread_id="8", user_id="1", session_key="k", session_id="cron_job_20260101_000000"
    ),
    "branch_session": lambda db, _: db.branch_session("s", "branch"),
    "claim_handoff": lambda db, _: db.claim_handoff("s"),
    "clear_messages": lambda db, _: db.clear_messages("s"),
    "complete_handoff": lambda db, _: db.complete_handoff("s"),
    "compress_session": lambda db, _: db.compress_session("s", "child", "in short", tail_from=1),
    "create_session": lambda db, _: db.create_session("new", "cli"),
    "delete_empty_sessions": lambda db, _: db.delete_empty_sessions(),
    "delete_session": lambda db, _: db.delete_session("s"),
    "delete_session_if_empty": lambda db, _: db.delete_session_if_empty("s"),
    "delete_sessions": lambda db, _: db.delete_sessions(["s"]),
    "delete_with_receipt": lambda db, _: db.delete_with_receipt(["s"]),
    "disable_telegram_topic_mode": lambda db, _: db.disable_telegram_topic_mode(chat_id="1"),
    "enable_telegram_topic_mode": lambda db, _: db.enable_telegram_topic_mode(chat_id="1", user_id="1"),
    "end_session": lambda db, _: db.end_session("s", "user_exit"),
    "ensure_session": lambda db, _: db.ensure_session("new"),
    "fail_handoff": lambda db, _: db.fail_handoff("s", "why"),
    "finalize_orphaned_compression_sessions": lambda db, _: db.finalize_orphaned_compression_sessions(),
    "import_database": lambda db, sample: db.import_database(sample.database),
    "import_session": lambda db, sample: db.import_session(sample.exported),
    "maybe_auto_prune_and_vacuum": lambda db, _: db.maybe_auto_prune_and_vacuum(0),
    "optimize_fts": lambda db, _: db.optimize_fts(),
    "prune_empty_ghost_sessions": lambda db, _: db.prune_empty_ghost_sessions(),
    "prune_sessions": lambda db, _: db.prune_sessions(0, include_open=True),
    "prune_with_receipt": lambda db, _: db.prune_with_receipt(0, include_open=True),
    "release_compression_lock": lambda db, _: db.release_compression_lock("s", "me"),
    "renew_compression_lock": lambda db, _: db.renew_compression_lock("s", "me"),
    "reopen_session": lambda db, _: db.reopen_session("s"),
    "replace_messages": lambda db, _: db.replace_messages("s", []),
    "request_handoff": lambda db, _: db.request_handoff("s", "telegram"),
    "restore_rewound": lambda db, sample: db.restore_rewound("s", sample.message_id),
    "rewind_to_message": lambda db, sample: db.rewind_to_message("s", sample.message_id),
    "set_meta": lambda db, _: db.set_meta("k", "v"),
    "set_session_archived": lambda db, _: db.set_session_archived("s"),
    "set_session_pinned": lambda db, _: db.set_session_pinned("s"),
    "set_session_title": lambda db, _: db.set_session_title("s", "Other"),
    "set_title_if_untitled": lambda db, _: db.set_title_if_untitled("s", "Other"),
    "start_session": lambda db, _: db.start_session("new", "cli", {"role": "user", "content": "x"}),
    "try_acquire_compression_lock": lambda db, _: db.try_acquire_compression_lock("s", "me"),
    "update_session_cwd": lambda db, _: db.update_session_cwd("s", "/tmp"),
    "update_session_meta": lambda db, _: db.update_session_meta("s", {"a": 1}),
    "update_session_model": lambda db, _: db.update_session_model("s", "m"),
    "update_system_prompt": lambda db, _: db.update_system_prompt("s", "p"),
    "update_token_counts": lambda db, _: db.update_token_counts("s", input_tokens=1),
    "vacuum": lambda db, _: db.vacuum(),
}


def refusals(calls: dict[str, Call], store: SessionDBProvider, sample: Sample, kind: type[Exception]) -> set[str]:
    """The names of the calls that a store refuses with an error of this kind."""
    refused = set()
    for name, call in calls.items():
        try:
            call(store, sample)
        except kind:
            refused.add(name)
    return refused
