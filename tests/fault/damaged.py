"""Damaged stores, and the checks of what a repair must keep."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hermes_state import SessionDB
from tests.fault.processes import assert_sound
from tests.support.pagemap import PageMap, page_map
from tests.support.plainsql import plain, rows
from tests.support.waiting import LIMIT_S

SIZE = 1_024
COMMON = "axolotl"
MESSAGES = (
    "SELECT id, session_id, role, uid, timestamp, active, tool_name, tool_calls, content, reasoning FROM messages"
)
SESSIONS = "SELECT id, source, user_id, owner, parent_session_id, child_kind, title, model, system_prompt, input_tokens"


class IntactStore(NamedTuple):
    """A store before it is damaged."""

    path: Path
    messages: dict[int, Any]
    sessions: dict[str, Any]
    message_pages: PageMap
    session_pages: PageMap

    def copy(self, target: Path) -> Path:
        """Copy the store to another path."""
        shutil.copy(self.path, target)
        return target


def fill(path: Path, *, sessions: int, messages: int) -> None:
    """Create a store in which every message has its own word, some are long, and some were deleted."""
    calls = [{"id": "c", "function": {"name": "terminal", "arguments": "{}"}}]
    with SessionDB(path) as db:
        number = 0
        for index in range(sessions):
            name, parent = f"s{index:03}", f"s{index - 1:03}" if index % 10 == 5 else None
            db.create_session(
                name, "telegram", user_id="ada", parent_session_id=parent, model="m", system_prompt="p" * 9 * index
            )
            db.set_session_title(name, f"title {index}")
            db.append_messages(
                name,
                [
                    {
                        "role": "tool" if i % 7 == 6 else "user",
                        "content": f"{COMMON} word{number + i} "
                        + "long text " * (300 if i == 3 and index % 4 == 0 else 2),
                        "uid": f"uid-{i}" if i % 2 else None,
                        "tool_calls": calls if i % 9 == 8 else None,
                    }
                    for i in range(messages)
                ],
            )
            db.update_token_counts(name, input_tokens=7, model="m")
            number += messages
        db.delete_session("s001")
        db.rewind_to_message("s002", db.list_recent_user_messages("s002")[1]["id"])
        db.set_meta("note", "kept")


def make_intact_store(path: Path, *, sessions: int = 40, messages: int = 40) -> IntactStore:
    """Create such a store with small pages, so that its trees have several levels, and a map of its pages."""
    fill(path, sessions=sessions, messages=messages)
    with plain(path) as connection:
        for statement in ("PRAGMA journal_mode = delete", f"PRAGMA page_size = {SIZE}", "VACUUM"):
            connection.execute(statement).fetchall()
    SessionDB(path).close()  # stores the changed schema cookie
    return IntactStore(
        path,
        {row[0]: row for row in rows(path, MESSAGES)},
        {row[0]: row for row in rows(path, f"{SESSIONS} FROM sessions")},
        page_map(path, "messages"),
        page_map(path, "sessions"),
    )


def assert_saved(path: Path, whole: IntactStore, damaged: Sequence[int], *, lost: int | None = None) -> None:
    """Assert that all rows outside of the damaged pages are there, once, unchanged and searchable, and no others."""
    assert_sound(path)
    messages = {row[0]: row for row in rows(path, MESSAGES)}
    safe = whole.message_pages.safe(*damaged)
    assert {key: messages.get(key) for key in safe} == {key: whole.messages[key] for key in safe}
    on_damaged = len(whole.messages) - len(safe)
    assert len(messages.keys() - whole.messages.keys()) <= on_damaged
    if lost is not None:
        assert len(whole.messages.keys() - messages.keys()) == lost
    sessions = {row[0]: row for row in rows(path, f"{SESSIONS} FROM sessions")}
    of_rows = {row[0]: row[1] for row in rows(whole.path, "SELECT rowid, id FROM sessions")}
    for key in whole.session_pages.safe(*damaged):
        assert sessions.get(of_rows[key]) == whole.sessions[of_rows[key]]
    assert_searchable(path, list(messages))


def assert_searchable(path: Path, ids: Sequence[int]) -> None:
    """Assert that searches agree with the rows: each message has its own word, and a sample of them is searched."""
    with SessionDB(path) as db:
        found = db.search_messages(COMMON, limit=10 * len(ids), include_inactive=True, budget_s=LIMIT_S)
        assert (found.degraded, found.complete) == (False, True)
        assert len(found) == len({hit["id"] for hit in found}) == db_count(path, COMMON)
        for key in sorted(ids)[:: max(1, len(ids) // 20)]:
            words = [word for word in contents(path, key).split() if word.startswith("word")]
            if not words:
                continue  # the page with its word was damaged
            hits = db.search_messages(words[0], include_inactive=True, budget_s=LIMIT_S)
            assert key in [hit["id"] for hit in hits]


def db_count(path: Path, word: str) -> int:
    return int(rows(path, "SELECT count(*) FROM messages WHERE instr(content, ?)", word)[0][0])


def contents(path: Path, key: int) -> str:
    return str(rows(path, "SELECT content FROM messages WHERE id = ?", key)[0][0])
