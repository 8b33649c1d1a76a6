"""Every operation that people wait for uses an index, however many rows there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hermes.state.sessions.lists.browsing import BrowseFilter, Order, find_conversations, list_conversations
from hermes_state import SessionDB
from tests.sqlite.statements import Record, Statement, recorded
from tests.support.stores import engine_of

SESSIONS = 120
QUERIES = ("SELECT", "WITH", "UPDATE", "DELETE", "INSERT")


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A store with enough rows for a choice of plans, and the record of its statements."""

    db: SessionDB
    record: Record
    cursor: str
    activity_cursor: str
    message: int


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenFile]:
    """Sessions of several sources and owners, chains, branches, titles and handoffs."""
    path: Path = tmp_path_factory.mktemp("plans") / "state.db"
    with recorded() as record, SessionDB(path) as db:
        engine_of(db).write(lambda _: fill(db))
        cursor = db.list_sessions_rich(limit=5)[-1]["cursor"]
        activity_cursor = db.list_sessions_rich(limit=5, order_by_last_active=True)[-1]["cursor"]
        message = db.get_messages("s0005")[3]["id"]
        yield OpenFile(db, record, cursor, activity_cursor, message)


def fill(db: SessionDB) -> None:
    """Write all sessions in one transaction."""
    for number in range(SESSIONS):
        session = f"s{number:04}"
        source, user = ("telegram", f"u{number % 7}") if number % 2 else ("cli", None)
        db.create_session(session, source, user_id=user, started_at=1000.0 + number)
        db.append_messages(
            session, [{"role": "user", "content": f"m{n}", "timestamp": 2000.0 - number + n} for n in range(8)]
        )
        if number % 5 == 0:
            db.set_session_title(session, f"Title {number}")
        if number % 10 == 0:
            db.end_session(session, "compression")
            db.create_session(f"{session}-next", source, parent_session_id=session, started_at=3000.0 + number)
        if number % 11 == 0:
            db.set_session_archived(session)
        if number % 13 == 0:
            db.request_handoff(session, "discord")


Call = Callable[[OpenFile], object]

