"""Hostile files are imported or reported: nothing crashes, and nothing is imported in part."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes.errors import HermesError
from hermes.interop.detection import find
from hermes.state.import_export.session_checks import EXPORT_SCHEMA
from hermes.state.provider import SessionDBProvider
from tests.interop.files import Entry, claude_conversation, codex_conversation, import_files
from tests.support.clock import FakeClock
from tests.support.plainsql import flaws
from tests.support.stores import SqliteStores

IS_LONG = os.environ.get("HERMES_LONG") == "1"
FEW = settings(
    max_examples=500 if IS_LONG else 40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)


def export_of_everything() -> list[Entry]:
    """An export in which every field has a value."""
    message = {
        "role": "user",
        "content": [{"type": "text", "text": "hello"}],
        "uid": "u1",
        "timestamp": 5.0,
        "active": 1,
        "observed": 0,
        "token_count": 3,
        "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}],
        "reasoning": "hm",
        "reasoning_details": [{"a": 1}],
        "platform_message_id": "7",
    }
    usage = {"at": 5.0, "kind": "delta", "model": "m", "input_tokens": 5, "estimated_cost_usd": 0.5}
    session = {
        "schema": EXPORT_SCHEMA,
        "id": "s",
        "source": "cli",
        "user_id": "1",
        "owner": None,
        "parent_session_id": "p",
        "child_kind": "branch",
        "title": "Tea",
        "model": "m",
        "model_config": "{}",
        "started_at": 1.0,
        "ended_at": 9.0,
        "end_reason": "user_exit",
        "archived": 0,
        "input_tokens": 5,
        "estimated_cost_usd": 0.5,
        "usage": [usage],
        "rewinds": [{"action": "rewind", "target_uid": "u1", "message_count": 1, "at": 6.0}],
        "messages": [message],
    }
    return [session, {**session, "id": "t", "schema": None}]


TALKS = {"exported": export_of_everything(), "claude": claude_conversation(), "codex": codex_conversation()}

anything = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**80), 2**80),
        st.floats(),
        st.text(st.characters(exclude_categories=()), max_size=8),
        st.sampled_from(["\0", "\ud800", "~", "?", "user", "tool_use", "tool_result", "merge", "9" * 30, "x" * 300]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=5,
)


def paths_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to every value inside a value."""
    if path:
        yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inside:
        yield from paths_in(each, (*path, key))


def mutate(talk: list[Entry], changes: list[tuple[int, Any, bool]]) -> list[Entry]:
    """Return a copy of a conversation with some values replaced or deleted."""
    talk = copy.deepcopy(talk)
    for number, value, is_deleted in changes:
        paths = list(paths_in(talk))
        if not paths:
            break
        *path_to, last = paths[number % len(paths)]
        holder: Any = talk
        for key in path_to:
            holder = holder[key]
        if is_deleted:
            del holder[last]
        else:
            holder[last] = value
    return talk


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> SqliteStores:
    return SqliteStores(tmp_path_factory.mktemp("stores"))


@contextmanager
def fresh(base: SqliteStores) -> Iterator[tuple[SessionDBProvider, Path]]:
    """Yield an empty store and a directory; check the store's integrity at the end."""
    with tempfile.TemporaryDirectory() as name:
        with base.open(Path(name), "store", FakeClock(), read_only=False) as store:
            yield store, Path(name)
        assert flaws(Path(name, "store.db")) == []


@FEW
@given(
    form=st.sampled_from(list(TALKS)),
    changes=st.lists(st.tuples(st.integers(0, 10**6), anything, st.booleans()), min_size=1, max_size=4),
    keeps_going=st.booleans(),
)
def test_wrong_types_anywhere_are_imported_or_reported(
    base: SqliteStores, form: str, changes: list[tuple[int, Any, bool]], keeps_going: bool
) -> None:
    with fresh(base) as (store, place):
        path = place / "file.jsonl"
        path.write_text("".join(f"{json.dumps(entry)}\n" for entry in mutate(TALKS[form], changes)))
        preview = import_files(store, path, keeps_going=keeps_going, is_dry_run=True)
        assert store.session_count(include_archived=True) == 0
        tally = import_files(store, path, keeps_going=keeps_going)
        assert (tally.sessions, tally.messages, tally.skipped_lines) == (
            preview.sessions,
            preview.messages,
            preview.skipped_lines,
        )
        stored = sum(len(each["messages"]) for each in store.iter_export(include_inactive=True))
        assert stored == tally.messages
        assert keeps_going or not tally.failures or stored == 0
        assert all(isinstance(error, HermesError) and error.message for error in tally.failures.values())


@FEW
@given(
    form=st.sampled_from(list(TALKS)),
    at=st.integers(0, 10**6),
    noise=st.one_of(
        st.binary(max_size=20), st.sampled_from([b"\n", b"[" * 5000, b"\xef\xbb\xbf", b'{"a":', b"\0" * 20])
    ),
    is_cut=st.booleans(),
)
def test_noise_anywhere_is_imported_or_reported(
    base: SqliteStores, form: str, at: int, noise: bytes, is_cut: bool
) -> None:
    whole = "".join(f"{json.dumps(entry)}\n" for entry in TALKS[form]).encode()
    at %= len(whole)
    with fresh(base) as (store, place):
        path = place / "file.jsonl"
        path.write_bytes(whole[:at] + noise + (b"" if is_cut else whole[at:]))
        tally = import_files(store, path)
        assert not tally.failures or tally.messages == 0


@pytest.mark.parametrize("form", list(TALKS))
@pytest.mark.parametrize("depth", [100, 700, 900, 980, 2_000, 100_000])
def test_deep_nesting_anywhere_is_imported_or_reported(
    store: SessionDBProvider, tmp_path: Path, form: str, depth: int
) -> None:
    path = tmp_path / "file.jsonl"
    nested = "[" * depth + "]" * depth
    lines = [json.dumps(entry) for entry in TALKS[form]]
    for old in ('"content": [', '"command": "tail log"', '"action": {'):
        lines = [
            line.replace(old, old[: old.index(":") + 1] + nested + ', "was": ' + old[old.index(":") + 1 :])
            for line in lines
        ]
    path.write_text("".join(f"{line}\n" for line in lines))
    tally = import_files(store, path)
    assert not tally.failures or (tally.messages == 0 and "nested too deeply" in str(tally.failures))
    assert depth > 100 or not tally.failures


@pytest.mark.parametrize("form", list(TALKS))
@pytest.mark.parametrize("after", [b"", b"[1]\n", b'{"id": "', b"{}\n" * 20, b'{"id": "' + b"x" * (3 << 20)])
def test_file_changed_during_import_fails_cleanly(
    store: SessionDBProvider, tmp_path: Path, form: str, after: bytes
) -> None:
    path = tmp_path / "file.jsonl"
    path.write_text("".join(f"{json.dumps(entry)}\n" for entry in TALKS[form]))
    (found,) = find([path])
    assert not isinstance(found.source, HermesError)
    assert found.source.examine(0.0, lambda _: None).trouble is None
    before = [repr(message) for session in found.source.sessions(0.0, lambda _: None) for message in session.messages]
    path.write_bytes(after)
    read: list[str] = []
    # It may raise only a HermesError, and yield only messages of the original file.
    with contextlib.suppress(HermesError):
        for session in found.source.sessions(0.0, lambda _: None):
            read += [repr(message) for message in session.messages]
    assert read == before[: len(read)]
