"""A node that has lost its lease cannot change the lane, and a gateway does not continue in files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.errors import StaleLease, StoreUnavailable
from hermes.gateway import GatewayConfig, Platform, SessionSource, SessionStore, build_session_key
from hermes.state.lanes.types import Lease
from hermes.state.sqlite.provider import SQLiteSessionDBProvider

SOURCE = SessionSource(Platform.TELEGRAM, "chat", user_id="ada")
KEY = build_session_key(SOURCE)

CHANGES: dict[str, Callable[[SessionStore, Lease], object]] = {
    "get_or_create": lambda store, lease: store.get_or_create_session(SOURCE, force_new=True, lease=lease),
    "reset": lambda store, lease: store.reset_session(KEY, lease=lease),
    "switch": lambda store, lease: store.switch_session(KEY, "other", lease=lease),
    "suspend": lambda store, lease: store.suspend_session(KEY, lease=lease),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_lost_lease_changes_no_lane(change: Callable[[SessionStore, Lease], object], tmp_path: Path) -> None:
    with SQLiteSessionDBProvider(tmp_path / "state.db") as db, _store(tmp_path, db) as store:
        store.get_or_create_session(SOURCE)
        db.create_session("other", "telegram", user_id="ada")
        lost = db.turns.acquire(KEY, "north", 0.0)
        taken = db.turns.acquire(KEY, "south", 60.0)
        assert lost is not None
        assert taken is not None
        before = db.lanes.get(KEY)
        with pytest.raises(StaleLease):
            change(store, lost.lease)
        assert db.lanes.get(KEY) == before
        change(store, taken.lease)
        assert db.lanes.get(KEY) != before


def test_store_without_files_raises_when_the_database_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SQLiteSessionDBProvider(tmp_path / "state.db") as db:
        store = SessionStore(tmp_path / "sessions", GatewayConfig(), db=db, uses_files=False)
        entry = store.get_or_create_session(SOURCE)

        def fail(*_: object) -> None:
            raise StoreUnavailable("gone")

        with monkeypatch.context() as patch:
            patch.setattr(db._engine, "write", fail)
            with pytest.raises(StoreUnavailable):
                store.get_or_create_session(SOURCE)
        assert store.get_or_create_session(SOURCE).session_id == entry.session_id
        store.close()


def _store(directory: Path, db: SQLiteSessionDBProvider) -> SessionStore:
    return SessionStore(directory / "sessions", GatewayConfig(), db=db)
