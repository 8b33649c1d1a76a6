"""The public names of a store, each of which this suite uses."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from hermes.state.provider import SessionDBProvider
from tests.support.calls import READS, WRITES

NAMES = [
    "MAX_TITLE_LENGTH",
    "append_message",
    "append_messages",
    "apply_telegram_topic_migration",
    "approvals",
    "bind_telegram_topic",
    "branch_session",
    "capabilities",
    "claim_handoff",
    "clear_messages",
    "close",
    "complete_handoff",
    "compress_session",
    "connectors",
    "count_by_source",
    "count_empty_sessions",
    "create_session",
    "delete_empty_sessions",
    "delete_session",
    "delete_session_if_empty",
    "delete_sessions",
    "delete_with_receipt",
    "disable_telegram_topic_mode",
    "enable_telegram_topic_mode",
    "end_session",
    "ensure_session",
    "export_all",
    "export_session",
    "fail_handoff",
    "finalize_orphaned_compression_sessions",
    "for_owner",
    "get_anchored_view",
    "get_ancestors",
    "get_compression_lock_holder",
    "get_compression_tip",
    "get_descendants",
    "get_handoff_state",
    "get_messages",
    "get_messages_around",
    "get_messages_as_conversation",
    "get_meta",
    "get_next_title_in_lineage",
    "get_session",
    "get_session_by_title",
    "get_session_title",
    "get_session_tools",
    "get_telegram_topic_binding",
    "get_telegram_topic_binding_by_session",
    "health",
    "import_database",
    "import_session",
    "inbox",
    "initialize",
    "is_telegram_session_linked_to_topic",
    "is_telegram_topic_mode_enabled",
    "iter_export",
    "lanes",
    "list_cron_job_runs",
    "list_pending_handoffs",
    "list_prunable",
    "list_recent_user_messages",
    "list_rewinds",
    "list_sessions_rich",
    "list_telegram_topic_bindings_for_chat",
    "list_unlinked_telegram_sessions_for_user",
    "list_usage_events",
    "maybe_auto_prune_and_vacuum",
    "message_count",
    "optimize_fts",
    "outbox",
    "preview_prune",
    "prune_empty_ghost_sessions",
    "prune_sessions",
    "prune_with_receipt",
    "quotas",
    "read_only",
    "release_compression_lock",
    "renew_compression_lock",
    "reopen_session",
    "replace_messages",
    "request_handoff",
    "resolve_resume_session_id",
    "resolve_session_by_title",
    "resolve_session_id",
    "restore_rewound",
    "rewind_to_message",
    "sanitize_title",
    "schema_version",
    "search_messages",
    "search_sessions",
    "search_sessions_by_id",
    "session_count",
    "set_meta",
    "set_session_archived",
    "set_session_pinned",
    "set_session_title",
    "set_title_if_untitled",
    "start_session",
    "top_sessions",
    "try_acquire_compression_lock",
    "turns",
    "update_session_cwd",
    "update_session_meta",
    "update_session_model",
    "update_system_prompt",
    "update_token_counts",
    "usage_by_model",
    "vacuum",
]
GROUPS = {"approvals", "connectors", "inbox", "lanes", "outbox", "quotas", "turns"}
"""Groups of operations on lanes; `tests/contract/lanes/test_groups.py` has their names."""
NOT_CALLED = {"MAX_TITLE_LENGTH", "capabilities", "read_only", *GROUPS}
NOT_IN_THE_DATABASE = {*NOT_CALLED, "close", "for_owner", "initialize", "sanitize_title"}


@cache
def names_used() -> tuple[set[str], set[str]]:
    """Return the attributes that the other tests of this suite read, and those that they call."""
    read, called = set(), set()
    for path in Path(__file__).parent.rglob("test_*.py"):
        if path == Path(__file__):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                read.add(node.attr)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                called.add(node.func.attr)
    return read, called


def test_a_store_has_exactly_these_names() -> None:
    public = [name for name in dir(SessionDBProvider) if not name.startswith("_")]
    assert sorted(public) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_used_by_a_contract_test(name: str) -> None:
    read, called = names_used()
    assert name in (read if name in NOT_CALLED else called)


def test_every_operation_is_tried_on_closed_and_read_only_stores() -> None:
    assert READS.keys() | WRITES.keys() == set(NAMES) - NOT_IN_THE_DATABASE


def test_every_operation_has_a_docstring() -> None:
    silent = [name for name in NAMES if name not in NOT_CALLED and not getattr(SessionDBProvider, name).__doc__]
    assert silent == []
