"""How far a migration has come: noted in the target, in the transactions that carry, so that it is never wrong."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Literal

from hermes.errors import Conflict
from hermes.state.engine import Reading, Transaction
from hermes.state.maintenance.meta import OWN_PREFIX

Mode = Literal["copy", "fill", "merge"]
"""`copy`: the target was empty, and messages come in the order of their ids, which they keep. `fill`: the same, but the
ids that would come next were given to others, so that messages get new ones from then on. `merge`: the target was not
empty; what it has stays as it is, and what it lacks gets new ids."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What is noted of a migration."""

    origin: str
    """Where the sessions come from, as it may be shown."""
    mode: Mode
    run: str
    """Who is at it."""
    started_at: float
    after: int = 0
    """The last message that was copied; the next ones follow it."""
    sessions: int = 0
    messages: int = 0
    """How many were carried."""
    finished_at: float | None = None

    @property
    def is_exclusive(self) -> bool:
        """Whether all that the target has of the origin's sessions was put there by this migration."""
        return self.mode != "merge"


def key_of(identity: str) -> str:
    """Under which key a migration from a store is noted."""
    return f"{OWN_PREFIX}{blake2b(identity.encode(errors='surrogatepass'), digest_size=8).hexdigest()}"


def read_progress(tx: Reading, key: str, ending: str = "") -> Progress | None:
    """What is noted, or None if nothing was ever carried from there."""
    noted = tx.value(f'SELECT value FROM state_meta WHERE "key" = :key {ending}', key=key)
    return None if noted is None else Progress(**json.loads(noted))


def save_progress(tx: Transaction, key: str, progress: Progress) -> None:
    """Note how far the migration has come."""
    tx.run(tx.dialect.upsert("state_meta", ["key"], ["value"]), key=key, value=json.dumps(asdict(progress)))


def lock_progress(tx: Transaction, key: str, run: str) -> Progress:
    """What is noted, for changing it; raises if somebody else has taken the migration over."""
    progress = read_progress(tx, key, tx.dialect.for_update)
    if progress is None or progress.run != run:
        raise Conflict(
            "another process has taken this migration over",
            hint="it goes on there; when it is done, `hermes sessiondb migrate --verify` compares the two",
        )
    return progress
