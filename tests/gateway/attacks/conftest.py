"""The nodes of the engine's tests."""

from __future__ import annotations

from tests.gateway.engine.conftest import clock, empty_store, guarded_loop, home, make_node, provider

__all__ = ["clock", "empty_store", "guarded_loop", "home", "make_node", "provider"]
