"""The webhook: Telegram calls the gateway, and calls again what was not stored."""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable
from typing import Any

from hermes.log import warn
from hermes.platforms.base.http import HttpRequest, HttpResponse

SECRET_HEADER = "x-telegram-bot-api-secret-token"  # noqa: S105 - the name of a header


class Webhook:
    """Answers the calls of Telegram."""

    def __init__(self, secret: str, handle: Callable[[dict[str, Any]], Awaitable[bool]]) -> None:
        self._secret = secret
        self._handle = handle

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        """Store an update; 200 acknowledges it, and after 503 Telegram sends it again."""
        given = request.headers.get(SECRET_HEADER, "")
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self._secret.encode()):
            return HttpResponse(403)
        try:
            update = json.loads(request.body)
        except (ValueError, RecursionError):
            update = None
        if not isinstance(update, dict):
            warn(__name__, "Telegram sent an update that cannot be read")
            return HttpResponse()
        return HttpResponse(200 if await self._handle(update) else 503)
