"""The HTTP server of a gateway: paths come and go while it runs, and every request has limits."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import traceback
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from hermes.errors import ConfigError
from hermes.log import warn
from hermes.platforms.base.http import Handler, HttpRequest, HttpResponse
from hermes.platforms.http.errors import JSON, ApiError

if TYPE_CHECKING:
    from uvicorn import Server

MAX_BODY_BYTES = 10 * 1024 * 1024
MAX_HEAD_BYTES = 32 * 1024
MAX_HELD_BYTES = 128 * 1024 * 1024
"""How much the bodies of all requests may have together: they are read before a signature in them can be checked."""
BODY_S = 30.0
"""How long a client may take for the body of a request."""
DISCARD_S, DISCARD_BYTES = 2.0, 4 * 1024 * 1024
"""How much of a body that is too large is read, and for how long."""
KEEP_ALIVE_S = 30
STOP_S = 5
"""How long requests may take to end when the server stops."""
MISSING = "the HTTP server needs starlette and uvicorn"

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
ReceiveMessage = Callable[[], Awaitable[Message]]
SendMessage = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, ReceiveMessage, SendMessage], Awaitable[None]]


class HttpServer:
    """Serves the paths that adapters add; every other path belongs to `app`, if there is one."""

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        max_body_bytes: int = MAX_BODY_BYTES,
        max_held_bytes: int = MAX_HELD_BYTES,
        body_s: float = BODY_S,
        head_s: float | None = None,
        stall_s: float | None = None,
        most_connections: int | None = None,
        has_keys: bool = False,
    ) -> None:
        """Prepare a server; raise `ConfigError` for a public address if no request needs a key."""
        if not has_keys and not is_loopback(host):
            raise ConfigError(
                f"the HTTP server would listen on {host} without any key",
                hint="set api_server.keys, or set api_server.host to 127.0.0.1",
            )
        self.host = host
        self.port = port
        self.app: App | None = None
        self.max_body_bytes = max_body_bytes
        self._max_held_bytes = max(max_held_bytes, max_body_bytes)
        self._held_bytes = 0
        self._body_s = body_s
        self._limits = {"head_s": head_s, "stall_s": stall_s, "most_connections": most_connections}
        self._handlers: dict[tuple[str, str], Handler] = {}
        self._server: Server | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """The address of the server, without a slash at the end."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    # --- paths --------------------------------------------------------------------------------------------------------

    def add(self, method: str, path: str, handler: Handler) -> None:
        """Let a handler answer requests to a path, from now on; the last one that is added for a path is used."""
        self._handlers[method.upper(), path] = handler

    def remove(self, method: str, path: str) -> None:
        """Refuse requests to a path with 404 again; a path that was not added is ignored."""
        self._handlers.pop((method.upper(), path), None)

    # --- life ---------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Listen; raise `ConfigError` if the address cannot be used or a library is missing."""
        try:
            import uvicorn

            from hermes.platforms.http.protocol import protocol_with
        except ImportError as error:
            raise ConfigError(MISSING, hint="pip install 'hermes-sessions[http]'") from error
        listener = self._listen()
        self.port = listener.getsockname()[1]
        config = uvicorn.Config(
            self._serve,
            interface="asgi3",
            lifespan="off",
            ws="none",
            loop="none",
            http=protocol_with(**{name: value for name, value in self._limits.items() if value is not None}),
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=STOP_S,
            h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        )
        server = self._server = uvicorn.Server(config)
        server.capture_signals = _capture_nothing  # type: ignore[method-assign]
        self._serving = asyncio.create_task(server.serve(sockets=[listener]), name="hermes-http")
        while not server.started and not self._serving.done():
            await asyncio.sleep(0.01)
        if self._serving.done():
            await self._serving

    async def stop(self) -> None:
        """Finish the requests that have begun, within limits, and stop listening."""
        if self._server is None or self._serving is None:
            return
        self._server.should_exit = True
        await asyncio.wait({self._serving}, timeout=STOP_S + 2.0)
        self._serving.cancel()
        await asyncio.gather(self._serving, return_exceptions=True)
        self._server = self._serving = None

    def _listen(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            return socket.create_server((self.host, self.port), family=family, backlog=1024)
        except OSError as error:
            raise ConfigError(
                f"the HTTP server cannot listen on {self.host}, port {self.port}: {error.strerror or error}",
                hint="set api_server.host and api_server.port to a free address",
            ) from error

    # --- requests -----------------------------------------------------------------------------------------------------

    async def _serve(self, scope: Scope, receive: ReceiveMessage, send: SendMessage) -> None:
        """Serve a request; whatever fails, a client gets one sentence about it."""
        if scope["type"] != "http":
            return
        is_begun, held = False, 0

        async def send_with_headers(message: Message) -> None:
            nonlocal is_begun
            is_begun = True
            if message["type"] == "http.response.start":
                _add_headers(message)
            await send(message)

        def hold(size: int) -> None:
            nonlocal held
            if self._held_bytes + size > self._max_held_bytes:
                raise ApiError(
                    503, "busy", "the gateway has too many requests to read; try again", {"Retry-After": "2"}
                )
            held += size
            self._held_bytes += size

        try:
            await self._dispatch(scope, self._limited(scope, receive, hold), send_with_headers)
        except ApiError as error:
            if not is_begun:
                await _discard(receive, error.status)
                await _send(send, _refusal(error))
        except (TimeoutError, OSError):
            if not is_begun:
                await _send(send, _refusal(ApiError(408, "timeout", "the request took too long")))
        except Exception:  # noqa: BLE001 - a request must not disturb the gateway
            warn(__name__, "a request to %a failed:\n%s", scope["path"][:200], traceback.format_exc())
            if not is_begun:
                await _send(send, _refusal(ApiError(500, "error", "the gateway failed; its log says why")))
        finally:
            self._held_bytes -= held

    def _limited(self, scope: Scope, receive: ReceiveMessage, hold: Callable[[int], None]) -> ReceiveMessage:
        """Return `receive` with a limit of the size and the time of the body; afterwards it waits for the client.

        `hold` counts the bytes of the body, and raises `ApiError` if all bodies together are too large.
        """
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        too_large = ApiError(413, "body_too_large", f"the body is larger than {self.max_body_bytes} bytes")
        late_at = asyncio.get_running_loop().time() + self._body_s
        size, is_complete = 0, False

        async def receive_limited() -> Message:
            nonlocal size, is_complete
            if is_complete:
                return await receive()
            if declared.isdigit() and int(declared[:20]) > self.max_body_bytes:
                raise too_large
            async with asyncio.timeout_at(late_at):
                message = await receive()
            more = len(message.get("body", b""))
            size += more
            if size > self.max_body_bytes:
                raise too_large
            hold(more)
            is_complete = not message.get("more_body", False)
            return message

        return receive_limited

    async def _dispatch(self, scope: Scope, receive: ReceiveMessage, send: SendMessage) -> None:
        method, path = scope["method"], scope["path"]
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_HEAD_BYTES:
            raise ApiError(431, "head_too_large", f"the headers are larger than {MAX_HEAD_BYTES} bytes")
        handler = self._handlers.get((method, path)) or (
            self._handlers.get(("GET", path)) if method == "HEAD" else None
        )
        if handler is not None:
            await _send(send, await handler(await _read(scope, receive)))
        elif allowed := sorted(each for each, at in self._handlers if at == path):
            raise ApiError(405, "method_not_allowed", f"only {', '.join(allowed)} works here", {"Allow": allowed[0]})
        elif self.app is not None:
            await self.app(scope, receive, send)
        else:
            raise ApiError(404, "not_found", "there is nothing at this path")


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_own_name(host: str) -> bool:
    """Whether the header `Host` of a request names this machine, by an address or as localhost."""
    try:
        return is_loopback(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False


async def _read(scope: Scope, receive: ReceiveMessage) -> HttpRequest:
    """Return a request with its whole body."""
    chunks, is_open = [], True
    while is_open:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ApiError(400, "incomplete", "the request is not complete")
        chunks.append(message.get("body", b""))
        is_open = message.get("more_body", False)
    try:
        query = dict(parse_qsl(scope["query_string"].decode("ascii"), keep_blank_values=True, max_num_fields=100))
    except ValueError:
        raise ApiError(400, "bad_request", "the query of the address cannot be read") from None
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
    return HttpRequest(scope["method"], scope["path"], query, headers, b"".join(chunks))


async def _discard(receive: ReceiveMessage, status: int) -> None:
    """Read some more of a body that is too large: a client that still writes would not see the response."""
    size, is_open = 0, status == 413
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DISCARD_S):
            while is_open and size < DISCARD_BYTES:
                message = await receive()
                size += len(message.get("body", b""))
                is_open = bool(message.get("more_body", False))


async def _send(send: SendMessage, response: HttpResponse) -> None:
    given = {name.lower(): value for name, value in response.headers.items()}
    headers = {"content-type": "text/plain; charset=utf-8", **given, "content-length": str(len(response.body))}
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    start = {"type": "http.response.start", "status": response.status, "headers": raw}
    _add_headers(start)
    await send(start)
    await send({"type": "http.response.body", "body": response.body})


def _add_headers(message: Message) -> None:
    """Keep responses out of caches, and browsers from guessing what they are."""
    known = {name.lower() for name, _ in message["headers"]}
    more = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
    message["headers"] = [*message["headers"], *(each for each in more if each[0] not in known)]


def _refusal(error: ApiError) -> HttpResponse:
    headers = {"Content-Type": JSON, "Connection": "close", **error.headers}
    return HttpResponse(error.status, error.body, headers)


@contextlib.contextmanager
def _capture_nothing() -> Iterator[None]:
    """Leave the signals to the gateway."""
    yield
