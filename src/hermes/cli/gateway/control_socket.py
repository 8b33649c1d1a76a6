"""The control socket of one gateway process: a request and its result, each one line of JSON.

The socket for messages belongs to one process of a home. This one belongs to each process, so that commands reach all.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from hermes.errors import HermesError
from hermes.log import warn
from hermes.platforms.local.socket_file import address_of

MAX_LINE_BYTES = 1024 * 1024
READ_S = 5.0

Control = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


def control_path(home: Path, node: str) -> Path:
    """Return the path of the control socket of a node."""
    return home / f"gateway-{node}.control"


class ControlSocket:
    """Serves the control socket; the node's lock keeps other processes away from it."""

    def __init__(self, home: Path, node: str, control: Control) -> None:
        self._path = control_path(home, node)
        self._control = control
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen; a socket that cannot be made is only a warning, because signals work too."""
        try:
            self._path.unlink(missing_ok=True)
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            with address_of(self._path) as address:
                listener.bind(address)
            self._path.chmod(0o600)  # before it listens
            self._server = await asyncio.start_unix_server(self._serve, sock=listener, limit=MAX_LINE_BYTES)
        except OSError as error:
            warn(__name__, "%s cannot be made: %s", self._path, error.strerror or error)

    async def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()
            with contextlib.suppress(OSError):
                self._path.unlink()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(READ_S):
                line = await reader.readline()
            writer.write(json.dumps(await self._respond(line)).encode() + b"\n")
            async with asyncio.timeout(READ_S):
                await writer.drain()
        except (OSError, TimeoutError, ValueError):
            pass  # the client has left, or it is no client of ours
        finally:
            writer.close()

    async def _respond(self, line: bytes) -> Mapping[str, Any]:
        try:
            request = json.loads(line)
            return await self._control(str(request["command"]), request)
        except (ValueError, TypeError, KeyError):
            return {"error": {"code": "bad_request", "message": "the request is not understood"}}
        except HermesError as error:
            return {"error": {"code": error.code, "message": str(error)}}


async def request_control(home: Path, node: str, command: str, **fields: Any) -> dict[str, Any]:
    """Send a request to the process of a node and return its result; raise OSError if it cannot be reached."""
    async with asyncio.timeout(READ_S):
        with address_of(control_path(home, node)) as address:
            reader, writer = await asyncio.open_unix_connection(address, limit=MAX_LINE_BYTES)
        try:
            writer.write(json.dumps({**fields, "command": command}).encode() + b"\n")
            line = await reader.readline()
        finally:
            writer.close()
    if not line:
        raise ConnectionError("the gateway closed the connection")
    result = json.loads(line)
    return dict(result)
