"""Export from one engine and import into another changes nothing."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.interop.exporter import Lines, write_out
from hermes.state.import_export import message_pages
from hermes.state.import_export.session_reader import select_sessions
from hermes.state.indexing.index_backlog import index_backlog
from hermes.state.provider import SessionDBProvider
from tests.interop.files import claude_conversation, codex_conversation, import_files, write
from tests.support.clock import FakeClock
from tests.support.conversations import column
from tests.support.servers import server_or_skip
from tests.support.stores import ENGINES

CALLS = [{"id": "c", "function": {"name": "terminal", "arguments": "{}"}}]


@pytest.fixture(params=sorted(ENGINES))
def other(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SessionDBProvider]:
    """An empty store of each engine."""
    stores = server_or_skip(lambda: ENGINES[request.param](tmp_path))
    with stores.open(tmp_path, "other", FakeClock(), read_only=False) as store:
        yield store
    stores.close()


def export_without_local_ids(store: SessionDBProvider) -> bytes:
    """Return an export of all sessions, without message ids and file names, which differ between stores."""
    file = io.BytesIO()
    write_out(store, select_sessions(store), Lines(), file)
    text = re.sub(rb'"imported_from":(null|"[^"]*")', b"", file.getvalue())
    return re.sub(rb'\{"id":[0-9]+,(?="session_id")', b"{", text)


def test_export_and_import_between_engines_changes_nothing(
    store: SessionDBProvider, other: SessionDBProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_pages, "PAGE_BYTES", 1_000)
    import_files(
        store,
        write(tmp_path / "claude.jsonl", claude_conversation()),
        write(tmp_path / "codex.jsonl", codex_conversation()),
    )
    store.create_session("s", "telegram", user_id="7", system_prompt="a\0b")
    store.append_message("s", "user", [{"type": "text", "text": "\ud83d 京都"}, 1e300, None])
    store.append_message("s", "assistant", "\x01json: \0 \ud800", tool_calls=CALLS, reasoning_details={"a": "ü"})
    store.append_messages("s", [{"role": "user", "content": f"{n} " + "x" * (n * 37 % 1_500)} for n in range(60)])
    store.rewind_to_message("s", store.get_messages("s")[-3]["id"])
    store.update_token_counts("s", 10, 20, estimated_cost_usd=0.1, model="m")
    store.compress_session("s", "next", "in short", tail_from=store.get_messages("s")[-1]["id"])
    before = export_without_local_ids(store)
    path = tmp_path / "export.jsonl"
    with path.open("wb") as file:
        write_out(store, select_sessions(store), Lines(), file)
    tally = import_files(other, path, keeps_owners=True)
    assert tally.failures == {}
    assert export_without_local_ids(other) == before
    assert import_files(other, path).messages == 0
    assert import_files(store, path).messages == 0


def test_imported_messages_are_found_before_and_after_indexing(other: SessionDBProvider, tmp_path: Path) -> None:
    import_files(
        other,
        write(tmp_path / "claude.jsonl", claude_conversation()),
        write(tmp_path / "codex.jsonl", codex_conversation()),
    )
    for _ in range(2):
        assert column(other.search_messages("京都 wiki"), "source") == ["claude-code"]
        assert index_backlog(other) == 0
