"""A checkup of a store on a server."""

from __future__ import annotations

import time
from typing import Any

import pytest

from hermes.config import SessionDBConfig
from hermes.state.maintenance.findings import Finding, Status
from hermes.state.messages.drafts import draft_message
from hermes.state.owner import EVERYBODY
from hermes.state.server import checkup
from hermes.state.server.provider import ServerProvider
from tests.server.kinds import Connection, Kind
from tests.support.stores import spool_of

Store = ServerProvider[Any]


def run(connection: Connection, *statements: str) -> None:
    """Change a store like another program."""
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement.rstrip(";"))
    connection.commit()


@pytest.fixture
def used(store: Store) -> Store:
    """A store with indexed messages."""
    for number in range(3):
        store.create_session(f"s{number}", "cli")
        store.append_messages(f"s{number}", [{"role": "user", "content": f"word{each}"} for each in range(5)])
    store.optimize_fts()
    return store


def examine(
    kind: Kind, dsn: str, settings: SessionDBConfig, *, is_deep: bool = False, pending: tuple[str, ...] = ()
) -> dict[str, Finding]:
    """The findings by name."""
    found = checkup.examine(
        lambda: kind.provider(dsn, settings=settings, read_only=True),
        lambda _: list(pending),
        now=time.time(),
        is_deep=is_deep,
    )
    return {each.name: each for each in found}


@pytest.mark.parametrize("is_deep", [False, True], ids=["briefly", "deeply"])
def test_healthy_store_is_ok(kind: Kind, dsn: str, settings: SessionDBConfig, used: Store, is_deep: bool) -> None:
    found = examine(kind, dsn, settings, is_deep=is_deep)
    assert {name: each.status for name, each in found.items() if each.status is not Status.OK} == {}
    assert found["server"].summary.startswith(kind.servers)
    assert found["counters"].summary == "the counts of 3 sessions are correct"
    assert found["index-parity"].values == {"ids": 15, "ids_checked": 15, "lacking": 0}


def test_hint_for_a_wrong_count_fixes_it(
    kind: Kind, dsn: str, settings: SessionDBConfig, used: Store, connection: Connection
) -> None:
    run(connection, "UPDATE sessions SET message_count = 7 WHERE id = 's1'")
    found = examine(kind, dsn, settings)["counters"]
    assert (found.status, found.summary) == (Status.WARNING, "the message count is wrong for s1")
    run(connection, found.remedy.removeprefix("in the database: "))
    assert examine(kind, dsn, settings)["counters"].status is Status.OK


def test_hint_for_a_missing_index_entry_adds_it(
    kind: Kind, dsn: str, settings: SessionDBConfig, used: Store, connection: Connection
) -> None:
    run(connection, "DELETE FROM message_words WHERE message_id = 7")
    found = examine(kind, dsn, settings)["index-parity"]
    assert (found.status, found.values["lacking"]) == (Status.ERROR, 1)
    statement, _, command = found.remedy.removeprefix("in the database: ").partition(" then ")
    assert command == "`hermes sessions optimize`"
    run(connection, statement)
    used.optimize_fts()
    assert examine(kind, dsn, settings)["index-parity"].status is Status.OK


def test_quick_checkup_reports_how_much_it_checked(
    kind: Kind, dsn: str, settings: SessionDBConfig, used: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkup, "SOME_SESSIONS", 2)
    monkeypatch.setattr(checkup, "SOME_IDS", 10)
    found = examine(kind, dsn, settings)
    assert [found[name].status for name in ("counters", "index-parity")] == [Status.NOTE] * 2
    assert found["counters"].summary == "the counts are correct for the 2 newest of 3 sessions"
    assert found["index-parity"].summary == "the newest 10 of 15 ids agree with the messages"
    assert {each.status for each in examine(kind, dsn, settings, is_deep=True).values()} == {Status.OK}


def test_locks_and_pending_links_are_reported(kind: Kind, dsn: str, settings: SessionDBConfig, used: Store) -> None:
    used.try_acquire_compression_lock("s0", "agent", ttl_seconds=600)
    spool_of(used).add("s1", [draft_message({"role": "user", "content": "waits"}, 1.0)], EVERYBODY)
    found = examine(kind, dsn, settings)
    assert found["leases"].summary == "1 session being compressed"
    assert (found["spool"].status, found["spool"].values["messages"]) == (Status.WARNING, 1)


def test_incomplete_tables_are_a_warning_to_upgrade(
    kind: Kind, dsn: str, settings: SessionDBConfig, used: Store
) -> None:
    found = examine(kind, dsn, settings, pending=("0002_more",))["schema"]
    assert (found.status, found.remedy) == (Status.WARNING, "`hermes sessiondb upgrade` adds it")


def test_unreachable_server_is_the_only_finding(kind: Kind, settings: SessionDBConfig) -> None:
    found = examine(kind, kind.nowhere[0], settings)
    assert {name: each.status for name, each in found.items()} == {"server": Status.ERROR}
    assert "hunter2" not in found["server"].summary + found["server"].remedy
