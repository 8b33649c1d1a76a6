"""How a store on a server is opened, configured and shared."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hermes.config import Config, SessionDBConfig
from hermes.errors import ConfigError, InvalidValue, StoreBusy, StoreClosed, StoreUnavailable
from hermes.state.provider import SessionDBProvider, open_session_db
from hermes_state import SessionDB
from tests.server.kinds import KINDS, SECRET, Kind
from tests.support.calls import READS, fill
from tests.support.conversations import at_once
from tests.support.stores import engine_of
from tests.upgrade.checks import environment

NO_DRIVER = """
import sys
sys.modules["{driver}"] = None
from hermes.state import {provider}
try:
    {provider}("{name}://localhost/none")
except Exception as exc:
    print(type(exc).__name__, str(exc).count("."), "pip install 'hermes-sessions[{extra}]'" in str(exc))
"""


class TestInitialize:
    def test_store_without_an_address_must_be_initialized(self, kind: Kind) -> None:
        store = kind.provider()
        with pytest.raises(StoreClosed, match="initialize"):
            store.session_count()
        store.close()

    def test_initialize_opens_the_store_of_a_dsn(self, kind: Kind, dsn: str, settings: SessionDBConfig) -> None:
        with kind.provider(settings=settings) as store:
            store.initialize(dsn=dsn)
            assert store.session_count() == 0

    def test_pool_of_another_type_is_refused(self, kind: Kind) -> None:
        with pytest.raises(InvalidValue, match=kind.pool):
            kind.provider(pool=object())

    def test_second_initialize_closes_the_first_store(self, kind: Kind, dsn: str, settings: SessionDBConfig) -> None:
        with kind.provider(dsn, settings=settings) as store:
            before = engine_of(store)
            store.initialize(dsn=dsn)
            with pytest.raises(StoreClosed):
                before.read(lambda tx: tx.value("SELECT 1"))
            assert store.session_count() == 0


class TestPool:
    def test_pool_of_one_connection_is_enough_for_every_operation(
        self, kind: Kind, dsn: str, settings: SessionDBConfig, tmp_path: Path
    ) -> None:
        own = replace(settings, pool_max_size=1, pool_timeout_s=5)
        with kind.provider(dsn, settings=own) as store:
            with SessionDB(tmp_path / "other.db") as other:
                sample = fill(store, other, tmp_path / "other.db")
            for call in READS.values():
                call(store, sample)
            store.append_messages("s", [{"role": "user", "content": f"word{n}"} for n in range(600)])
            assert len(store.search_messages("word599")) == 1
            engine_of(store).write(lambda tx: store.get_session("s"))

    def test_threads_share_a_pool_of_one_connection(self, kind: Kind, dsn: str, settings: SessionDBConfig) -> None:
        with kind.provider(dsn, settings=replace(settings, pool_max_size=1)) as store:
            store.create_session("s", "cli")
            at_once(6, lambda number: [store.append_message("s", "user", f"{number}") for _ in range(20)])
            assert store.message_count("s") == 120

    def test_pool_without_a_free_connection_is_an_error(self, kind: Kind, dsn: str, settings: SessionDBConfig) -> None:
        own = replace(settings, pool_max_size=1, pool_timeout_s=0.2, write_timeout_s=0.2)
        with kind.provider(dsn, settings=own) as store:

            def work(tx: Any) -> None:
                tx.value("SELECT 1")
                with pytest.raises(StoreBusy, match="connections") as caught:
                    at_once(1, lambda _: store.create_session("s", "cli"))
                assert "pool_max_size" in caught.value.hint

            engine_of(store).write(work)


@pytest.mark.parametrize(("name", "dsn"), [(name, dsn) for name, kind in KINDS.items() for dsn in kind.nowhere])
def test_the_password_of_an_address_that_leads_nowhere_is_not_shown(
    name: str, dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises((ConfigError, StoreUnavailable)) as caught:
        KINDS[name].provider(dsn)
    chain: list[BaseException | None] = [caught.value, caught.value.__cause__]
    if not caught.value.__suppress_context__:
        chain.append(caught.value.__context__)
    assert SECRET not in "".join(map(repr, chain)) + str(caught.value) + caught.value.hint + caplog.text


class TestConfiguration:
    def test_store_is_opened_from_the_configuration(self, kind: Kind, dsn: str, settings: SessionDBConfig) -> None:
        with open_session_db(Config(sessiondb=replace(settings, dsn=dsn))) as store:
            assert isinstance(store, kind.provider)
            assert store.capabilities == kind.capabilities

    def test_configuration_without_an_address_is_an_error(self, settings: SessionDBConfig) -> None:
        with pytest.raises(ConfigError, match=r"sessiondb\.dsn"):
            open_session_db(Config(sessiondb=settings))


def test_missing_driver_is_an_error_with_the_install_command(kind: Kind) -> None:
    engine_kind = kind.provider.kind
    program = NO_DRIVER.format(
        driver=engine_kind.driver, extra=engine_kind.extra, name=engine_kind.name, provider=kind.provider.__name__
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, env=environment(), check=True
    )
    assert done.stdout == "ConfigError 0 True\n"


def test_health_describes_the_server(kind: Kind, store: SessionDBProvider, settings: SessionDBConfig) -> None:
    health = store.health()
    assert (health["ok"], health["provider"], health["schema_version"]) == (True, settings.provider, 11)
    assert health["server"].startswith(kind.servers)
    assert health["pool"]["connections"] >= 1
    assert health["waiting_for_index"] == 0
    json.dumps(health)
