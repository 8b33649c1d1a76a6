"""What an adapter does with the result of `receive`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable

from hermes.gateway.engine.ports import Admission, Inbound, Receive
from hermes.platforms.base.media import discard

_MAY_PASS = frozenset({"conflict", "stale_lease", "message_spooled", "not_a_database"})

MOST_UNSTORED = 1000
"""How many messages keep their files until they are delivered again."""


class NotStored(Exception):
    """The message could not be stored now: the platform must not learn that it was received."""


def check_stored(admission: Admission) -> Admission:
    """Return an admission that can be acknowledged; raise `NotStored` if only the store was not available."""
    code = admission.code
    if admission.state == "refused" and (code == "store" or code.startswith("store_") or code in _MAY_PASS):
        raise NotStored(code)
    return admission


class Unstored:
    """Messages with files that could not be stored yet: files are not fetched again when their message comes again."""

    def __init__(self, most: int = MOST_UNSTORED) -> None:
        self._most = most
        self._waiting: dict[Hashable, Inbound] = {}

    async def store(
        self, key: Hashable, make: Callable[[], Awaitable[Inbound | None]], receive: Receive
    ) -> Admission | None:
        """Store the message of a key, which is the same at every delivery; return None if `make` makes none.

        Files that no stored message has are removed. Raise `NotStored`, or what `make` and `receive` raise.
        """
        earlier = self._waiting.pop(key, None)
        inbound = earlier or await make()
        if inbound is None:
            return None
        try:
            admission = check_stored(await receive(inbound))
        except BaseException:
            await self._keep(key, inbound)
            raise
        # One that is known after a failure was stored with these files; else with those of an earlier process.
        if admission.state == "refused" or (admission.state == "known" and earlier is None):
            await discard(inbound.media)
        return admission

    async def give_up(self, key: Hashable) -> None:
        """Remove the files of a message that will not be stored."""
        if (inbound := self._waiting.pop(key, None)) is not None:
            await discard(inbound.media)

    async def _keep(self, key: Hashable, inbound: Inbound) -> None:
        if len(self._waiting) < self._most:
            if inbound.media:
                self._waiting[key] = inbound
        else:
            await discard(inbound.media)
