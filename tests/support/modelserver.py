"""A model server for tests: real HTTP, an OpenAI-compatible interface, and scripted answers.

    with ModelServer(Fail(429, retry_after=0), Say("Hello.")) as server:
        ...  # point model.base_url at server.base_url
        assert server.requests[1].last_text == "hi"

Each request for an answer takes the next behaviour of the script; when the script is at its end, the server echoes the
user's text. A behaviour can be a function of the request. As a separate process, which ends when its stdin does:

    python -m tests.support.modelserver --script script.json --log requests.jsonl

where the script is a list such as `[{"fail": 429}, {"call": "session_search", "arguments": {}}, {"say": "Hello."}]`,
with the other fields of a behaviour next to the first.
"""

from __future__ import annotations

import argparse
import json
import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.behaviours import Behaviour, Call, Fail, Raw, Say, behaviour_of, chunks_of, whole_of

__all__ = ["Behaviour", "Call", "Fail", "ModelServer", "Raw", "Received", "Say", "Step", "echo"]

HOST = "127.0.0.1"
Step = Behaviour | Callable[["Received"], Behaviour]


@dataclass
class Received:
    """A request that the server received."""

    method: str
    path: str
    headers: Mapping[str, str]
    """By lower-case name."""
    body: Any
    port: int
    """The port of the client, which identifies its connection."""
    hung_up: threading.Event = field(default_factory=threading.Event)
    """Set when the client disconnects before the answer is complete."""

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.body["messages"])

    @property
    def last_text(self) -> str:
        """The content of the last message."""
        return str(self.messages[-1]["content"])

    @property
    def tool_names(self) -> list[str]:
        return [tool["function"]["name"] for tool in self.body.get("tools", ())]


def echo(request: Received) -> Say:
    """Return the user's text as the answer."""
    return Say(f"You said: {request.last_text}")


