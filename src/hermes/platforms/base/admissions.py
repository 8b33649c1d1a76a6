"""What an adapter does with the result of `receive`."""

from __future__ import annotations

from hermes.gateway.engine.ports import Admission

_MAY_PASS = frozenset({"conflict", "stale_lease", "message_spooled", "not_a_database"})


class NotStored(Exception):
    """The message could not be stored now: the platform must not learn that it was received."""


def check_stored(admission: Admission) -> Admission:
    """Return an admission that can be acknowledged; raise `NotStored` if only the store was not available."""
    code = admission.code
    if admission.state == "refused" and (code == "store" or code.startswith("store_") or code in _MAY_PASS):
        raise NotStored(code)
    return admission
