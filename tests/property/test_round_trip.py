"""A store that imports an export has the same content: exported again, it is the same, byte for byte.

Only the ids of messages differ, and the mark with the file of each session.
"""

from __future__ import annotations

import io
import math
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes.interop.detection import find
from hermes.interop.exporter import Lines, write_out
from hermes.interop.importer import Importer, ImportOptions, Tally
from hermes.state.import_export.session_reader import select_sessions
from hermes.state.provider import SessionDBProvider
from hermes_state import SessionDB
from tests.support.clock import FakeClock
from tests.support.stores import SqliteStores

IS_LONG = os.environ.get("HERMES_LONG") == "1"
MESSAGE_ID = re.compile(rb'\{"id":[0-9]+,(?="session_id")')
MARK = re.compile(rb'"imported_from":(?:null|"[^"]*"),')
LATER = 2e11
"""Later than every time in these tests, because an import has no time in the future."""

texts = st.one_of(
    st.sampled_from(
        ["hello", "", "東京 🎉", "\x01json:[1]", "\x00json:{}", "a\0b", "half \ud83d", '{"id":5,"session_id"']
    ),
    st.text(st.characters(exclude_categories=()), max_size=20),
)
numbers = st.one_of(
    st.integers(-(2**70), 2**70), st.floats(), st.sampled_from([math.nan, math.inf, -0.0, 1e300, 0.1, 1e16])
)
structures = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)
contents = st.one_of(st.none(), texts, st.lists(structures, max_size=3), st.dictionaries(texts, structures, max_size=3))
tool_calls = st.one_of(
    st.none(),
    st.lists(
        st.fixed_dictionaries({"id": texts, "function": st.fixed_dictionaries({"name": texts, "arguments": texts})}),
        max_size=2,
    ),
    structures,
)
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system"]), "content": contents},
    optional={
        "tool_calls": tool_calls,
        "tool_name": texts,
        "tool_call_id": texts,
        "finish_reason": texts,
        "reasoning": texts,
        "reasoning_content": texts,
        "reasoning_details": structures,
        "codex_reasoning_items": structures,
        "codex_message_items": structures,
        "platform_message_id": st.one_of(texts, st.integers(0, 2**40)),
        "token_count": st.integers(0, 2**40),
        "observed": st.booleans(),
        "timestamp": st.one_of(st.none(), st.floats(-1e9, 1e11), st.integers(0, 2**33)),
        "uid": st.uuids().map(str),
    },
)
counts = st.integers(0, 10**9)
usages = st.fixed_dictionaries(
    {"absolute": st.booleans()},
    optional={
        "input_tokens": counts,
        "output_tokens": counts,
        "reasoning_tokens": counts,
        "api_call_count": counts,
        "estimated_cost_usd": st.floats(0, 100),
        "actual_cost_usd": st.floats(0, 100),
        "model": st.sampled_from(["m", "n"]),
        "billing_provider": st.sampled_from(["p", "q"]),
        "cost_status": texts,
    },
)
indexes = st.integers(0, 9)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("create"), st.sampled_from([None, *range(5)]), st.sampled_from([None, "branch", "delegate"])),
        st.tuples(st.just("say"), indexes, st.lists(messages, min_size=1, max_size=4)),
        st.tuples(st.just("rewind"), indexes, indexes),
        st.tuples(st.just("restore"), indexes, indexes),
        st.tuples(st.just("use"), indexes, usages),
        st.tuples(st.just("entitle"), indexes, st.sampled_from(["Docker", "Docker #2", "京都", "Tea"])),
        st.tuples(st.just("end"), indexes, st.sampled_from(["user_exit", "session_reset", "compression"])),
        st.tuples(st.just("mark"), indexes, st.sampled_from(["archived", "pinned"])),
        st.tuples(st.just("branch"), indexes, st.none()),
        st.tuples(st.just("compress"), indexes, indexes),
        st.tuples(st.just("clear"), indexes, st.none()),
        st.tuples(st.just("delete"), indexes, st.none()),
        st.tuples(st.just("prompt"), indexes, texts),
    ),
    max_size=14,
)


def live(store: SessionDBProvider, clock: FakeClock, lived: list[tuple[Any, ...]]) -> None:
    """Run random operations of people and programs on a store."""
    names: list[str] = []
    for number, (what, which, more) in enumerate(lived):
        clock.advance(0.25)
        if what == "create":
            parent = names[which % len(names)] if names and which is not None else None
            name = f"s{number}"
            source, user = (("telegram", "7"), ("cli", "7"), ("cli", None))[number % 3]
            store.create_session(
                name, source, user_id=user, parent_session_id=parent, child_kind=more if parent else None
            )
            names.append(name)
        elif names:
            name = names[which % len(names)]
            made = act(store, name, what, more, f"s{number}")
            names = [each for each in [*names, *made] if store.get_session(each) is not None]