class ModelServer:
    """A server on its own port inside the block; before, connections are refused."""

    def __init__(
        self,
        *script: Step,
        otherwise: Step = echo,
        models: Sequence[str] = ("test-model",),
        port: int = 0,
        log: Path | None = None,
    ) -> None:
        self.requests: list[Received] = []
        """The requests for answers, in order."""
        self.visits: list[Received] = []
        """All requests, also those for the list of models."""
        self.models = models
        self.closing = threading.Event()
        self._script = list(script)
        self._otherwise = otherwise
        self._log = log
        self._lock = threading.Lock()
        self._http = _Http((HOST, port), _Handler, bind_and_activate=False)
        self._http.server_bind()
        self._http.model_server = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def port(self) -> int:
        return int(self._http.server_address[1])

    @property
    def base_url(self) -> str:
        """The value for `model.base_url`."""
        return f"http://{HOST}:{self.port}/v1"

    @property
    def config(self) -> str:
        """A config.yaml that uses this server."""
        return f"model: {{base_url: '{self.base_url}', default: test-model}}\n"

    def then(self, *script: Step) -> None:
        """Add steps to the end of the script."""
        with self._lock:
            self._script += script

    def __enter__(self) -> Self:
        self._http.server_activate()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the port."""
        self.closing.set()
        if self._thread.is_alive():
            self._http.shutdown()
            self._thread.join(10)
        self._http.server_close()

    def take(self, request: Received) -> Behaviour:
        """Record a request for an answer, and return the behaviour for it."""
        with self._lock:
            self.requests.append(request)
            step = self._script.pop(0) if self._script else self._otherwise
        return step(request) if callable(step) else step

    def note(self, request: Received) -> None:
        """Record a request."""
        with self._lock:
            self.visits.append(request)
            if self._log:
                line = {"method": request.method, "path": request.path, "headers": dict(request.headers)}
                with self._log.open("a") as file:
                    file.write(json.dumps(line | {"body": request.body}) + "\n")


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    model_server: ModelServer


class _HungUp(Exception):
    """The client is gone, or the server is closing."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Http

    def log_message(self, *_: Any) -> None:
        """Log nothing on stderr."""

    def do_GET(self) -> None:
        received = self._received(None)
        if received.path.endswith("/models"):
            listed = [{"id": name, "object": "model"} for name in self.server.model_server.models]
            self._send_json(200, {"object": "list", "data": listed})
        else:
            self._send_json(404, {"error": {"message": "no such path"}})

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        try:
            body = json.loads(data)
        except ValueError:
            body = data.decode("utf-8", "replace")
        received = self._received(body)
        if not received.path.partition("?")[0].endswith("/chat/completions"):
            self._send_json(404, {"error": {"message": "no such path"}})
            return
        try:
            self._answer(self.server.model_server.take(received), received)
        except (_HungUp, OSError):
            received.hung_up.set()
            self.close_connection = True

    def _received(self, body: Any) -> Received:
        headers = {name.lower(): value for name, value in self.headers.items()}
        received = Received(self.command, self.path, headers, body, self.client_address[1])
        self.server.model_server.note(received)
        return received

    def _answer(self, behaviour: Behaviour, received: Received) -> None:
        if isinstance(behaviour, Fail):
            self._fail(behaviour)
        elif isinstance(behaviour, Raw):
            self._send_head(200, {"Content-Type": behaviour.content_type, "Transfer-Encoding": "chunked"})
            for chunk in behaviour.chunks:
                self._send_chunk(chunk)
            self._cut() if behaviour.is_cut else self._send_chunk(b"")
        elif behaviour.stream and received.body.get("stream"):
            self._stream(behaviour, received)
        else:
            self._pause(behaviour.before_s)
            self._send_json(200, whole_of(behaviour, received.body))

    def _fail(self, behaviour: Fail) -> None:
        self._pause(behaviour.before_s)
        headers = dict(behaviour.headers)
        if behaviour.retry_after is not None:
            headers["Retry-After"] = str(behaviour.retry_after)
        if isinstance(behaviour.body, str):
            self._send(behaviour.status, behaviour.body.encode(), {"Content-Type": "text/plain"} | headers)
        else:
            self._send_json(behaviour.status, behaviour.body or {"error": {"message": "scripted"}}, headers)

    def _stream(self, behaviour: Say, received: Received) -> None:
        self._pause(behaviour.before_s)
        self._send_head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})
        self._pause(behaviour.first_s)
        for place, chunk in enumerate(chunks_of(behaviour, received.body)):
            if place == behaviour.cut_after:
                self._cut()
                return
            if place:
                self._pause(behaviour.between_s)
            self._send_event(json.dumps(chunk, ensure_ascii=False), behaviour.newline)
            if any(choice["finish_reason"] for choice in chunk.get("choices", ())):
                self._pause(behaviour.after_s)
        if behaviour.done and behaviour.error is None:
            self._send_event("[DONE]", behaviour.newline)
        self._send_chunk(b"")

    def _send_event(self, data: str, newline: str) -> None:
        self._send_chunk(f"data: {data}{newline}{newline}".encode())

    def _send_json(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        self._send(status, json.dumps(body).encode(), {"Content-Type": "application/json", **(headers or {})})

    def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self._send_head(status, {**headers, "Content-Length": str(len(body))})
        self.wfile.write(body)

    def _send_head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _send_chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _cut(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _pause(self, seconds: float) -> None:
        """Wait, unless the client disconnects."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if self.server.model_server.closing.is_set():
                raise _HungUp
            readable, _, _ = select.select([self.connection], [], [], min(left, 0.02))
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                raise _HungUp


def main() -> None:
    """Serve until stdin ends; the first line on stdout is the base URL."""
    parser = argparse.ArgumentParser(description="A model server with scripted answers.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", type=Path)
    parser.add_argument("--log", type=Path)
    given = parser.parse_args()
    script = [behaviour_of(step) for step in json.loads(given.script.read_text())] if given.script else []
    with ModelServer(*script, port=given.port, log=given.log) as server:
        sys.stdout.write(f"{server.base_url}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