OPERATIONS: dict[str, Call] = {
    "append": lambda s: s.db.append_message("s0005", "user", "more"),
    "append with a uid": lambda s: s.db.append_message("s0005", "user", "more", uid="once"),
    "append in a chain": lambda s: s.db.append_message("s0010-next", "user", "more"),
    "append several": lambda s: s.db.append_messages("s0007", [{"role": "user", "content": "a", "uid": "u"}] * 2),
    "get a session": lambda s: s.db.get_session("s0005"),
    "get messages": lambda s: s.db.get_messages("s0005"),
    "get messages, hidden ones too": lambda s: s.db.get_messages("s0005", include_inactive=True),
    "page of messages": lambda s: s.db.get_messages("s0005", before_id=s.message, limit=2),
    "messages since": lambda s: s.db.get_messages("s0005", after_id=s.message),
    "messages for an owner": lambda s: s.db.get_messages("s0005", owner="telegram:u5"),
    "conversation": lambda s: s.db.get_messages_as_conversation("s0005"),
    "conversation with ancestors": lambda s: s.db.get_messages_as_conversation("s0010-next", include_ancestors=True),
    "window": lambda s: s.db.get_messages_around("s0005", s.message, 2),
    "anchored view": lambda s: s.db.get_anchored_view("s0005", s.message, 1),
    "recent user messages": lambda s: s.db.list_recent_user_messages("s0005", 3),
    "message count": lambda s: s.db.message_count("s0005"),
    "list": lambda s: s.db.list_sessions_rich(),
    "list page": lambda s: s.db.list_sessions_rich(after=s.cursor),
    "list of a source": lambda s: s.db.list_sessions_rich(source="cli"),
    "list page of a source": lambda s: s.db.list_sessions_rich(source="cli", after=s.cursor),
    "list of an owner": lambda s: s.db.list_sessions_rich(owner="telegram:u5"),
    "list page of an owner": lambda s: s.db.list_sessions_rich(owner="telegram:u5", after=s.cursor),
    "list of the archived": lambda s: s.db.list_sessions_rich(archived_only=True),
    "list by activity": lambda s: s.db.list_sessions_rich(order_by_last_active=True),
    "list page by activity": lambda s: s.db.list_sessions_rich(order_by_last_active=True, after=s.activity_cursor),
    "list of a source by activity": lambda s: s.db.list_sessions_rich(source="cli", order_by_last_active=True),
    "list page of a source by activity": lambda s: s.db.list_sessions_rich(
        source="cli", order_by_last_active=True, after=s.activity_cursor
    ),
    "list of an owner by activity": lambda s: s.db.list_sessions_rich(owner="telegram:u5", order_by_last_active=True),
    "list page of an owner by activity": lambda s: s.db.list_sessions_rich(
        owner="telegram:u5", order_by_last_active=True, after=s.activity_cursor
    ),
    "list of the archived by activity": lambda s: s.db.list_sessions_rich(
        archived_only=True, order_by_last_active=True
    ),
    "browse by activity": lambda s: list_conversations(s.db, BrowseFilter(), 10),
    "browse page by activity": lambda s: list_conversations(
        s.db, BrowseFilter(), 10, list_conversations(s.db, BrowseFilter(), 10)[-1]
    ),
    "browse by start": lambda s: list_conversations(s.db, BrowseFilter(order=Order.STARTED), 10),
    "browse a source": lambda s: list_conversations(s.db, BrowseFilter(source="cli"), 10),
    "browse by words": lambda s: list_conversations(s.db, BrowseFilter("title"), 10),
    "conversations of sessions": lambda s: find_conversations(s.db, ["s0005", "s0010-next"]),
    "all sessions by activity": lambda s: s.db.search_sessions(),
    "title of a session": lambda s: s.db.get_session_title("s0005"),
    "session of a title": lambda s: s.db.get_session_by_title("Title 5"),
    "session of a title for an owner": lambda s: s.db.get_session_by_title("Title 5", owner="telegram:u5"),
    "title set": lambda s: s.db.set_session_title("s0006", "Another title"),
    "title lineage": lambda s: s.db.resolve_session_by_title("Title 5"),
    "title lineage of an owner": lambda s: s.db.resolve_session_by_title("Title 5", owner="telegram:u5"),
    "next title": lambda s: s.db.get_next_title_in_lineage("Title 5"),
    "id prefix": lambda s: s.db.resolve_session_id("s0005"),
    "id prefix that is one": lambda s: s.db.resolve_session_id("s000"),
    "id prefix of an owner": lambda s: s.db.resolve_session_id("s000", owner="telegram:u5"),
    "compression tip": lambda s: s.db.get_compression_tip("s0010"),
    "where to resume": lambda s: s.db.resolve_resume_session_id("s0010-next"),
    "ancestors": lambda s: s.db.get_ancestors("s0010-next"),
    "descendants": lambda s: s.db.get_descendants("s0010"),
    "pending handoffs": lambda s: s.db.list_pending_handoffs(),
    "handoff": lambda s: s.db.get_handoff_state("s0013"),
    "tokens": lambda s: s.db.update_token_counts("s0005", input_tokens=1),
    "usage events": lambda s: s.db.list_usage_events("s0005"),
    "end": lambda s: s.db.end_session("s0008", "user_exit"),
    "archive": lambda s: s.db.set_session_archived("s0020"),
    "rewind": lambda s: s.db.rewind_to_message("s0009", s.db.get_messages("s0009")[4]["id"]),
    "clear": lambda s: s.db.clear_messages("s0012"),
    "delete": lambda s: s.db.delete_session("s0014"),
    "cron runs": lambda s: s.db.list_cron_job_runs("nightly"),
    "compression lock": lambda s: s.db.try_acquire_compression_lock("s0005", "me"),
    "note": lambda s: s.db.get_meta("indexed_upto"),
}

# Sorted after an index has found them: the few pending ones, the first rows of merged walks.
SORTED_AFTERWARDS = {"pending handoffs", "all sessions by activity"}


def queries(statements: list[Statement]) -> list[Statement]:
    """The statements that look for rows."""
    return [each for each in statements if each.sql.split()[0] in QUERIES]