def act(store: SessionDBProvider, name: str, what: str, more: Any, new: str) -> list[str]:
    """Run one operation on a session and return the sessions that it created."""
    shown = store.get_messages(name)
    match what:
        case "say":
            store.append_messages(name, more)
        case "rewind":
            asked = [message["id"] for message in shown if message["role"] == "user"]
            if asked:
                store.rewind_to_message(name, asked[more % len(asked)])
        case "restore":
            every = store.get_messages(name, include_inactive=True)
            if every:
                store.restore_rewound(name, every[more % len(every)]["id"])
        case "use":
            store.update_token_counts(name, **more)
        case "entitle":
            store.set_title_if_untitled(name, more)
        case "end":
            store.end_session(name, more)
        case "mark":
            (store.set_session_archived if more == "archived" else store.set_session_pinned)(name)
        case "branch":
            store.branch_session(name, new)
            return [new]
        case "compress":
            if shown and store.get_compression_tip(name) == name:
                store.compress_session(name, new, "in short", tail_from=shown[more % len(shown)]["id"])
                return [new]
        case "clear":
            store.clear_messages(name)
        case "delete":
            store.delete_session(name)
        case _:
            store.update_system_prompt(name, more)
    return []


def exported(store: SessionDBProvider) -> bytes:
    """Return all sessions of a store, as `hermes sessions export` writes them."""
    file = io.BytesIO()
    write_out(store, select_sessions(store), Lines(), file)
    return file.getvalue()


def comparable(lines: bytes) -> bytes:
    """Return an export without the values that an import assigns."""
    return MARK.sub(b"", MESSAGE_ID.sub(b"{", lines))


def held(store: SessionDBProvider) -> list[str]:
    """Return what a store holds of every session, without ids that it assigns."""
    found = []
    for row in store.search_sessions(limit=-1):
        messages = store.get_messages(row["id"], include_inactive=True)
        places = {message["id"]: place for place, message in enumerate(messages)}
        rewinds = [
            {**each, "target_message_id": places.get(each["target_message_id"])}
            for each in store.list_rewinds(row["id"])
        ]
        rows = [row, *messages, *rewinds, *store.list_usage_events(row["id"])]
        found.append(repr([{k: v for k, v in each.items() if k != "id" or each is row} for each in rows]))
    return [re.sub(r"'imported_from': (?:None|'[^']*')", "", each) for each in found]


def imported(store: SessionDBProvider | None, data: bytes, directory: Path, options: ImportOptions) -> Tally:
    """Import exported sessions into a store."""
    path = directory / "export.jsonl"
    path.write_bytes(data)
    importer = Importer(store, options, LATER)
    importer.import_files(list(find([path])))
    assert importer.tally.failures == {}
    return importer.tally


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> SqliteStores:
    return SqliteStores(tmp_path_factory.mktemp("stores"))


@contextmanager
def two(stores: SqliteStores) -> Iterator[tuple[SessionDBProvider, SessionDBProvider, FakeClock, Path]]:
    """Yield two empty stores and a directory."""
    clock = FakeClock()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        with (
            stores.open(place, "one", clock, read_only=False) as one,
            stores.open(place, "other", clock, read_only=False) as other,
        ):
            yield one, other, clock, place


@settings(
    max_examples=400 if IS_LONG else 40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(lived=steps)
def test_imported_sessions_equal_the_export(stores: SqliteStores, lived: list[tuple[Any, ...]]) -> None:
    with two(stores) as (one, other, clock, place):
        live(one, clock, [("create", None, None), *lived])
        before = exported(one)
        clock.advance(1000)
        imported(other, before, place, ImportOptions(keeps_owners=True))
        assert comparable(exported(other)) == comparable(before)
        assert held(other) == held(one)
        # A store that already has everything imports nothing.
        assert imported(other, before, place, ImportOptions()).messages == 0
        assert imported(one, before, place, ImportOptions()).messages == 0
        assert exported(one) == before


@settings(
    max_examples=100 if IS_LONG else 12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(here=steps, there=steps, on_conflict=st.sampled_from(["skip", "rename", "merge"]), twice=st.booleans())
def test_a_dry_run_reports_what_an_import_does(
    stores: SqliteStores, here: list[tuple[Any, ...]], there: list[tuple[Any, ...]], on_conflict: Any, twice: bool
) -> None:
    with two(stores) as (one, other, clock, place):
        live(one, clock, [("create", None, None), *there])
        live(other, clock, [("create", None, None), *here])
        data = exported(one) * (2 if twice else 1)
        untouched = exported(other)
        foreseen = imported(other, data, place, ImportOptions(on_conflict, is_dry_run=True))
        assert exported(other) == untouched
        assert imported(other, data, place, ImportOptions(on_conflict)) == foreseen


def test_a_dry_run_needs_no_store(stores: SqliteStores) -> None:
    with two(stores) as (one, other, clock, place):
        live(one, clock, [("create", None, None), ("say", 0, [{"role": "user", "content": "x"}])])
        foreseen = imported(None, exported(one), place, ImportOptions(is_dry_run=True))
        assert imported(other, exported(one), place, ImportOptions()) == foreseen


def test_an_old_store_can_be_exported(tmp_path: Path, stores: SqliteStores) -> None:
    """The file is opened read-only, as the command does."""
    with two(stores) as (one, _, clock, place):
        live(one, clock, [("create", None, None), ("say", 0, [{"role": "user", "content": "x"}])])
        before = exported(one)
        with SessionDB(place / "one.db", read_only=True) as reader:
            assert exported(reader) == before
