"""A Slack workspace for tests: the Web API and socket mode on one port, in a thread, under the control of a test."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

from aiohttp import WSCloseCode, web

from tests.support.waiting import LIMIT_S, wait_until
from tests.support.web_servers import close_runner

T = TypeVar("T")
Message = dict[str, Any]

TOKEN, APP_TOKEN = "xoxb-secret-of-the-bot", "xapp-secret-of-the-app"
BOT, BOT_ID, TEAM = "UBOT", "BBOT", "T1"
ALICE, BOB = "UALICE", "UBOB"
DIRECT, CHANNEL, SEVERAL = "D1", "C1", "G1"
_METHODS_WITH_EFFECT = ("chat.postMessage", "chat.update", "chat.delete", "files.completeUploadExternal")


class SlackServer:
    """One workspace with one bot, two users, a direct message, a channel and a direct message with several people."""

    def __init__(self) -> None:
        self.messages: dict[str, list[Message]] = {}
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.users: dict[str, Any] = {
            ALICE: {"profile": {"display_name": "Alice"}},
            BOB: {"profile": {"display_name": ""}, "real_name": "Bob\nBuilder"},
        }
        self.chats: dict[str, Any] = {
            DIRECT: {"is_im": True},
            CHANNEL: {"name": "general"},
            SEVERAL: {"is_mpim": True, "name": "mpdm-alice--bob"},
        }
        self.files: dict[str, tuple[str, bytes]] = {}
        self.uploads: list[dict[str, Any]] = []
        self.acknowledged: list[str] = []
        self.connections = 0
        """How many connections of socket mode were made."""
        self.base_url = ""
        self.page_size = 100
        self._failures: dict[str, list[Any]] = {}
        self._envelopes: dict[str, dict[str, Any]] = {}
        self._sockets: list[web.WebSocketResponse] = []
        self._sent: dict[web.WebSocketResponse, set[str]] = {}
        self._numbers = itertools.count(1)
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    # --- what tests do ------------------------------------------------------------------------------------------------

    def ts(self) -> str:
        """The next time of a message."""
        return f"1700000000.{next(self._numbers):06}"

    def say(self, text: str, channel: str = DIRECT, user: str = ALICE, **fields: Any) -> str:
        """Let a user write a message, deliver its event, and return the time of the message."""
        ts = fields.pop("ts", None) or self.ts()
        self.messages.setdefault(channel, []).append({"ts": ts, "user": user, "text": text, **fields})
        self.deliver(message_event(text, channel, user, ts, **fields), f"Ev{ts[-6:]}")
        return str(ts)

    def deliver(self, event: Any, event_id: str, kind: str = "events_api", **payload: Any) -> None:
        """Deliver an event, now and on every new connection until it is acknowledged."""
        body = {"type": "event_callback", "team_id": TEAM, "event_id": event_id, "event": event, **payload}
        self.push({"type": kind, "envelope_id": event_id, "payload": body})

    def push(self, envelope: dict[str, Any]) -> None:
        """Send an envelope, perhaps again, now and on every new connection until it is acknowledged."""
        for sent in list(self._sent.values()):
            sent.discard(envelope["envelope_id"])
        if envelope["envelope_id"] in self.acknowledged:
            self.acknowledged.remove(envelope["envelope_id"])
        self._envelopes[envelope["envelope_id"]] = envelope
        self._call(self._send_envelopes())

    @property
    def open_connections(self) -> int:
        """How many connections of socket mode are open."""
        return len(self._sockets)

    def send_raw(self, text: str) -> None:
        """Send something to the newest connection."""

        async def send() -> None:
            for socket in self._sockets[-1:]:
                with contextlib.suppress(ConnectionError):
                    await socket.send_str(text)

        self._call(send())

    def rotate(self) -> None:
        """Let the next events go to the next connection."""
        self._loop.call_soon_threadsafe(lambda: self._sockets.insert(0, self._sockets.pop()))

    def disconnect(self) -> None:
        """Break all connections of socket mode."""

        async def close() -> None:
            for socket in self._sockets[:]:
                await socket.close(code=WSCloseCode.GOING_AWAY)

        self._call(close())

    def fail(self, method: str, *failures: Any) -> None:
        """Let the next calls of a method fail: `lost`, `silent`, `html`, `pause`, a status, or an error of Slack."""
        self._failures.setdefault(method, []).extend(failures)

    def shown(self, channel: str = DIRECT) -> list[str]:
        """The texts of the bot in a chat."""
        return [each["text"] for each in self.messages.get(channel, []) if each["user"] == BOT]

    def of_bot(self, channel: str = DIRECT) -> list[Message]:
        """The messages of the bot in a chat."""
        return [each for each in self.messages.get(channel, []) if each["user"] == BOT]

    def called(self, method: str) -> list[dict[str, Any]]:
        """The arguments of all calls of a method."""
        return [arguments for name, arguments in self.calls if name == method]

    def wait_for_ack(self, *event_ids: str) -> None:
        """Wait until events are acknowledged."""
        wait_until(lambda: set(event_ids) <= set(self.acknowledged), f"{event_ids} to be acknowledged")

    @contextlib.contextmanager
    def running(self) -> Iterator[SlackServer]:
        """Serve until the end of the test."""
        self._thread.start()
        assert self._ready.wait(LIMIT_S)
        try:
            yield self
        finally:
            self.stop()

    def start(self) -> None:
        """Serve."""
        self._thread.start()
        assert self._ready.wait(LIMIT_S)

    def stop(self) -> None:
        """End."""
        if self._thread.is_alive():
            self.disconnect()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(LIMIT_S)

    # --- the server ---------------------------------------------------------------------------------------------------

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(LIMIT_S)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/api/{method}", self._api)
        app.router.add_get("/files/{name}", self._file)
        app.router.add_post("/upload/{name}", self._upload)
        app.router.add_get("/link", self._link)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        self._loop.run_until_complete(runner.setup())
        site = web.TCPSite(runner, "127.0.0.1", 0)
        self._loop.run_until_complete(site.start())
        port = runner.addresses[0][1]
        self.origin = f"http://127.0.0.1:{port}"
        self.base_url = f"{self.origin}/api"
        self._ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(close_runner(runner))
        self._loop.close()

    async def _api(self, request: web.Request) -> web.StreamResponse:
        method, arguments = request.match_info["method"], await _arguments(request)
        self.calls.append((method, arguments))
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        failure = self._failures[method].pop(0) if self._failures.get(method) else None
        if token != (APP_TOKEN if method == "apps.connections.open" else TOKEN):
            return web.json_response({"ok": False, "error": "invalid_auth"})
        if failure in ("lost", "silent"):
            self._act(method, arguments)
            if failure == "silent":
                await asyncio.sleep(LIMIT_S)
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        if failure == "pause":
            return web.json_response({"ok": False, "error": "ratelimited"}, status=429, headers={"Retry-After": "7"})
        if failure == "html":
            self._act(method, arguments)
            return web.Response(text="<html>a proxy</html>", content_type="text/html")
        if isinstance(failure, int):
            return web.Response(status=failure, text="<html></html>", content_type="text/html")
        if isinstance(failure, str):
            return web.json_response({"ok": False, "error": failure})
        if failure is not None:
            return web.json_response(failure)
        return web.json_response(self._act(method, arguments))

    def _act(self, method: str, arguments: dict[str, Any]) -> dict[str, Any]:
        actions: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "auth.test": lambda _: {
                "user": "hermes",
                "user_id": BOT,
                "bot_id": BOT_ID,
                "team": "Work",
                "team_id": TEAM,
                "url": "https://work.slack.com/",
            },
            "apps.connections.open": lambda _: {
                "url": f"{self.origin.replace('http', 'ws')}/link?ticket=secret-ticket"
            },
            "chat.postMessage": self._post,
            "chat.update": self._update,
            "chat.delete": self._delete,
            "conversations.history": self._history,
            "conversations.replies": self._history,
            "conversations.info": lambda asked: _one("channel", self.chats.get(asked["channel"]), "channel_not_found"),
            "users.info": lambda asked: _one("user", self.users.get(asked["user"]), "user_not_found"),
            "files.getUploadURLExternal": lambda asked: {
                "file_id": "F1",
                "upload_url": f"{self.origin}/upload/{asked['filename']}",
            },
            "files.completeUploadExternal": self._complete,
        }
        action = actions.get(method)
        return {"ok": True, **action(arguments)} if action else {"ok": False, "error": "unknown_method"}

    def _post(self, asked: dict[str, Any]) -> dict[str, Any]:
        message = {**asked, "ts": self.ts(), "user": BOT, "bot_id": BOT_ID}
        self.messages.setdefault(asked["channel"], []).append(message)
        return {"channel": asked["channel"], "ts": message["ts"], "message": message}

    def _update(self, asked: dict[str, Any]) -> dict[str, Any]:
        for each in self.of_bot(asked["channel"]):
            if each["ts"] == asked["ts"]:
                each.update(asked)
                return {"ts": asked["ts"], "text": asked["text"]}
        return {"ok": False, "error": "message_not_found"}

    def _delete(self, asked: dict[str, Any]) -> dict[str, Any]:
        kept = [each for each in self.messages.get(asked["channel"], []) if each["ts"] != asked["ts"]]
        self.messages[asked["channel"]] = kept
        return {"ts": asked["ts"]}

    def _history(self, asked: dict[str, Any]) -> dict[str, Any]:
        found = self.messages.get(asked["channel"], [])
        if thread := asked.get("ts"):
            found = [each for each in found if thread in (each["ts"], each.get("thread_ts"))]
        else:
            found = found[::-1]
        if oldest := asked.get("oldest"):
            found = [each for each in found if each["ts"] > oldest]
        if asked.get("include_all_metadata") not in ("1", "true", True):
            found = [{name: value for name, value in each.items() if name != "metadata"} for each in found]
        begin = int(asked.get("cursor") or 0)
        end = begin + self.page_size
        more = {"next_cursor": str(end) if end < len(found) else ""}
        return {"messages": found[begin:end], "has_more": end < len(found), "response_metadata": more}

    def _complete(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.uploads.append(asked)
        return {"files": [{"id": "F1"}]}

    async def _upload(self, request: web.Request) -> web.Response:
        self.files[request.match_info["name"]] = ("application/octet-stream", await request.read())
        return web.Response(text="OK")

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        self.calls.append((f"file {name}", dict(request.headers)))
        if self._failures.get("file"):
            return web.Response(status=self._failures["file"].pop(0))
        mime, content = self.files[name]
        return web.Response(body=content, content_type=mime)

    async def _link(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.connections += 1
        await socket.send_json({"type": "hello", "num_connections": 1, "connection_info": {"app_id": "A1"}})
        self._sent[socket] = set()
        self._sockets.append(socket)
        await self._send_envelopes()
        try:
            async for message in socket:
                if isinstance(message.data, str):
                    self.acknowledged.append(json.loads(message.data)["envelope_id"])
        finally:
            self._sockets.remove(socket)
            del self._sent[socket]
        return socket

    async def _send_envelopes(self) -> None:
        """Send the newest connection what is not acknowledged and what it has not got."""
        for socket in self._sockets[-1:]:
            for envelope_id, envelope in list(self._envelopes.items()):
                sent = self._sent.get(socket, set())
                if envelope_id not in sent and envelope_id not in self.acknowledged:
                    sent.add(envelope_id)
                    with contextlib.suppress(ConnectionError):
                        await socket.send_str(json.dumps(envelope))


def message_event(text: Any, channel: str, user: str, ts: str, **fields: Any) -> dict[str, Any]:
    """The event of a message."""
    kinds = {DIRECT: "im", CHANNEL: "channel", SEVERAL: "mpim"}
    event = {"type": "message", "channel": channel, "user": user, "text": text, "ts": ts, "event_ts": ts}
    return {**event, "channel_type": kinds.get(channel, "channel"), "client_msg_id": "c", **fields}


async def _arguments(request: web.Request) -> dict[str, Any]:
    if request.content_type == "application/json":
        return dict(await request.json())
    found: dict[str, Any] = {**request.query, **await request.post()}
    for name in ("metadata", "files"):
        if isinstance(found.get(name), str):
            found[name] = json.loads(found[name])
    return found


def _one(name: str, value: Any, error: str) -> dict[str, Any]:
    return {name: value} if value is not None else {"ok": False, "error": error}
