"""The webhook: Telegram calls the gateway, and calls again what was not stored."""

from __future__ import annotations

import asyncio
import hmac
import json
from typing import TYPE_CHECKING, Any

from hermes.log import warn
from hermes.platforms.base.http import HttpRequest, HttpResponse
from hermes.platforms.base.in_order import InOrder
from hermes.platforms.telegram.updates import chat_of

if TYPE_CHECKING:
    from hermes.platforms.telegram.polling import Handle

SECRET_HEADER = "x-telegram-bot-api-secret-token"  # noqa: S105 - the name of a header


class Webhook:
    """Takes the calls of Telegram; several may come at once, and those of a chat are stored in their order."""

    def __init__(self, secret: str, handle: Handle) -> None:
        self._secret = secret
        self._handle = handle
        self._in_order = InOrder()

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        """Store an update; 200 acknowledges it, and after 503 Telegram sends it again."""
        given = request.headers.get(SECRET_HEADER, "")
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self._secret.encode()):
            return HttpResponse(403)
        try:
            update = json.loads(request.body)
        except (ValueError, RecursionError):
            update = None
        if not isinstance(update, dict) or type(update.get("update_id")) is not int:
            warn(__name__, "Telegram sent an update that cannot be read")
            return HttpResponse()
        return HttpResponse(200 if await self._store(update) else 503)

    async def stop(self) -> None:
        """Give up the calls that are not answered yet."""
        await self._in_order.stop()

    async def _store(self, update: dict[str, Any]) -> bool:
        stored = False

        async def work() -> None:
            nonlocal stored
            stored = await self._handle(update)

        task = self._in_order.add(chat_of(update), work)
        await asyncio.wait({task})
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error
        return stored
