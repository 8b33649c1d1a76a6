"""Time limits of statements, and the values in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from hermes.config import PostgreSQLConfig, SessionDBConfig
from hermes.errors import InvalidValue, StoreBusy
from hermes.state.postgres.provider import PostgreSQLSessionDBProvider
from tests.support.conversations import contents, start
from tests.support.stores import engine_of


@pytest.fixture
def held(store: PostgreSQLSessionDBProvider, dsn: str, schema: str) -> Iterator[psycopg.Connection[Any]]:
    """Another program that holds a lock on the row of session `s`."""
    start(store, "s")
    with psycopg.connect(dsn) as other:
        other.execute(f"SELECT 1 FROM {schema}.sessions WHERE id = 's' FOR UPDATE".encode())
        yield other
        other.rollback()


class TestWaiting:
    def test_write_obeys_the_lock_timeout_of_the_server(
        self, held: psycopg.Connection[Any], dsn: str, settings: SessionDBConfig
    ) -> None:
        own = replace(settings, write_timeout_s=0.6, postgresql=PostgreSQLConfig(lock_timeout_s=0.05))
        with PostgreSQLSessionDBProvider(dsn, settings=own) as hasty, pytest.raises(StoreBusy):
            hasty.append_message("s", "user", "hello")

    def test_slow_statement_is_an_error(self, dsn: str, settings: SessionDBConfig) -> None:
        own = replace(settings, postgresql=PostgreSQLConfig(statement_timeout_s=0.1))
        with (
            PostgreSQLSessionDBProvider(dsn, settings=own) as store,
            pytest.raises(StoreBusy, match="statement timeout"),
        ):
            engine_of(store).read(lambda tx: tx.value("SELECT pg_sleep(20)"))


class TestValues:
    @pytest.mark.parametrize("size", [1_000_000, 12_000_000])
    def test_large_values_are_stored_and_read(self, store: PostgreSQLSessionDBProvider, size: int) -> None:
        start(store, "s")
        text = "wörd " * (size // 5)
        store.append_messages("s", [{"role": "tool", "content": text}, {"role": "user", "content": "after"}])
        assert contents(store.get_messages("s")) == [text, "after"]

    def test_key_too_long_for_an_index_is_refused(self, store: PostgreSQLSessionDBProvider) -> None:
        import random

        unlike = "".join(chr(random.Random(number).randrange(0x4E00, 0x9FFF)) for number in range(5_000))
        with pytest.raises(InvalidValue):
            store.create_session(unlike, "cli")
        assert store.session_count() == 0

    def test_sums_are_ints_or_floats(self, store: PostgreSQLSessionDBProvider) -> None:
        start(store, "s", "t", model="m")
        for session_id in ("s", "t"):
            store.update_token_counts(session_id, input_tokens=2**40, estimated_cost_usd=0.25, model="m")
        (row,) = store.usage_by_model()
        assert (row["total_input"], row["total_cost"]) == (2**41, 0.5)
        assert {type(row["total_input"]), type(row["total_cost"])} == {int, float}
