"""The checks of the kit; each gets a new harness and raises `NotConforming`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from hermes.gateway.engine.ports import Delivery, MaybeSent, NotSent
from hermes.platforms.base.splitting import open_fence
from hermes.platforms.testing.harness import QUIET_S, Harness, RecordingInbox, eventually, require

Check = Callable[[Harness], Awaitable[None]]
SEND_S = 30.0
"""How long an adapter may wait for the response to a message."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one check; `problem` is empty if it has passed."""

    name: str
    problem: str = ""


async def run_checks(make: Callable[[], Awaitable[Harness]], checks: Sequence[Check] | None = None) -> list[Result]:
    """Run checks, each with a harness of its own, and return their results."""
    results = []
    for check in CHECKS if checks is None else checks:
        name = getattr(check, "__name__", str(check))
        harness = await make()
        try:
            await check(harness)
            results.append(Result(name))
        except Exception as error:  # noqa: BLE001 - an adapter is foreign code; the caller gets every result
            results.append(Result(name, str(error) or repr(error)))
        finally:
            await harness.close()
    return results


@asynccontextmanager
async def _started(harness: Harness) -> AsyncIterator[RecordingInbox]:
    inbox = RecordingInbox()
    await harness.adapter.start(inbox)
    try:
        yield inbox
    finally:
        inbox.release()
        await harness.adapter.stop()


# --- from the platform ------------------------------------------------------------------------------------------------


async def stores_before_it_acknowledges(harness: Harness) -> None:
    """Check that the platform gets the acknowledgement only after the gateway has stored a message."""
    async with _started(harness) as inbox:
        inbox.hold()
        await harness.deliver(1, "hello")
        await eventually(lambda: inbox.calls > 0, "the adapter passes a message on")
        await asyncio.sleep(QUIET_S)
        require(not await harness.is_acknowledged(1), "a message was acknowledged before it was stored")
        inbox.release()
        await eventually(lambda: harness.is_acknowledged(1), "a stored message is acknowledged")
        require(inbox.texts == ["hello"], f"the gateway got {inbox.texts}")


async def does_not_acknowledge_what_was_not_stored(harness: Harness) -> None:
    """Check that a message is delivered again after the store was down."""
    async with _started(harness) as inbox:
        inbox.is_failing = True
        await harness.deliver(1, "hello")
        await eventually(lambda: inbox.calls > 0, "the adapter passes a message on")
        await asyncio.sleep(QUIET_S)
        require(not await harness.is_acknowledged(1), "a message was acknowledged although the store was down")
        inbox.is_failing = False
        await harness.disconnect()
        await harness.deliver(1, "hello")
        await eventually(lambda: inbox.texts == ["hello"], "the message is accepted when it is delivered again")


async def accepts_a_redelivered_message_once(harness: Harness) -> None:
    """Check that a message has the same ids at every delivery."""
    async with _started(harness) as inbox:
        for calls in (1, 2):
            await harness.deliver(1, "hello")
            await eventually(lambda least=calls: inbox.calls >= least, "the adapter passes a message on")
        await harness.deliver(2, "and more")
        await eventually(lambda: "and more" in inbox.texts, "the next message is accepted")
        require(inbox.texts == ["hello", "and more"], f"the gateway accepted {inbox.texts}")
        await eventually(lambda: harness.is_acknowledged(1), "a known message is acknowledged")


async def ignores_its_own_messages(harness: Harness) -> None:
    """Check that the bot does not answer itself."""
    async with _started(harness) as inbox:
        await harness.deliver(1, "from the bot", is_own=True)
        await harness.deliver(2, "from a user")
        await eventually(lambda: "from a user" in inbox.texts, "the message of a user is accepted")
        require(inbox.texts == ["from a user"], "the adapter passed on a message of its own")


async def survives_a_malformed_update(harness: Harness) -> None:
    """Check that an update that cannot be understood does not block those behind it."""
    async with _started(harness) as inbox:
        await harness.deliver_malformed()
        await harness.deliver(1, "hello")
        await eventually(lambda: inbox.texts == ["hello"], "the message after a malformed update is accepted")


