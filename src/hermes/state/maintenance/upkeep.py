"""Keeping a store small and in order, when asked to or by itself now and then."""

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
    """Operations that look after the store as a whole."""

    def optimize_fts(self, report: Report | None = None) -> int:
        """Bring each full-text index into its shortest form and answer how many there are; results stay the same."""
        self._require_writable()
        check_report(report)
        return self._engine.maintenance.merge_index(report)

    def vacuum(self, report: Report | None = None) -> int:
        """Merge the indexes, empty the log and give unused room back; answers how many indexes there are."""
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
        """Prune old sessions unless that was done lately; what fails is told and tried another time.

        A source in `retention_by_source` has its own number of days, and 0 keeps its sessions for good. Whoever starts
        up has other things to do than to look after this, so it raises only if the store is closed or an argument is
        wrong; where nothing can be deleted, as in a store that is only read, it is skipped.
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
            warn(__name__, "old sessions will be pruned another time: %s", exc)
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
        return self._finished(receipt, secure)

    def _last_prune(self) -> float:
        """When sessions were last pruned; a note that makes no sense is none."""
        try:
            noted = float(self.get_meta(LAST_PRUNE) or "-inf")
        except ValueError:
            return -math.inf
        # A clock that was ahead once must not keep the store from ever being pruned again.
        return noted if noted <= self._clock() else -math.inf

    def _require_writable(self) -> None:
        if self._engine.read_only:
            raise StoreReadOnly("this store was opened for reading only", hint="open it without read_only")


def _days_by_source(given: Mapping[str, float] | None) -> dict[str, float]:
    if given is not None and not isinstance(given, Mapping):
        raise InvalidValue(f"retention_by_source must be a dict, not {type(given).__name__}")
    return {
        require_identifier(source, "a source"): require_number(days, "retention_by_source")
        for source, days in (given or {}).items()
    }
