"""Reading a damaged file never fails, and the rows of other pages are salvaged."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import example, given, settings
from hypothesis import strategies as st

from hermes.state.sqlite.repair.damaged_file import DamagedFile
from hermes.state.sqlite.repair.salvage import Salvaged, salvage
from hermes.state.sqlite.schema.definitions import schema_sql
from hermes_state import SessionDB
from tests.support.pagemap import PageMap, page_map
from tests.support.plainsql import change, plain, rows

IS_LONG = os.environ.get("HERMES_LONG") == "1"
SIZE = 512
MESSAGES = "SELECT id, session_id, role, uid, timestamp, content FROM messages"
SESSIONS = "SELECT rowid, id, source, title, owner, system_prompt FROM sessions"


class Original(NamedTuple):
    """A store before its damage."""

    data: bytes
    messages: dict[int, Any]
    sessions: dict[int, Any]
    message_pages: PageMap
    session_pages: PageMap

    @property
    def pages(self) -> int:
        return len(self.data) // SIZE


@cache
def original() -> Original:
    """Create a store with small pages, so that it has many of every kind; some of them are free."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "state.db"
        with SessionDB(path) as db:
            for number in range(30):
                name = f"s{number:02}"
                db.create_session(name, "telegram", user_id="ada", system_prompt="p" * 40 * number)
                db.set_session_title(name, f"title {number}")
                db.append_messages(
                    name, [{"role": "user", "content": f"word{i} " * (90 if i == 3 else 9)} for i in range(8)]
                )
            db.update_token_counts("s01", input_tokens=5)
        change(path, "DELETE FROM state_meta WHERE key = 'schema_cookie'")
        _shrink_pages(path)
        change(path, "DELETE FROM messages WHERE session_id IN ('s07', 's08', 's09')")
        return Original(
            path.read_bytes(),
            {row[0]: row for row in rows(path, MESSAGES)},
            {row[0]: row for row in rows(path, SESSIONS)},
            page_map(path, "messages"),
            page_map(path, "sessions"),
        )


def _shrink_pages(path: Path) -> None:
    with plain(path) as connection:
        for statement in ("PRAGMA journal_mode = delete", f"PRAGMA page_size = {SIZE}", "VACUUM"):
            connection.execute(statement).fetchall()


class SalvagedRows(NamedTuple):
    """The rows that were salvaged from a damaged file."""

    salvaged: Salvaged
    messages: dict[int, Any]
    sessions: dict[str, Any]


def brought_from(data: bytes, log: bytes = b"") -> SalvagedRows:
    """Salvage the rows of a file and a log with these bytes."""
    with tempfile.TemporaryDirectory() as place:
        path, target = Path(place) / "state.db", Path(place) / "new.db"
        path.write_bytes(data)
        Path(f"{path}-wal").write_bytes(log)
        damaged = DamagedFile(path, schema_sql())
        try:
            salvaged = salvage(damaged, target)
        finally:
            damaged.close()
        return SalvagedRows(
            salvaged,
            {row[0]: row for row in rows(target, MESSAGES)},
            {row[1]: row for row in rows(target, SESSIONS)},
        )


flips = st.lists(st.tuples(st.integers(0, SIZE - 1), st.integers(1, 255)), min_size=1, max_size=8)


@settings(max_examples=600 if IS_LONG else 25, deadline=None, derandomize=not IS_LONG)
@given(page=st.integers(0, 10_000), edits=flips)
@example(page=0, edits=[(20, 8)])  # the space that is reserved on each page
@example(page=0, edits=[(59, 2)])  # the text encoding
@example(page=0, edits=[(16, 255), (17, 255)])  # the size of the pages
@example(page=0, edits=[(0, 1)])
@example(page=0, edits=[(35, 7)])  # the first free page
@example(page=0, edits=[(100, 8)])  # the page type
def test_damage_to_one_page_affects_only_that_page(page: int, edits: list[tuple[int, int]]) -> None:
    before = original()
    number = page % before.pages + 1
    data = bytearray(before.data)
    for at, change_by in edits:
        data[(number - 1) * SIZE + at] ^= change_by
    after = brought_from(bytes(data))
    for key in before.message_pages.safe(number):
        assert after.messages.get(key) == before.messages[key]
    for key in before.session_pages.safe(number):
        name = before.sessions[key][1]
        assert after.sessions.get(name) == before.sessions[key]
    # A flipped key or id may be a new one; deleted rows do not return.
    of_page = len(before.message_pages.keys.get(number, ()))
    assert len(after.messages.keys() - before.messages.keys()) <= of_page


@settings(max_examples=10, deadline=None, derandomize=not IS_LONG)
@given(kept=st.integers(0, 10_000), more=st.integers(0, SIZE - 1))
def test_remaining_pages_of_a_truncated_file_are_salvaged(kept: int, more: int) -> None:
    before = original()
    pages = kept % before.pages + 1
    after = brought_from(before.data[: pages * SIZE + more])
    missing = range(pages + 1, before.pages + 1)
    for key in before.message_pages.safe(*missing):
        assert after.messages.get(key) == before.messages[key]


@settings(max_examples=300 if IS_LONG else 15, deadline=None, derandomize=not IS_LONG)
@given(
    edits=st.lists(st.tuples(st.integers(0, 1 << 30), st.binary(min_size=1, max_size=700)), max_size=30),
    kept=st.integers(0, 1 << 30) | st.none(),
)
def test_random_damage_never_makes_salvage_fail(edits: list[tuple[int, bytes]], kept: int | None) -> None:
    before = original()
    data = bytearray(before.data)
    for place, written in edits:
        at = place % len(data)
        data[at : at + len(written)] = written[: len(data) - at]
    after = brought_from(bytes(data if kept is None else data[: kept % len(data)]))
    assert after.salvaged.messages == len(after.messages)
    assert after.salvaged.sessions == len(after.sessions)


@settings(max_examples=10, deadline=None, derandomize=not IS_LONG)
@given(st.binary(max_size=3_000), st.booleans())
def test_a_log_of_random_bytes_is_not_used(noise: bytes, has_magic: bool) -> None:
    magic = (0x377F0682).to_bytes(4, "big") + (3_007_000).to_bytes(4, "big") + SIZE.to_bytes(4, "big")
    after = brought_from(original().data, magic * has_magic + noise)
    assert after.messages == original().messages


@settings(max_examples=10, deadline=None, derandomize=not IS_LONG)
@given(st.binary(max_size=5_000))
def test_random_bytes_contain_no_rows(data: bytes) -> None:
    after = brought_from(data)
    assert (after.salvaged.messages, after.salvaged.sessions) == (0, 0)
