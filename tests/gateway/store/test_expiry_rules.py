"""Which lanes have expired, when no policy ends sessions."""

from __future__ import annotations

from pathlib import Path

from hermes.gateway import GatewayConfig, Platform, SessionResetPolicy, SessionSource, SessionStore
from hermes.state.sqlite.provider import SQLiteSessionDBProvider


def test_no_lane_expires_without_a_policy(tmp_path: Path) -> None:
    config = GatewayConfig(default_reset_policy=SessionResetPolicy(mode="none"), sessions_dir=tmp_path)
    with SQLiteSessionDBProvider(tmp_path / "state.db") as db, SessionStore(tmp_path, config, db=db) as store:
        store.get_or_create_session(SessionSource(Platform.TELEGRAM, "chat", user_id="ada"))
        assert list(store.expired_entries()) == []
