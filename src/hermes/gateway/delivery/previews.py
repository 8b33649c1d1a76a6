"""Previews: an answer appears in its chat while the model writes it, and the final reply completes that message."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import replace

from hermes.errors import HermesError
from hermes.gateway.delivery.receipts import MESSAGE_IDS, delivery_from, receipt_payload
from hermes.gateway.engine.ports import Adapter, Delivery, MaybeSent, NotSent, Receipt
from hermes.gateway.platform_config import StreamingConfig
from hermes.log import inform, warn
from hermes.state.asynchronous.lanes import AsyncOutbox
from hermes.state.lanes.types import Intent

PREVIEW_TEXT = "text"
"""The key of a stored receipt with the text that the preview shows."""
IS_FULL = "is_full"
"""Set by an adapter in `Receipt.extra` when the message of the preview cannot show more."""
MOST_INTERVAL_S = 10.0
MOST_FAILURES = 3
_SAVE_S = 3.0
"""How often the text of a preview is stored, so that another node can complete it."""
_SEND_S = 20.0
_GAP = 0.5
"""Two edits are never closer than this part of the interval, however much new text there is."""
_FEWEST = 4

ShowDraft = Callable[[Delivery], Awaitable[None]]


class Preview:
    """Shows the growing answer of one turn in its chat."""

    def __init__(
        self,
        adapter: Adapter,
        outbox: AsyncOutbox,
        intent_base: Intent,
        streaming: StreamingConfig,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create a preview. `intent_base` is the intent of the final reply, with the same key but without its text."""
        self._adapter = adapter
        self._outbox = outbox
        self._intent = intent_base
        self._streaming = streaming
        self._clock = clock
        self._interval_s = streaming.edit_interval
        self._is_active = streaming.enabled and streaming.transport != "off" and adapter.can_edit
        self._show_draft: ShowDraft | None = None
        """Shows the text in a way that leaves no message; None after it has failed, then a message is edited."""
        if streaming.transport == "draft":
            self._show_draft = getattr(adapter, "show_draft", None)  # few platforms have drafts
        self._text, self._shown = "", ""
        self._receipt: dict[str, object] | None = None
        self._row_id: int | None = None
        self._failures = 0
        self._not_before = clock()
        self._saved_at = float("-inf")
        self._changed = asyncio.Event()
        self._is_stopping = False
        self._task: asyncio.Task[None] | None = None

    @property
    def is_active(self) -> bool:
        """Whether new text is shown: the chat allows it, and neither an error nor the end of the turn prevents it."""
        return self._is_active and not self._is_stopping

    def update(self, text: str) -> None:
        """Take the whole answer so far and return at once; it is shown when it is time."""
        self._text = text
        if not self.is_active or text == self._shown:
            return
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"preview {self._intent.key}")
        self._changed.set()

    async def stop(self, timeout_s: float = 5.0) -> None:
        """Stop before the final reply is stored, so that no older text replaces it."""
        self._is_stopping = True
        self._changed.set()
        if self._task is None:
            return
        # A first message that is cut would stay in the chat, because its id is not known.
        most_s = timeout_s if self._receipt is not None or self._adapter.delivers_itself else max(timeout_s, _SEND_S)
        done, late = await asyncio.wait([self._task], timeout=most_s)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)
        for task in done:
            if not task.cancelled() and (error := task.exception()) is not None:
                warn(__name__, "a preview failed: %r", error)

    async def _run(self) -> None:
        while self.is_active:
            wait_s = due_in(
                self._text,
                self._shown,
                self._clock() - self._not_before,
                self._interval_s,
                self._streaming.buffer_threshold,
            )
            if wait_s is None or wait_s > 0:
                await self._sleep(wait_s)
            else:
                await self._show(self._text)

    async def _sleep(self, seconds: float | None) -> None:
        """Wait for new text or, if seconds are given, until then."""
        self._changed.clear()
        if self._is_stopping:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return

    async def _show(self, text: str) -> None:
        if self._show_draft is not None and await self._has_shown_draft(self._show_draft, text):
            return
        try:
            if not await self._prepare():
                return
            async with asyncio.timeout(_SEND_S):
                receipt = await self._adapter.send(self._delivery(text))
        except NotSent as failure:
            self._back_off(failure)
            return
        except (MaybeSent, TimeoutError):
            await self._look_for(text)
            return
        except HermesError as error:
            self._give_up(f"the outbox cannot be written: {error}")
            return
        except Exception:  # noqa: BLE001 - an adapter is foreign code; the final reply is sent anyway
            self._give_up(traceback.format_exc())
            return
        self._failures = 0
        self._not_before = self._clock()
        await self._keep(receipt, text)

    async def _has_shown_draft(self, show: ShowDraft, text: str) -> bool:
        try:
            async with asyncio.timeout(_SEND_S):
                await show(self._delivery(text))
        except Exception as error:  # noqa: BLE001 - an adapter is foreign code; from now on a message is edited
            inform(__name__, "no drafts of %s: %s", self._intent.key, error)
            self._show_draft = None
            return False
        self._shown = text
        self._not_before = self._clock()
        return True

    async def _prepare(self) -> bool:
        """Store the draft before the first message is sent; return False if the reply is complete already."""
        if self._adapter.delivers_itself or self._row_id is not None:
            return True
        row = await self._outbox.intend(replace(self._intent, draft=True))
        if row["state"] != "draft":
            self._is_active = False
            return False
        self._row_id = row["id"]
        if self._receipt is None and row["receipt"]:
            self._receipt = dict(row["receipt"])  # a node that died has shown the beginning; the same message continues
        return True

    def _delivery(self, text: str) -> Delivery:
        # The local socket gets the text as it is; people see a cursor.
        shown = text if self._adapter.delivers_itself else text + self._streaming.cursor
        payload = {**self._intent.payload, "text": shown}
        return delivery_from(self._intent.key, self._intent.kind, payload, self._receipt, is_final=False)

    async def _keep(self, receipt: Receipt, text: str) -> None:
        """Remember what is shown; the platform's ids are stored at once, the text now and then."""
        self._shown = text
        if receipt.extra.get(IS_FULL):
            self._is_active = False
        if self._row_id is None:
            return
        payload: dict[str, object] = {**receipt_payload(receipt), PREVIEW_TEXT: text}
        is_new = self._receipt is None or self._receipt[MESSAGE_IDS] != payload[MESSAGE_IDS]
        self._receipt = payload
        if not (is_new or not self._is_active or self._clock() >= self._saved_at + _SAVE_S):
            return
        self._saved_at = self._clock()
        try:
            if not await self._outbox.preview(self._row_id, payload):
                self._is_active = False  # another node has completed or abandoned the message
        except HermesError as error:
            self._give_up(f"the outbox cannot be written: {error}")

    async def _look_for(self, text: str) -> None:
        """Ask the platform for a preview whose result was lost; without its id there are no more previews."""
        if self._receipt is not None:
            self._back_off(NotSent("the result of an edit was lost"))
            return
        try:
            async with asyncio.timeout(_SEND_S):
                receipt = await self._adapter.find(self._delivery(text))
        except NotSent as failure:
            self._back_off(failure)
            return
        except Exception as error:  # noqa: BLE001 - an adapter is foreign code; the final reply is sent anyway
            self._give_up(f"the platform could not be asked ({error!r})")
            return
        if receipt is None:
            self._give_up("the platform may have shown a preview whose id is not known")
            return
        self._not_before = self._clock()
        await self._keep(receipt, text)

    def _back_off(self, failure: NotSent) -> None:
        """Wait longer after each failure; give up after a few, or if trying again is useless."""
        self._failures += 1
        if failure.is_final or self._failures >= MOST_FAILURES:
            self._give_up(failure.reason)
            return
        self._interval_s = min(max(2 * self._interval_s, failure.retry_after_s or 0.0), MOST_INTERVAL_S)
        self._not_before = self._clock() + max(0.0, (failure.retry_after_s or 0.0) - _GAP * self._interval_s)

    def _give_up(self, reason: str) -> None:
        self._is_active = False
        warn(__name__, "no more previews of %s: %s", self._intent.key, reason)


def due_in(text: str, shown: str, since_s: float, interval_s: float, threshold: int) -> float | None:
    """Return after how many seconds a text is shown, `since_s` after the last one; None if only new text decides."""
    if text == shown or len(text.strip()) < _FEWEST:
        return None
    new = len(text) - len(shown) if text.startswith(shown) else len(text)
    due_s = _GAP * interval_s if new >= threshold else interval_s
    return max(0.0, due_s - since_s)
