"""Failures that repeat every second, such as those of a database that is down, in two lines of the log."""

from __future__ import annotations

from hermes.log import inform, warn


class Outage:
    """Notes in the log when something begins to fail, and when it works again."""

    def __init__(self, name: str, what: str) -> None:
        """Create it for a module; `what` says what does not work, as a sentence without its end."""
        self._name = name
        self._what = what
        self._failures = 0

    def failed(self, error: Exception) -> None:
        """Note a failure; only the first one is written down."""
        self._failures += 1
        if self._failures == 1:
            warn(self._name, "%s: %s: %s", self._what, type(error).__name__, error)

    def worked(self) -> None:
        """Note a success."""
        if self._failures:
            inform(self._name, "%s, %d times; now it works again", self._what, self._failures)
        self._failures = 0
