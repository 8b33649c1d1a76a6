"""Suggest names of sessions for completion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.state.engine import Reading
from hermes.state.operations import read

if TYPE_CHECKING:
    from hermes.state.provider import SessionDBProvider

MAX_SUGGESTIONS = 50


def suggest_names(store: SessionDBProvider, beginning: str) -> list[tuple[str, str]]:
    """Return titles and ids that start with a text, each with a description; without text, the latest conversations.

    The first letter of a title may be upper or lower case. Every query uses an index.
    """
    if not beginning:
        rows = store.list_sessions_rich(
            limit=MAX_SUGGESTIONS, order_by_last_active=True, exclude_sources=("tool", "subagent")
        )
        return [_name_and_description(row["id"], row["title"], row["preview"]) for row in rows]
    titled, with_id = read(store, lambda tx: (_with_title(tx, beginning), _with_id(tx, beginning)))
    return titled + with_id


def _with_title(tx: Reading, beginning: str) -> list[tuple[str, str]]:
    head, tail = beginning[:1], beginning[1:]
    found: dict[str, str] = {}
    for form in dict.fromkeys((beginning, head.lower() + tail, head.upper() + tail)):
        rows = tx.rows(
            f"""SELECT title, id FROM sessions WHERE {tx.dialect.starts_with("title", "form")}
                ORDER BY title LIMIT :most""",
            form=form,
            most=MAX_SUGGESTIONS,
        )
        found.update(rows)
    return list(found.items())


def _with_id(tx: Reading, beginning: str) -> list[tuple[str, str]]:
    rows = tx.rows(
        f"""SELECT id, COALESCE(title, preview, '') FROM sessions WHERE {tx.dialect.starts_with("id", "beginning")}
            ORDER BY id DESC LIMIT :most""",
        beginning=beginning,
        most=MAX_SUGGESTIONS,
    )
    return [(session_id, meaning) for session_id, meaning in rows]


def _name_and_description(session_id: str, title: str | None, preview: str) -> tuple[str, str]:
    return (title, session_id) if title else (session_id, preview)
