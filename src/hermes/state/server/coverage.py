"""Which messages an index knows, as the store notes it."""

from __future__ import annotations

from hermes.state.engine import Coverage, Reading

INDEXED_UPTO, EPOCH = "indexed_upto", "index_epoch"


def coverage_of(tx: Reading, max_stale: int, stale: str) -> Coverage:
    """Those up to a mark, except the newest that a query names: they are in no batch yet, or were changed since."""
    noted: dict[str, str] = dict(
        tx.rows('SELECT "key", value FROM state_meta WHERE "key" IN (:upto, :epoch)', upto=INDEXED_UPTO, epoch=EPOCH)
    )
    upto = int(noted.get(INDEXED_UPTO) or 0)
    rows = tx.rows(stale, upto=upto, limit=max_stale)
    return Coverage(upto, tuple(row[0] for row in rows), int(noted.get(EPOCH) or 0))
