"""The requests to Meta's Graph API that the adapter needs."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from hermes.gateway.engine.ports import MaybeSent, NotSent
from hermes.platforms.base.failures import error_of_status
from hermes.platforms.base.json_api import ApiResponse, JsonApi, segment
from hermes.platforms.whatsapp.statuses import Status

SEND_S = 20.0
"""How long the response to a message may take."""
_WINDOW_CLOSED = 131047
_TOO_MANY = frozenset({4, 80007, 130429, 131048, 131056})
_TOO_MANY_S = 10.0
_TOKEN, _TOKEN_S = frozenset({0, 10, 190}), 60.0
_MEDIA_HOSTS = ("lookaside.fbsbx.com",)
"""The hosts from which Meta serves files; the token goes to no others but the configured one."""
_FOREIGN = "the address of the file is not one of the platform"
WINDOW_REASON = (
    "WhatsApp allows no more replies: the user's last message is older than 24 hours (error 131047); "
    "the user has to write again, or an approved template has to be sent"
)


class WrongToken(NotSent):
    """The platform does not accept the access token, or the token may not use the phone number."""


class GraphApi:
    """One phone number; failures are `NotSent` or `MaybeSent`."""

    def __init__(self, base_url: str, token: str, phone_number_id: str) -> None:
        self._api = JsonApi(base_url, token)
        self._token = token
        self._number = segment(phone_number_id)

    async def close(self) -> None:
        """Close the connections."""
        await self._api.close()

    async def who_am_i(self) -> str:
        """Return the phone number as people write it, and the name of the business."""
        found = self._checked(await self._api.call("GET", f"/{self._number}", read_s=5.0))
        number, name = _line(found.get("display_phone_number")), _line(found.get("verified_name"))
        return f"{number} ({name})" if number and name else number or name

    async def send(self, body: Mapping[str, Any]) -> str:
        """Send a message and return its id."""
        found = await self._post(body)
        messages = found.get("messages")
        first = messages[0] if isinstance(messages, list) and messages else None
        message_id = first.get("id") if isinstance(first, dict) else None
        if not isinstance(message_id, str) or not message_id:
            raise MaybeSent("the platform returned no id of the message")
        return message_id

    async def mark_read(self, message_id: str, *, is_typing: bool) -> None:
        """Show that a message was read, and that an answer is being written."""
        typing = {"typing_indicator": {"type": "text"}} if is_typing else {}
        await self._post({"status": "read", "message_id": message_id, **typing})

    async def upload(self, data: bytes, name: str, mime: str) -> str:
        """Store a file and return its id."""
        boundary = f"hermes-{secrets.token_hex(16)}"
        head = "".join(
            f'--{boundary}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'
            for key, value in (("messaging_product", "whatsapp"), ("type", mime))
        )
        quoted = "".join(each if (each.isascii() and each.isalnum()) or each in "._-" else "_" for each in name)
        head += f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{quoted}"\r\n'
        content = f"{head}Content-Type: {mime}\r\n\r\n".encode() + data + f"\r\n--{boundary}--\r\n".encode()
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        found = await self._api.call("POST", f"/{self._number}/media", content=content, headers=headers, read_s=SEND_S)
        media_id = self._checked(found).get("id")
        if not isinstance(media_id, str) or not media_id:
            raise NotSent("the platform returned no id of the file", is_final=True)
        return media_id

    @asynccontextmanager
    async def download(self, media_id: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """Return the pieces of a file, from the configured server or from Meta's server of files only."""
        found = self._checked(await self._api.call("GET", f"/{segment(media_id)}"))
        url = found.get("url")
        origin, path = self._place(url if isinstance(url, str) else "")
        api = JsonApi(origin, self._token)
        try:
            async with api.download(path) as pieces:
                yield pieces
        finally:
            await api.close()

    def _place(self, url: str) -> tuple[str, str]:
        """Return the server and the path of a file; raise `NotSent` if the token must not go there."""
        try:
            parts, own = urlsplit(url), urlsplit(self._api.base_url)
            is_plain = parts.username is None
            is_own = (parts.scheme, parts.hostname, parts.port) == (own.scheme, own.hostname, own.port)
            is_meta = parts.scheme == "https" and parts.port in (None, 443) and parts.hostname in _MEDIA_HOSTS
        except ValueError:
            raise NotSent(_FOREIGN, is_final=True) from None
        if not is_plain or not (is_own or is_meta):
            raise NotSent(_FOREIGN, is_final=True)
        return f"{parts.scheme}://{parts.netloc}", parts.path + (f"?{parts.query}" if parts.query else "")

    async def _post(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        path = f"/{self._number}/messages"
        return self._checked(
            await self._api.call("POST", path, {"messaging_product": "whatsapp", **body}, read_s=SEND_S)
        )

    def _checked(self, response: ApiResponse) -> Mapping[str, Any]:
        """Return the content of a response; raise the error for one that is no success."""
        if response.is_success:
            return response.data
        error = response.data.get("error")
        about: Mapping[str, Any] = error if isinstance(error, dict) else {}
        code = about.get("code") if isinstance(about.get("code"), int) else None
        said = _line(str(about.get("message") or "").replace(self._token, "***"))  # Meta repeats a malformed token
        reason = f"WhatsApp refuses it (status {response.status}, error {code})" + (f": {said}" if said else "")
        known = known_failure(code, reason, response.retry_after_s)
        if known is not None:
            raise known
        if code in _TOKEN or response.status == 401:
            raise WrongToken(reason, retry_after_s=_TOKEN_S)
        raise error_of_status(response.status, reason, response.retry_after_s)


def known_failure(code: object, reason: str, retry_after_s: float | None = None) -> NotSent | None:
    """Return the error for a code that says by itself what follows; None for others."""
    if code == _WINDOW_CLOSED:
        return NotSent(WINDOW_REASON, is_final=True)
    if code in _TOO_MANY:
        return NotSent(reason, retry_after_s=retry_after_s or _TOO_MANY_S)
    return None


def failure_of(status: Status) -> NotSent:
    """Return the error for a message that the platform accepted and then could not deliver."""
    reason = f"WhatsApp could not deliver it (error {status.code})" + (f": {status.reason}" if status.reason else "")
    return known_failure(status.code, reason) or NotSent(reason, is_final=True)


def _line(value: object) -> str:
    return "".join(each for each in value if each.isprintable())[:200] if isinstance(value, str) else ""
