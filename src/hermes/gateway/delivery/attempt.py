"""One attempt at sending a message: what the platform has afterwards, and what follows from it."""

from __future__ import annotations

import asyncio
import traceback
from dataclasses import dataclass
from datetime import tzinfo

from hermes.gateway.delivery.receipts import PartlySent, delivery_of
from hermes.gateway.engine.ports import Adapter, Delivery, MaybeSent, NotSent, Receipt
from hermes.log import warn
from hermes.state.lanes.types import OutboxRow

MOST_DELAY_S = 3600.0
_CUT = "the node that was sending it stopped in the middle"
_CANNOT_TELL = "the platform cannot say whether it arrived"


@dataclass(frozen=True, slots=True)
class SenderSettings:
    """How messages are sent. A send and the question about its result together end before the lease does."""

    concurrency: int = 16
    lease_s: float = 60.0
    send_timeout_s: float = 45.0
    find_timeout_s: float = 10.0
    max_attempts: int = 5
    first_retry_s: float = 1.0
    poll_s: float = 1.0
    expiry_s: float = 30.0
    """How often messages whose time has run out are looked for."""
    notice_delay_s: float = 5.0
    reply_ttl_s: float = 86_400.0
    """How long a notice about an undelivered reply is worth sending."""
    zone: tzinfo | None = None
    """The time zone of the times in notices; None is the machine's."""


@dataclass(frozen=True, slots=True)
class Sent:
    """The platform has the message."""

    receipt: Receipt


@dataclass(frozen=True, slots=True)
class Failed:
    """The platform does not have the message, or only its first parts."""

    reason: str
    delay_s: float = 0.0
    is_last: bool = False
    finished_ids: list[str] | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """The platform may have the message, and cannot say whether it does."""

    reason: str


@dataclass(frozen=True, slots=True)
class Left:
    """The message is left alone until its lease ends; then a node asks about it again."""

    reason: str


Outcome = Sent | Failed | Unknown | Left


async def attempt(adapter: Adapter, row: OutboxRow, settings: SenderSettings, taken_at: float) -> Outcome:
    """Send a message that was taken at a time of the loop's clock, and return what became of it.

    One that an earlier node may have sent is sent only if the platform says that it does not have it.
    """
    delivery = delivery_of(row)
    if row["was_sending"] and (known := await _ask(adapter, delivery, row, settings, _CUT)) is not None:
        return known
    if asyncio.get_running_loop().time() + settings.send_timeout_s > taken_at + settings.lease_s:
        return _leave(row, settings, "the lease is too short now to send it")
    try:
        async with asyncio.timeout(settings.send_timeout_s):
            return Sent(await adapter.send(delivery))
    except NotSent as failure:
        return failed(failure, row["attempts"], settings)
    except MaybeSent as error:
        doubt = str(error) or "the connection was lost after it was sent"
    except TimeoutError:
        doubt = f"the platform did not reply within {settings.send_timeout_s:g} s"
    except Exception as error:  # noqa: BLE001 - an adapter is foreign code, and it may have sent the message
        warn(__name__, "sending %s to %s failed:\n%s", row["key"], row["platform"], traceback.format_exc())
        doubt = f"the adapter failed ({type(error).__name__})"
    known = await _ask(adapter, delivery, row, settings, doubt)
    return known or failed(NotSent(doubt), row["attempts"], settings)


def failed(failure: NotSent, attempts: int, settings: SenderSettings) -> Failed:
    """Return what follows from a failure: after how long the message is sent again, if at all."""
    wait_s = failure.retry_after_s
    if wait_s is None:
        wait_s = settings.first_retry_s * 2.0 ** max(0, min(attempts, 12) - 1)
    return Failed(
        failure.reason or "the platform refused it",
        min(max(0.0, wait_s), MOST_DELAY_S),
        failure.is_final or attempts >= settings.max_attempts,
        failure.finished_ids if isinstance(failure, PartlySent) else None,
    )


async def _ask(
    adapter: Adapter, delivery: Delivery, row: OutboxRow, settings: SenderSettings, doubt: str
) -> Outcome | None:
    """Ask the platform about a message that it may have; None if it does not have it."""
    try:
        async with asyncio.timeout(settings.find_timeout_s):
            receipt = await adapter.find(delivery)
    except NotSent:
        return None
    except Exception as error:  # noqa: BLE001 - an adapter is foreign code; the question is repeated later
        return _leave(row, settings, f"{doubt}; {row['platform']} could not be asked ({error!r})")
    return Unknown(f"{doubt}, and {_CANNOT_TELL}") if receipt is None else Sent(receipt)


def _leave(row: OutboxRow, settings: SenderSettings, reason: str) -> Outcome:
    """Leave a message for a later attempt, unless there were too many."""
    return Unknown(reason) if row["attempts"] >= 2 * settings.max_attempts else Left(reason)
