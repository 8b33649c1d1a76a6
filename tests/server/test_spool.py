"""Messages that a server could not store are spooled in a file of their store."""

from __future__ import annotations

from typing import Any

from hermes.config import SessionDBConfig
from hermes.home import get_hermes_home
from hermes.state.messages.drafts import draft_message
from hermes.state.owner import EVERYBODY
from hermes.state.server.provider import ServerProvider
from tests.server.kinds import Connection, Kind
from tests.support.stores import spool_of


def spool_name(store: ServerProvider[Any]) -> str:
    """The name of the file of its spool."""
    return spool_of(store).path.name


def test_store_uses_the_same_spool_after_a_reopen(kind: Kind, dsn: str, settings: SessionDBConfig) -> None:
    with kind.provider(dsn, settings=settings) as store, kind.provider(dsn, settings=settings) as again:
        assert spool_name(store) == spool_name(again)


def test_stores_with_the_same_displayed_address_have_different_spools(
    kind: Kind, dsn: str, settings: SessionDBConfig, connection: Connection
) -> None:
    with kind.provider(dsn, settings=settings) as store:
        before = spool_name(store)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE hermes_ledger SET applied_at = applied_at + 1")
    connection.commit()
    with kind.provider(dsn, settings=settings) as store:
        assert spool_name(store) != before


def test_spooled_messages_are_stored_at_the_next_open(kind: Kind, dsn: str, settings: SessionDBConfig) -> None:
    with kind.provider(dsn, settings=settings) as store:
        store.create_session("s", "cli")
        assert not get_hermes_home().exists()
        spool_of(store).add("s", [draft_message({"role": "user", "content": "waits"}, 1.0)], EVERYBODY)
    with kind.provider(dsn, settings=settings) as store:
        assert [message["content"] for message in store.get_messages("s")] == ["waits"]
