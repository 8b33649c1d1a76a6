"""Shows answers in chats while they are written, where streaming is on and the platform can change a message."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from hermes.gateway.delivery.drafts import stopped_text
from hermes.gateway.delivery.previews import Preview
from hermes.gateway.engine.intents import reply_intent, reply_key
from hermes.gateway.engine.messages import decode_message

if TYPE_CHECKING:
    from hermes.gateway.engine.parts import EngineParts
    from hermes.gateway.engine.ports import RunningTurn, TurnRequest
    from hermes.state.lanes.types import Intent

LOOK_S = 0.1


class LiveAnswers:
    """The previews of the turns that run."""

    def __init__(self, parts: EngineParts) -> None:
        self._parts = parts
        self._shown: dict[str, _Shown] = {}

    def start(self, request: TurnRequest, running: RunningTurn) -> None:
        """Show the answer of a turn from now on, if that is possible."""
        streaming = self._parts.gateway_config.get_streaming(request.source.platform)
        account = request.account
        adapter = self._parts.adapters.get((request.source.platform.value, account))
        if adapter is None or not streaming.enabled or not request.rows:
            return
        messages = [decode_message(each) for each in request.rows]
        ttl_s = self._parts.settings.reply_ttl_s
        base = reply_intent(reply_key(request.rows[-1]["uid"]), "", messages, request.session_key, account, ttl_s)
        preview = Preview(adapter, self._parts.db.outbox, base, streaming)
        if preview.is_active:
            self._shown[request.turn_id] = _Shown(preview, running, base)

    async def end(self, turn_id: str, text: str) -> Intent | None:
        """Stop showing the answer of a turn; if there is a preview, return the intent that completes it as stopped."""
        shown = self._shown.pop(turn_id, None)
        if shown is None:
            return None
        await shown.stop()
        payload = {**shown.base.payload, "text": stopped_text(text), "answers": []}
        return replace(shown.base, payload=payload) if text else None


class _Shown:
    """A preview that follows a turn."""

    def __init__(self, preview: Preview, running: RunningTurn, base: Intent) -> None:
        self.base = base
        self._preview = preview
        self._running = running
        self._task = asyncio.create_task(self._follow(), name="hermes-preview")

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._preview.stop()

    async def _follow(self) -> None:
        last = ""
        while True:
            text = self._running.text
            if text != last:
                self._preview.update(text)
                last = text
            await asyncio.sleep(LOOK_S)
