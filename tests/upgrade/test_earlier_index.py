"""A store whose search index has its first format."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_state import SessionDB
from tests.support.plainsql import change


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store of the first version: an index of words without analysis, and no times."""
    path = tmp_path / "state.db"
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        db.append_messages("s", [{"role": "user", "content": f"quince 记忆断裂 {i}"} for i in range(700)])
    change(
        path,
        "DROP TABLE message_times",
        "DROP TRIGGER sessions_fts_update",
        "DROP TABLE messages_fts",
        """CREATE VIRTUAL TABLE messages_fts USING fts5(
               content, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 2')""",
        "INSERT INTO messages_fts (rowid, content) SELECT id, content FROM messages",
        "DELETE FROM hermes_ledger WHERE name <> '0001_store'",
    )
    return path


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize(
    "filters", [{}, {"role_filter": ["user"]}, {"sort": "newest"}, {"sort": "oldest"}, {"since": 0}]
)
@pytest.mark.parametrize("question", ["quince", "断", "断裂", "-pear", "*uinc*"])
def test_store_with_an_earlier_index_is_searched(
    path: Path, read_only: bool, question: str, filters: dict[str, object]
) -> None:
    with SessionDB(path, read_only=read_only) as db:
        found = db.search_messages(question, limit=1_000, budget_s=30.0, **filters)  # type: ignore[arg-type]
        assert len(found) == 700
        assert found.complete
