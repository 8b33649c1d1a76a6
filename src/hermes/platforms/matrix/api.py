"""The requests to a homeserver that the adapter needs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from hermes.gateway.engine.ports import MaybeSent, NotSent
from hermes.platforms.base.failures import error_of_status
from hermes.platforms.base.json_api import ApiResponse, JsonApi, encode_json, segment

_V3 = "/_matrix/client/v3"
_BAD_REQUEST = 400
_UNAUTHORIZED = 401
_TOKEN_RETRY_S = 60.0
_LONGEST_WAIT_S = 3600.0
MAX_ID = 255


class UnknownPosition(NotSent):
    """The homeserver does not know the token after which events were requested."""


class MatrixApi:
    """A homeserver, as one account uses it; failures are `NotSent` or `MaybeSent`."""

    def __init__(self, base_url: str, token: str) -> None:
        self._api = JsonApi(base_url, token)

    async def close(self) -> None:
        """Close the connections."""
        await self._api.close()

    async def whoami(self) -> str:
        """Return the id of the account; raise `NotSent` if this is no homeserver, or the token is not valid."""
        user_id = (await self._ask("GET", f"{_V3}/account/whoami")).get("user_id")
        if not isinstance(user_id, str) or not user_id.isprintable() or not 0 < len(user_id) <= MAX_ID:
            raise NotSent("the server does not name the account of the token: is this the address of a homeserver?")
        return user_id

    async def display_name(self, user_id: str) -> str:
        """Return the name that people see; an empty string if there is none."""
        found = await self._ask_or_nothing("GET", f"{_V3}/profile/{segment(user_id)}/displayname")
        name = found.get("displayname")
        return name if isinstance(name, str) else ""

    async def sync(self, since: str | None, search: Mapping[str, Any], timeout_s: float) -> Mapping[str, Any]:
        """Return what is new since a token; wait this long if there is nothing."""
        query = {"filter": encode_json(search).decode(), "timeout": str(int(timeout_s * 1000))}
        if since is not None:
            query["since"] = since
        response = await self._api.call("GET", f"{_V3}/sync", query=query, read_s=timeout_s + 30.0)
        if response.status == _BAD_REQUEST and since is not None:
            raise UnknownPosition(f"the homeserver does not know the position (status {_BAD_REQUEST})")
        return _checked(response)

    async def messages(
        self, room_id: str, begin: str | None, end: str | None, search: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Return a page of events before a token, or of the last ones, the newest first."""
        query = {"dir": "b", "limit": "100", "filter": encode_json(search).decode()}
        if begin is not None:
            query["from"] = begin
        if end is not None:
            query["to"] = end
        return await self._ask("GET", f"{_V3}/rooms/{segment(room_id)}/messages", query=query)

    async def joined_members(self, room_id: str) -> Mapping[str, Any]:
        """Return the members of a room."""
        found = (await self._ask_or_nothing("GET", f"{_V3}/rooms/{segment(room_id)}/joined_members")).get("joined")
        return found if isinstance(found, dict) else {}

    async def state(self, room_id: str, kind: str) -> Mapping[str, Any]:
        """Return the content of a state event of a room; nothing if there is none."""
        return await self._ask_or_nothing("GET", f"{_V3}/rooms/{segment(room_id)}/state/{segment(kind)}")

    async def event(self, room_id: str, event_id: str) -> Mapping[str, Any]:
        """Return an event; nothing if the account cannot read it."""
        return await self._ask_or_nothing("GET", f"{_V3}/rooms/{segment(room_id)}/event/{segment(event_id)}")

    async def account_data(self, user_id: str, kind: str) -> Mapping[str, Any]:
        """Return data that the server keeps for the account; nothing if there is none."""
        return await self._ask_or_nothing("GET", f"{_V3}/user/{segment(user_id)}/account_data/{segment(kind)}")

    async def set_account_data(self, user_id: str, kind: str, content: Mapping[str, Any]) -> None:
        """Let the server keep data for the account."""
        await self._ask("PUT", f"{_V3}/user/{segment(user_id)}/account_data/{segment(kind)}", content)

    async def join(self, room_id: str) -> None:
        """Accept the invitation to a room."""
        await self._ask("POST", f"{_V3}/rooms/{segment(room_id)}/join", {})

    async def send(self, room_id: str, transaction: str, content: Mapping[str, Any]) -> str:
        """Send a message and return its id; a repeated transaction returns the id of the first one."""
        path = f"{_V3}/rooms/{segment(room_id)}/send/m.room.message/{segment(transaction)}"
        event_id = (await self._ask("PUT", path, content)).get("event_id")
        if not isinstance(event_id, str) or not 0 < len(event_id) <= MAX_ID:
            raise MaybeSent("the homeserver returned no id of the message")
        return event_id

    async def redact(self, room_id: str, event_id: str, transaction: str) -> None:
        """Remove the content of a message."""
        path = f"{_V3}/rooms/{segment(room_id)}/redact/{segment(event_id)}/{segment(transaction)}"
        await self._ask("PUT", path, {})

    async def typing(self, room_id: str, user_id: str, timeout_s: float) -> None:
        """Show for a while that the account is writing; 0 ends it."""
        body = {"typing": timeout_s > 0, **({"timeout": int(timeout_s * 1000)} if timeout_s > 0 else {})}
        await self._ask("PUT", f"{_V3}/rooms/{segment(room_id)}/typing/{segment(user_id)}", body)

    async def upload(self, data: AsyncIterator[bytes], size: int, name: str, mime: str) -> str:
        """Store a file on the homeserver and return its address, which begins with `mxc://`."""
        headers = {"Content-Type": mime, "Content-Length": str(size)}
        found = await self._api.call(
            "POST", "/_matrix/media/v3/upload", query={"filename": name}, content=data, headers=headers, read_s=60.0
        )
        address = _checked(found).get("content_uri")
        if not isinstance(address, str) or not address.startswith("mxc://"):
            raise NotSent("the homeserver returned no address of the file", is_final=True)
        return address

    def download(self, server: str, media_id: str) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Return the pieces of a file; the homeserver fetches those of other servers."""
        return self._api.download(f"/_matrix/client/v1/media/download/{segment(server)}/{segment(media_id)}")

    async def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, **more: Any
    ) -> Mapping[str, Any]:
        return _checked(await self._api.call(method, path, body, **more))

    async def _ask_or_nothing(self, method: str, path: str) -> Mapping[str, Any]:
        """Return a response, or nothing if the homeserver says that there is none for this account."""
        found = await self._api.call(method, path)
        return {} if found.status in (400, 403, 404) else _checked(found)


def _checked(response: ApiResponse) -> Mapping[str, Any]:
    """Return the content of a response; raise the error for one that is no success."""
    if response.is_success:
        return response.data
    code = response.data.get("errcode")
    reason = f"the homeserver refuses it: {_line(code) or response.status}"
    if said := _line(response.data.get("error")):
        reason += f" ({said})"
    wait_s = _wait_s(response)
    if code == "M_LIMIT_EXCEEDED":
        raise NotSent(reason, retry_after_s=1.0 if wait_s is None else wait_s)
    if response.status == _UNAUTHORIZED:
        raise NotSent(reason, retry_after_s=_TOKEN_RETRY_S)
    raise error_of_status(response.status, reason, wait_s)


def _wait_s(response: ApiResponse) -> float | None:
    wait_ms = response.data.get("retry_after_ms")
    if isinstance(wait_ms, int) and not isinstance(wait_ms, bool) and wait_ms >= 0:
        return min(wait_ms / 1000, _LONGEST_WAIT_S)
    return response.retry_after_s


def _line(value: object) -> str:
    return "".join(each for each in value if each.isprintable())[:120] if isinstance(value, str) else ""