async def connects_again(harness: Harness) -> None:
    """Check that an adapter returns after its connection was lost."""
    async with _started(harness) as inbox:
        await harness.deliver(1, "before")
        await eventually(lambda: inbox.texts == ["before"], "the first message is accepted")
        await eventually(lambda: harness.is_acknowledged(1), "the first message is acknowledged")
        await harness.disconnect()
        await harness.deliver(2, "after")
        await eventually(lambda: "after" in inbox.texts, "a message is accepted after a disconnection")
        require(inbox.texts == ["before", "after"], f"the gateway accepted {inbox.texts}")


# --- to the platform --------------------------------------------------------------------------------------------------


async def splits_long_texts(harness: Harness) -> None:
    """Check that a long text arrives complete, in parts within the limit, with whole blocks of code."""
    adapter = harness.adapter
    lines = [f"line {number} of the code" for number in range(adapter.text_limit // 8)]
    text = "\n".join(["before", "```python", *lines, "```", "after"])
    async with _started(harness):
        receipt = await adapter.send(Delivery("k1", harness.chat_id, text))
        shown = await harness.shown()
        require(len(shown) == len(receipt.message_ids) > 1, f"{len(shown)} messages for {len(receipt.message_ids)} ids")
        for part in shown:
            require(adapter.length(part) <= adapter.text_limit, "a message is longer than the limit")
            require(open_fence(part) is None, "a block of code is not closed in its message")
        everything = "\n".join(shown)
        missing = [line for line in ("before", *lines, "after") if line not in everything]
        require(not missing, f"{len(missing)} lines are missing")


async def completes_a_preview_in_its_message(harness: Harness) -> None:
    """Check that a preview becomes the final text, if the platform can change messages."""
    adapter, chat_id = harness.adapter, harness.chat_id
    async with _started(harness):
        if not adapter.can_edit:
            await adapter.send(Delivery("k1", chat_id, "the whole answer"))
            require(list(await harness.shown()) == ["the whole answer"], "the text is not shown as it is")
            return
        first = await adapter.send(Delivery("k1", chat_id, "the who |", is_final=False))
        preview = {"message_ids": list(first.message_ids)}
        last = await adapter.send(Delivery("k1", chat_id, "the whole answer", preview=preview))
        require(list(last.message_ids) == list(first.message_ids), "the final text is another message")
        require(list(await harness.shown()) == ["the whole answer"], f"the platform shows {await harness.shown()}")


async def respects_rate_limits(harness: Harness) -> None:
    """Check that a platform that wants a pause is not asked again at once, and that its pause is passed on."""
    async with _started(harness):
        await harness.fail_next("rate_limit")
        delivery = Delivery("k1", harness.chat_id, "hello")
        try:
            await harness.adapter.send(delivery)
        except NotSent as failure:
            require(not failure.is_final, "a rate limit is not final")
            require(bool(failure.retry_after_s), "the pause that the platform wants is not passed on")
        else:
            require(False, "a refused message counts as sent")
        require(not await harness.shown(), "the adapter sent the message again by itself")
        await harness.adapter.send(delivery)
        require(list(await harness.shown()) == ["hello"], "the message is not shown once")


async def never_repeats_what_may_have_arrived(harness: Harness) -> None:
    """Check that a message whose result was lost is in doubt, and is not sent twice."""
    async with _started(harness):
        await harness.fail_next("lost")
        try:
            async with asyncio.timeout(SEND_S):
                await harness.adapter.send(Delivery("k1", harness.chat_id, "hello"))
        except MaybeSent:
            pass
        except NotSent:
            require(False, "a message that the platform has counts as not sent; it would be sent twice")
        except TimeoutError:
            require(False, "the adapter waits for ever for a lost result")
        await asyncio.sleep(QUIET_S)
        require(list(await harness.shown()) == ["hello"], f"the platform shows {await harness.shown()}")


CHECKS: Sequence[Check] = (
    stores_before_it_acknowledges,
    does_not_acknowledge_what_was_not_stored,
    accepts_a_redelivered_message_once,
    ignores_its_own_messages,
    survives_a_malformed_update,
    connects_again,
    splits_long_texts,
    completes_a_preview_in_its_message,
    respects_rate_limits,
    never_repeats_what_may_have_arrived,
)
