"""The health and capabilities of a store, and opening it again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hermes.errors import InvalidValue
from hermes.state.engine import Capability
from hermes.state.provider import SessionDBProvider
from tests.support.conversations import start


def test_capabilities_distinguish_a_file_from_a_server(store: SessionDBProvider) -> None:
    assert len({Capability.FILE, Capability.SERVER} & store.capabilities) == 1


def test_health_of_a_working_store(store: SessionDBProvider) -> None:
    health = store.health()
    assert health["ok"] is True
    assert health["latency_ms"] >= 0
    assert health["schema_version"] == store.schema_version()
    json.dumps(health)


@pytest.mark.parametrize(
    "given", [{"dsn": 5}, {"dsn": ""}, {"pool": object()}], ids=["a number", "nothing", "something else"]
)
def test_failed_initialize_leaves_the_store_unchanged(store: SessionDBProvider, given: dict[str, Any]) -> None:
    start(store, "s")
    with pytest.raises(InvalidValue):
        store.initialize(**given)
    assert store.session_count() == 1
