"""Sessions go from any engine to any other by way of an export, and are the same there."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.interop.exporter import Lines, write_out
from hermes.state.import_export import session_reader
from hermes.state.import_export.session_reader import select_sessions
from hermes.state.provider import SessionDBProvider
from hermes.state.search.index_backlog import index_backlog
from tests.interop.files import claude_talk, codex_talk, take, write
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


def exported(store: SessionDBProvider) -> bytes:
    """All sessions of a store, without the numbers that it gave to its messages and the files that they came from."""
    file = io.BytesIO()
    write_out(store, select_sessions(store), Lines(), file)
    told = re.sub(rb'"imported_from":(null|"[^"]*")', b"", file.getvalue())
    return re.sub(rb'\{"id":[0-9]+,(?="session_id")', b"{", told)


def test_there_and_back_is_the_same(
    store: SessionDBProvider, other: SessionDBProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_reader, "PAGE_BYTES", 1_000)
    take(store, write(tmp_path / "claude.jsonl", claude_talk()), write(tmp_path / "codex.jsonl", codex_talk()))
    store.create_session("s", "telegram", user_id="7", system_prompt="a\0b")
    store.append_message("s", "user", [{"type": "text", "text": "\ud83d 京都"}, 1e300, None])
    store.append_message("s", "assistant", "\x01json: \0 \ud800", tool_calls=CALLS, reasoning_details={"a": "ü"})
    store.append_messages("s", [{"role": "user", "content": f"{n} " + "x" * (n * 37 % 1_500)} for n in range(60)])
    store.rewind_to_message("s", store.get_messages("s")[-3]["id"])
    store.update_token_counts("s", 10, 20, estimated_cost_usd=0.1, model="m")
    store.compress_session("s", "next", "in short", tail_from=store.get_messages("s")[-1]["id"])
    before = exported(store)
    path = tmp_path / "export.jsonl"
    with path.open("wb") as file:
        write_out(store, select_sessions(store), Lines(), file)
    tally = take(other, path, keeps_owners=True)
    assert tally.failures == {}
    assert exported(other) == before
    assert take(other, path).messages == 0
    assert take(store, path).messages == 0


def test_what_came_in_is_found_before_and_after_it_is_indexed(other: SessionDBProvider, tmp_path: Path) -> None:
    take(other, write(tmp_path / "claude.jsonl", claude_talk()), write(tmp_path / "codex.jsonl", codex_talk()))
    for _ in range(2):
        assert column(other.search_messages("京都 wiki"), "source") == ["claude-code"]
        assert index_backlog(other) == 0
