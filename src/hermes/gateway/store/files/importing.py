"""The first import of `sessions.json` into the database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hermes.errors import HermesError
from hermes.gateway.config import GatewayConfig
from hermes.gateway.entry import COUNTERS, SessionEntry
from hermes.gateway.keys import is_shared_multi_user_session, lane_owner, session_user
from hermes.gateway.platform import Platform
from hermes.gateway.source import SessionSource
from hermes.gateway.store.files.sessions_file import FILENAME, Rejected, load_entries, set_aside
from hermes.gateway.store.lane_entries import IMPORTED_COUNTERS, fields_from_entry
from hermes.gateway.whatsapp import expand_whatsapp_aliases
from hermes.log import inform
from hermes.state.lanes.types import ImportedLane, LaneFields, NewSession
from hermes.state.owner import owner_column
from hermes.state.provider import SessionDBProvider

RESTART_COUNTS = "restart_counts.json"
_COUNT_FILES = (RESTART_COUNTS, ".restart_failure_counts")


def import_sessions_file(db: SessionDBProvider, sessions_dir: Path, config: GatewayConfig, home: Path) -> None:
    """Add the lanes of `sessions.json` if the database has none and never had an import."""
    path = sessions_dir / FILENAME
    if not path.is_file() or db.lanes.recent(limit=1):
        return
    entries, restarts = load_entries(sessions_dir, config), _restart_counts(home)
    lanes = [_lane(key, entry, db, config, restarts.get(entry.session_key, 0)) for key, entry in entries.items()]
    rejected: Rejected = {}

    def reject(lane: ImportedLane, error: HermesError) -> None:
        rejected[lane.key] = (error.message, entries[lane.key].to_dict())

    count = db.lanes.import_once(lanes, reject=reject) if lanes else 0
    if count is not None:
        set_aside(rejected, sessions_dir)
    if count:
        inform(__name__, "imported %s lanes from %s", count, path)


def _lane(
    key: str, entry: SessionEntry, db: SessionDBProvider, config: GatewayConfig, restart_count: int
) -> ImportedLane:
    origin, owner, is_shared = entry.origin, key, True
    if origin is not None:
        is_shared = is_shared_multi_user_session(
            origin,
            group_sessions_per_user=config.group_sessions_per_user,
            thread_sessions_per_user=config.thread_sessions_per_user,
        )
        owner = lane_owner(origin, key, is_shared=is_shared).stored or key
    existing = db.get_session(entry.session_id)
    known_owner: str | None = owner
    if existing is not None and (is_shared or existing["owner"] in (None, key, *_spellings(origin))):
        known_owner = existing["owner"]  # an existing session stays as it is
    fields: LaneFields = {**fields_from_entry(entry), "restart_count": restart_count}
    counters = {name: getattr(entry, name) for name in COUNTERS if getattr(entry, name)}
    if counters:
        fields["extra"] = {IMPORTED_COUNTERS: counters}
    platform = origin.platform if origin else entry.platform
    source = platform.value if platform else "unknown"
    user_id = session_user(origin) if origin and known_owner else None
    return ImportedLane(key, NewSession(entry.session_id, source, user_id, known_owner), fields)


def _spellings(origin: SessionSource | None) -> Iterator[str | None]:
    """Yield the owners that a session of this user may have: some platforms have several ids for one person."""
    if origin is not None:
        source, users = origin.platform.value, (origin.user_id, origin.user_id_alt)
        for user in users:
            yield owner_column(source, user)
            if user and origin.platform is Platform.WHATSAPP:
                yield from (owner_column(source, alias) for alias in expand_whatsapp_aliases(user))


def _restart_counts(home: Path) -> dict[str, int]:
    """Return the counters of earlier programs, which had either of two names."""
    counts: dict[str, int] = {}
    for name in _COUNT_FILES:
        try:
            data: Any = json.loads((home / name).read_bytes())
        except (OSError, ValueError):
            continue
        if isinstance(data, dict):
            counts.update({key: value for key, value in data.items() if type(value) is int and value > 0})
    return counts
