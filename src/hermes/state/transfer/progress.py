"""The progress of a migration, stored in the target in the same transactions as the copied rows."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Literal

from hermes.errors import Conflict
from hermes.state.engine import Reading, Transaction
from hermes.state.maintenance.meta import OWN_PREFIX

Mode = Literal["copy", "fill", "merge"]
"""`copy`: the target was empty, and messages are copied in the order of their ids, which they keep. `fill`: the same,
but another program has taken the next ids, so that further messages get new ones. `merge`: the target was not empty;
its rows stay unchanged, and added messages get new ids."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The stored state of a migration."""

    origin: str
    """The address of the source, without secrets."""
    mode: Mode
    run: str
    """The id of the process that runs the migration."""
    started_at: float
    after: int = 0
    """The id of the last copied message."""
    sessions: int = 0
    messages: int = 0
    """How many were copied."""
    finished_at: float | None = None

    @property
    def is_exclusive(self) -> bool:
        """Whether this migration created all of the source's sessions in the target."""
        return self.mode != "merge"


def key_of(identity: str) -> str:
    """Return the key of a migration from a store."""
    return f"{OWN_PREFIX}{blake2b(identity.encode(errors='surrogatepass'), digest_size=8).hexdigest()}"


def read_progress(tx: Reading, key: str, ending: str = "") -> Progress | None:
    """Return the stored progress, or None without a migration from that store."""
    stored = tx.value(f'SELECT value FROM state_meta WHERE "key" = :key {ending}', key=key)
    return None if stored is None else Progress(**json.loads(stored))


def save_progress(tx: Transaction, key: str, progress: Progress) -> None:
    """Store the progress of the migration."""
    tx.run(tx.dialect.upsert("state_meta", ["key"], ["value"]), key=key, value=json.dumps(asdict(progress)))


def lock_progress(tx: Transaction, key: str, run: str) -> Progress:
    """Return the stored progress and lock it; raise if another process has taken over the migration."""
    progress = read_progress(tx, key, tx.dialect.for_update)
    if progress is None or progress.run != run:
        raise Conflict(
            "another process has taken over this migration",
            hint="when it is done, `hermes sessiondb migrate --verify` compares the two stores",
        )
    return progress