def is_scan(step: str) -> bool:
    """Whether a step looks at every row of a table; the few rows of a walk that is merged with others are none."""
    return step.startswith("SCAN") and not step.startswith(("SCAN range", "SCAN line")) and "INDEX" not in step


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_walks_indexes_and_sorts_nothing(store: OpenFile, name: str) -> None:
    with store.record.listening() as statements:
        OPERATIONS[name](store)
    found = queries(list(statements))
    assert found
    for statement in found:
        for step in statement.plan():
            assert not is_scan(step), f"{step}: {statement.sql}"
            assert "AUTOMATIC" not in step, f"{step}: {statement.sql}"
            # The last terms are sorted within one tick of activity, which is a handful of rows.
            sorts = "TEMP B-TREE" in step and "LAST" not in step
            assert not sorts or name in SORTED_AFTERWARDS, f"{step}: {statement.sql}"


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("append with a uid", "idx_messages_uid"),
        ("get messages", "idx_messages_session"),
        ("conversation", "idx_messages_session"),
        ("window", "idx_messages_session"),
        ("list", "idx_sessions_list_started"),
        ("list page", "idx_sessions_list_started"),
        ("list of a source", "idx_sessions_source_started"),
        ("list page of a source", "idx_sessions_source_started"),
        ("list of an owner", "idx_sessions_owner_started"),
        ("list page of an owner", "idx_sessions_owner_started"),
        ("list by activity", "idx_sessions_list_active"),
        ("list page by activity", "idx_sessions_list_active"),
        ("list of a source by activity", "idx_sessions_source_active"),
        ("list page of a source by activity", "idx_sessions_source_active"),
        ("list of an owner by activity", "idx_sessions_owner_active"),
        ("list page of an owner by activity", "idx_sessions_owner_active"),
        ("list of the archived", "idx_sessions_list_started"),
        ("session of a title", "idx_sessions_title_unique"),
        ("title lineage", "idx_sessions_title_unique"),
        ("next title", "idx_sessions_title_unique"),
        ("id prefix that is one", "sqlite_autoindex_sessions_1"),
        ("compression tip", "idx_sessions_chain"),
        ("browse by activity", "idx_sessions_list_active"),
        ("browse page by activity", "idx_sessions_list_active"),
        ("browse by start", "idx_sessions_list_started"),
        ("browse a source", "idx_sessions_source_active"),
        ("browse by words", "idx_sessions_list_active"),
        ("descendants", "idx_sessions_parent"),
        ("pending handoffs", "idx_sessions_handoff"),
        ("usage events", "idx_usage_events_session"),
        ("archive", "idx_sessions_chain"),
    ],
)
def test_operation_has_its_own_index(store: OpenFile, name: str, index: str) -> None:
    with store.record.listening() as statements:
        OPERATIONS[name](store)
    steps = [step for statement in queries(list(statements)) for step in statement.plan()]
    assert any(f"INDEX {index}" in step for step in steps), steps


@pytest.mark.parametrize("name", ["list", "list page by activity", "list of an owner by activity", "get messages"])
def test_page_reads_no_more_than_its_rows(store: OpenFile, name: str) -> None:
    """The first step of the plan is a search with the order of the page: no scan, and nothing is sorted."""
    with store.record.listening() as statements:
        OPERATIONS[name](store)
    assert all(statement.plan()[0].startswith("SEARCH") for statement in queries(list(statements)))


def test_list_with_and_without_the_archived_merges_two_walks(store: OpenFile) -> None:
    with store.record.listening() as statements:
        shown = store.db.list_sessions_rich(include_archived=True, limit=10)
    assert len(shown) == 10
    steps = queries(list(statements))[0].plan()
    assert not any(is_scan(step) for step in steps), steps
    assert len([step for step in steps if "idx_sessions_list_started" in step]) == 2


def test_repeated_uid_changes_nothing_and_costs_two_lookups(store: OpenFile) -> None:
    first = store.db.append_message("s0005", "user", "again", uid="idempotent")
    with store.record.listening() as statements:
        assert store.db.append_message("s0005", "user", "again", uid="idempotent") == first
    assert [each.sql.split()[0] for each in queries(list(statements))] == ["SELECT", "SELECT"]
