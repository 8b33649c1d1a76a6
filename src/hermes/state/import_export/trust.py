"""Rules for sessions of a file: what they may contain and change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hermes.state.sessions.imported import without_mark

if TYPE_CHECKING:
    from hermes.state.import_export.session_checks import CheckedSession


@dataclass(frozen=True, slots=True)
class ImportTerms:
    """What the sessions of a file may change here."""

    file: str
    """The name of the file, which marks its sessions."""
    keeps_owners: bool = False
    """Whether they belong to the owners in the file; otherwise they belong to the terminal."""
    adds_to_own: bool = False
    """Whether they may add messages to sessions that were created here, and be linked to them."""


def apply_terms(session: CheckedSession, terms: ImportTerms, now: float) -> CheckedSession:
    """Return a session as it may be imported: marked, no later than now, and without an owner unless terms keep it."""
    values = {
        **session.values,
        "started_at": min(session.values["started_at"], now),
        "model_config": without_mark(session.values["model_config"]),
        "imported_from": terms.file,
    }
    if not terms.keeps_owners:
        values["owner"] = None
    ended_at = session.carried.get("ended_at")
    carried = session.carried if ended_at is None else {**session.carried, "ended_at": min(ended_at, now)}
    return replace(
        session,
        values=values,
        carried=carried,
        opening=[_no_later(each, now) for each in session.opening],
        usage=[_no_later(each, now) for each in session.usage],
        rewinds=[_no_later(each, now) for each in session.rewinds],
        latest=now,
        adds_to_own=terms.adds_to_own,
    )


def _no_later(event: Mapping[str, Any], now: float) -> dict[str, Any]:
    return {**event, "at": min(event["at"], now)}
