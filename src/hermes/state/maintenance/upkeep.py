"""Maintenance of a store: optimize, vacuum, and prune automatically from time to time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.errors import HermesError, InvalidValue, StoreClosed, StoreReadOnly
from hermes.log import warn
from hermes.state.engine import Report
from hermes.state.maintenance.meta import Meta
from hermes.state.maintenance.receipt import Receipt
from hermes.state.maintenance.retention import Retention, check_report
from hermes.state.rows import require_identifier, require_number

if TYPE_CHECKING:
    from hermes.state.row_types import PruneOutcome

LAST_PRUNE = "last_auto_prune"
HOUR_S = 3_600.0


class Upkeep(Retention, Meta):
    """Operations that maintain the store as a whole."""

    def optimize_fts(self, report: Report | None = None) -> int:
        """Merge each full-text index into its most compact form and return their number; results do not change."""
        self._require_writable()
        check_report(report)
        return self._engine.maintenance.merge_index(report)

    def vacuum(self, report: Report | None = None) -> int:
        """Merge the indexes, empty the log and give unused space back; return how many indexes there are."""
        self._require_writable()
        check_report(report)
        try:
            merged = self._engine.maintenance.merge_index(report)
        except StoreClosed:
            raise
        except HermesError as exc:
            merged = 0
            warn(__name__, "the indexes could not be merged: %s", exc)
        self._engine.maintenance.compact(report)
        return merged

    def maybe_auto_prune_and_vacuum(
        self,
        retention_days: float = 90,
        min_interval_hours: float = 24,
        vacuum: bool = True,
        sessions_dir: str | Path | None = None,
        *,
        retention_by_source: Mapping[str, float] | None = None,
        secure: bool = False,
    ) -> PruneOutcome:
        """Prune old sessions unless that was done recently; log a failure and try again later.

        A source in `retention_by_source` has its own number of days, and 0 keeps its sessions forever. A failed prune
        must not stop a program from starting, so this raises only if the store is closed or an argument is wrong. A
        read-only store is skipped.
        """
        interval_s = require_number(min_interval_hours, "min_interval_hours") * HOUR_S
        own_days = _days_by_source(retention_by_source)
        outcome: PruneOutcome = {"skipped": False, "pruned": 0, "vacuumed": False}
        if self._engine.read_only:
            return {**outcome, "skipped": True}
        try:
            if self._clock() - self._last_prune() < interval_s:
                return {**outcome, "skipped": True}
            receipt = self._prune_by_source(retention_days, own_days, sessions_dir, secure)
            outcome["pruned"] = receipt.sessions
            self.set_meta(LAST_PRUNE, repr(self._clock()))
            if vacuum and receipt.sessions:
                self.vacuum()
                outcome["vacuumed"] = True
        except StoreClosed:
            raise
        except HermesError as exc:
            warn(__name__, "old sessions were not pruned, trying again later: %s", exc)
            outcome["error"] = str(exc)
        return outcome

    def _prune_by_source(
        self, days: float, by_source: Mapping[str, float], sessions_dir: str | Path | None, secure: bool
    ) -> Receipt:
        rules = [self._prunable(days, None, False, exclude_sources=tuple(by_source))]
        rules += [self._prunable(own, source, False) for source, own in by_source.items() if own > 0]
        receipt = Receipt()
        for rule in rules:
            receipt += self._delete_all(rule, sessions_dir)
        return self._erase_if_secure(receipt, secure)

    def _last_prune(self) -> float:
        """Return when sessions were last pruned; -inf if that is unknown or not a number."""
        try:
            last = float(self.get_meta(LAST_PRUNE) or "-inf")
        except ValueError:
            return -math.inf
        # A clock that once was ahead must not stop pruning forever.
        return last if last <= self._clock() else -math.inf

    def _require_writable(self) -> None:
        if self._engine.read_only:
            raise StoreReadOnly("this store was opened read-only", hint="open it without read_only")


def _days_by_source(given: Mapping[str, float] | None) -> dict[str, float]:
    if given is not None and not isinstance(given, Mapping):
        raise InvalidValue(f"retention_by_source must be a dict, not {type(given).__name__}")
    return {
        require_identifier(source, "a source"): require_number(days, "retention_by_source")
        for source, days in (given or {}).items()
    }
