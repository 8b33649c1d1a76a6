"""A server of Discord's protocols, as far as the adapter uses them, which a test controls."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Literal

from aiohttp import WSMsgType, web

from hermes.platforms.discord.position import id_at
from tests.support.web_servers import close_runner

TOKEN = "MTAw.test.token-of-the-bot"
BOT, GUILD = "100", "10"
ALICE, BOB = "7", "8"
Fault = Literal["rate_limit", "short_limit", "lost", "unsent", "error", "none"]
_EMPTY: dict[str, Any] = {
    "tts": False,
    "mention_everyone": False,
    "edited_timestamp": None,
    "embeds": [],
    "pinned": False,
    "flags": 0,
}


def user(user_id: str, **more: Any) -> dict[str, Any]:
    """A user as Discord describes one."""
    name = {ALICE: "alice", BOB: "bob", BOT: "hermes"}.get(user_id, f"user{user_id}")
    about = {"id": user_id, "username": name, "discriminator": "0", "global_name": name.title(), "avatar": None}
    return {**about, **({"bot": True} if user_id == BOT else {}), **more}


@dataclass
class Session:
    """A session of the gateway, which a client can resume."""

    id: str
    events: list[dict[str, Any]] = field(default_factory=list)
    socket: web.WebSocketResponse | None = None


class DiscordServer:
    """Servers with channels and threads, direct chats, and one bot."""

    def __init__(self) -> None:
        self.channels: dict[str, dict[str, Any]] = {}
        self.guilds: dict[str, dict[str, Any]] = {}
        self.messages: dict[str, dict[str, Any]] = {}
        self.members: dict[tuple[str, str], dict[str, Any]] = {}
        self.files: dict[str, bytes] = {}
        self.faults: list[Fault] = []
        self.short_limit_s = 0.2
        self.requests: list[str] = []
        self.identified: list[dict[str, Any]] = []
        self.resumed = 0
        self.typing: list[str] = []
        self.refused_intents = 0
        self.application_flags = 1 << 19
        """With the bit of the message content intent."""
        self.token = TOKEN
        self.accepts = True
        self.readable = True
        """Whether the bot may read the history of channels."""
        self.hangs, self.is_hanging = False, False
        """Whether the gateway reads nothing more, not even that a client ends its connection."""
        self.echoes = True
        """Whether the gateway reports the messages of the bot."""
        self._nonces: dict[str, str] = {}
        self._greeting = asyncio.Lock()
        self._sessions: dict[str, Session] = {}
        self._lock = threading.RLock()
        self._last_id = id_at(time.time())
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.port = self._run(self._start())
        self.base_url = f"http://127.0.0.1:{self.port}/api/v10"
        self.gateway_url = f"ws://127.0.0.1:{self.port}/gateway"
        self.add_guild(GUILD, "Team")
        self.add_channel("20", "general")

    # --- the world --------------------------------------------------------------------------------------------------

    def new_id(self) -> str:
        """A new id, larger than all before it."""
        with self._lock:
            self._last_id = max(self._last_id + 1, id_at(time.time()))
            return str(self._last_id)

    def add_guild(self, guild_id: str, name: str) -> None:
        """Add a server of which the bot is a member, with a role for the bot."""
        role = {"id": f"{guild_id}9", "name": "hermes", "tags": {"bot_id": BOT}}
        roles: list[dict[str, Any]] = [{"id": guild_id, "name": "@everyone", "tags": None}, role]
        common = {"color": 0, "colors": {"primary_color": 0}, "hoist": False, "position": 0, "permissions": "0"}
        common |= {"managed": False, "mentionable": False, "flags": 0}
        self.guilds[guild_id] = {
            "id": guild_id,
            "name": name,
            "roles": [{**common, **{k: v for k, v in each.items() if v is not None}} for each in roles],
            "joined_at": "2020-01-01T00:00:00.000000+00:00",
            "owner_id": "1",
            "member_count": 3,
            "members": [],
            "large": False,
            "unavailable": False,
        }

    def add_channel(self, channel_id: str, name: str, guild_id: str = GUILD, kind: int = 0) -> None:
        """Add a channel of a server; 15 is the kind of a forum."""
        self.channels[channel_id] = {
            "id": channel_id,
            "type": kind,
            "guild_id": guild_id,
            "name": name,
            "topic": f"about {name}",
            "position": 0,
            "permission_overwrites": [],
            "last_message_id": None,
            **({"available_tags": []} if kind == 15 else {}),
        }

    def add_thread(self, thread_id: str, name: str, parent_id: str, *, is_announced: bool = True) -> None:
        """Add a thread of a channel, or a post of a forum."""
        parent = self.channels[parent_id]
        moment = "2026-01-01T00:00:00.000000+00:00"
        self.channels[thread_id] = {
            "id": thread_id,
            "type": 11,
            "guild_id": parent["guild_id"],
            "parent_id": parent_id,
            "owner_id": ALICE,
            "name": name,
            "message_count": 0,
            "member_count": 1,
            "last_message_id": None,
            "thread_metadata": {
                "archived": False,
                "auto_archive_duration": 60,
                "archive_timestamp": moment,
                "locked": False,
            },
        }
        if is_announced:
            self.emit("THREAD_CREATE", self.channels[thread_id])

    def direct(self, user_id: str = ALICE) -> str:
        """The direct chat of a user with the bot."""
        channel_id = f"3{user_id}"
        about = {"id": channel_id, "type": 1, "recipients": [user(user_id)], "last_message_id": None}
        self.channels.setdefault(channel_id, about)
        return channel_id

    def say(self, channel_id: str, text: str, author: str = ALICE, *, is_live: bool = True, **more: Any) -> str:
        """Let a user write a message; return its id."""
        message = self.message(channel_id, text, user(author), **more)
        if is_live:
            self.deliver(message["id"])
        return str(message["id"])

    def mention(self, channel_id: str, text: str, author: str = ALICE, **more: Any) -> str:
        """Let a user mention the bot."""
        return self.say(channel_id, f"<@{BOT}> {text}", author, mentions=[user(BOT)], **more)

    def message(self, channel_id: str, text: str, author: dict[str, Any], **more: Any) -> dict[str, Any]:
        """Store a message without delivering it."""
        message = {
            **_EMPTY,
            "id": self.new_id(),
            "type": 0,
            "channel_id": channel_id,
            "author": author,
            "content": text,
            "timestamp": "2026-01-01T00:00:00.000000+00:00",
            "mentions": [],
            "mention_roles": [],
            "attachments": [],
            "components": [],
            **more,
        }
        self.messages[message["id"]] = message
        if channel_id in self.channels:
            self.channels[channel_id]["last_message_id"] = message["id"]
        return message

    def deliver(self, message_id: str) -> None:
        """Let the gateway report a message, perhaps once more."""
        message = dict(self.messages[message_id])
        guild_id = self.channels.get(message["channel_id"], {}).get("guild_id")
        if guild_id is not None:
            message["guild_id"] = guild_id
            message["member"] = self.members.get((guild_id, message["author"]["id"]), {"roles": [], "nick": None})
        self.emit("MESSAGE_CREATE", message)

    def texts(self, channel_id: str, author: str = BOT) -> list[str]:
        """What the bot has written in a channel, the oldest first."""
        with self._lock:
            found = [each for each in self.messages.values() if each["channel_id"] == channel_id]
            return [str(each["content"]) for each in found if each["author"]["id"] == author]

    def emit(self, name: str, data: Any) -> None:
        """Report an event to every session, also to those that are disconnected and may resume."""
        self._run(self._emit(name, data))

    def push(self, frame: str | bytes) -> None:
        """Send a frame to every connection, as it is."""
        self._run(self._push(frame))

    def disconnect(self, *, forgets: bool = False, code: int = 1006) -> None:
        """Break the connections; with `forgets`, their sessions cannot be resumed."""
        self._run(self._disconnect(forgets=forgets, code=code))

    @property
    def connections(self) -> int:
        """How many clients are connected to the gateway."""
        return sum(1 for each in self._sessions.values() if each.socket is not None)

    def close(self) -> None:
        """Stop the server."""
        self._run(close_runner(self._runner))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    # --- the gateway ------------------------------------------------------------------------------------------------

    async def _start(self) -> int:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_get("/gateway", self._gateway)
        app.router.add_get("/gateway/", self._gateway)
        app.router.add_get("/api/v10/cdn/{name}", self._file)
        app.router.add_route("*", "/api/v10/{path:.*}", self._rest)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        return int(self._runner.addresses[0][1])

    async def _emit(self, name: str, data: Any) -> None:
        async with self._greeting:  # no event of a server comes before the server itself
            for session in self._sessions.values():
                await self._dispatch(session, name, data)

    async def _dispatch(self, session: Session, name: str, data: Any) -> None:
        event = {"op": 0, "t": name, "s": len(session.events) + 1, "d": data}
        session.events.append(event)
        if session.socket is not None and not session.socket.closed:
            await session.socket.send_str(json.dumps(event))

    async def _push(self, frame: str | bytes) -> None:
        for session in self._sessions.values():
            if session.socket is not None:
                await (session.socket.send_str(frame) if isinstance(frame, str) else session.socket.send_bytes(frame))

    async def _disconnect(self, *, forgets: bool, code: int) -> None:
        sessions = list(self._sessions.values())
        if forgets:
            self._sessions.clear()
        for session in sessions:
            socket, session.socket = session.socket, None
            if socket is None:
                continue
            if code != 1006:
                await socket.close(code=code)
            elif (transport := socket._req.transport if socket._req else None) is not None:
                transport.abort()

    async def _gateway(self, request: web.Request) -> web.StreamResponse:
        if not self.accepts:
            return web.Response(status=503)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"op": 10, "d": {"heartbeat_interval": 41250}, "s": None, "t": None})
        session: Session | None = None
        async for frame in socket:
            if frame.type is not WSMsgType.TEXT:
                break
            data = json.loads(frame.data)
            while self.hangs:
                self.is_hanging = True
                await asyncio.sleep(0.05)
            if data["op"] == 1:
                await socket.send_json({"op": 11})
            elif data["op"] == 2:
                session = await self._identify(socket, data["d"])
            elif data["op"] == 6:
                session = await self._resume(socket, data["d"])
        if session is not None and session.socket is socket:
            session.socket = None
        return socket

    async def _identify(self, socket: web.WebSocketResponse, data: dict[str, Any]) -> Session | None:
        if data["token"] != self.token:
            await socket.close(code=4004)
            return None
        if data["intents"] & self.refused_intents:
            await socket.close(code=4014)
            return None
        self.identified.append(data)
        session = Session(f"session{len(self.identified)}", socket=socket)
        self._sessions = {session.id: session}
        guilds = [{"id": each, "unavailable": True} for each in self.guilds]
        ready = {"v": 10, "user": user(BOT), "guilds": guilds, "session_id": session.id, "private_channels": []}
        ready |= {"resume_gateway_url": "wss://gateway.invalid", "application": {"id": BOT, "flags": 0}}
        async with self._greeting:
            await self._dispatch(session, "READY", ready)
            for guild_id, guild in self.guilds.items():
                inside = [each for each in self.channels.values() if each.get("guild_id") == guild_id]
                channels = [each for each in inside if each["type"] not in (10, 11, 12)]
                threads = [each for each in inside if each["type"] in (10, 11, 12)]
                await self._dispatch(session, "GUILD_CREATE", {**guild, "channels": channels, "threads": threads})
        return session

    async def _resume(self, socket: web.WebSocketResponse, data: dict[str, Any]) -> Session | None:
        session = self._sessions.get(data["session_id"])
        if session is None or data["token"] != self.token:
            await socket.send_json({"op": 9, "d": False, "s": None, "t": None})
            return None
        self.resumed += 1
        for event in session.events[data["seq"] :]:
            await socket.send_json(event)
        session.socket = socket
        await self._dispatch(session, "RESUMED", {})
        return session

    # --- requests ---------------------------------------------------------------------------------------------------

    async def _file(self, request: web.Request) -> web.Response:
        assert "Authorization" not in request.headers
        return web.Response(body=self.files[request.match_info["name"]])

    async def _rest(self, request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"]
        self.requests.append(f"{request.method} {path}")
        if request.headers.get("Authorization") != f"Bot {self.token}":
            return reply({"message": "401: Unauthorized", "code": 0}, 401)
        parts = path.split("/")
        if path == "users/@me":
            return reply(user(BOT))
        if path == "oauth2/applications/@me":
            common = {"icon": None, "description": "", "bot_public": True, "bot_require_code_grant": False}
            return reply(
                {
                    "id": BOT,
                    "name": "hermes",
                    "verify_key": "",
                    "flags": self.application_flags,
                    "team": None,
                    "owner": user("1"),
                    **common,
                }
            )
        if parts[0] == "guilds" and parts[2] == "members":
            found = self.members.get((parts[1], parts[3]))
            return reply(found) if found else reply({"message": "Unknown Member", "code": 10007}, 404)
        channel = self.channels.get(parts[1]) if parts[0] == "channels" else None
        if channel is None:
            return reply({"message": "Unknown Channel", "code": 10003}, 404)
        if len(parts) == 2:
            return reply(channel)
        if parts[2] == "typing":
            self.typing.append(parts[1])
            return web.Response(status=204)
        handlers: dict[str, Callable[..., Coroutine[Any, Any, web.StreamResponse]]] = {
            "GET": self._history,
            "POST": self._post,
            "PATCH": self._change,
            "DELETE": self._delete,
        }
        return await handlers[request.method](request, *parts[1:2], *parts[3:])

    async def _history(self, request: web.Request, channel_id: str) -> web.Response:
        found = [each for each in self.messages.values() if each["channel_id"] == channel_id and self.readable]
        before, after = request.query.get("before"), request.query.get("after")
        if before is not None:
            found = [each for each in found if int(each["id"]) < int(before)]
        if after is not None:
            found = [each for each in found if int(each["id"]) > int(after)]
        limit = int(request.query.get("limit", 50))
        chosen = found[:limit] if after is not None else found[-limit:]
        return reply([{k: v for k, v in each.items() if k != "nonce"} for each in chosen[::-1]])

    async def _post(self, request: web.Request, channel_id: str) -> web.StreamResponse:
        body, files = await read_body(request)
        fault = self.faults.pop(0) if self.faults else None
        if fault == "unsent":
            assert request.transport is not None
            request.transport.abort()
            return web.Response(status=500)
        if fault in ("rate_limit", "short_limit"):
            wait_s = 40.0 if fault == "rate_limit" else self.short_limit_s
            headers = {"Retry-After": str(wait_s), "Via": "1.1 google"}
            return reply(
                {"message": "You are being rate limited.", "retry_after": wait_s, "global": False}, 429, headers
            )
        if fault == "error":
            return reply({"message": "Cannot send messages to this user", "code": 50007}, 403)
        if len(body["content"].encode("utf-16-le")) > 4000 or not (body["content"].strip() or files):
            return reply({"message": "Invalid Form Body", "code": 50035}, 400)
        message = self._sent(channel_id, body, files)
        if fault == "lost":
            assert request.transport is not None
            request.transport.abort()
        return reply(message)

    def _sent(self, channel_id: str, body: dict[str, Any], files: list[str]) -> dict[str, Any]:
        known = self._nonces.get(body["nonce"]) if body.get("enforce_nonce") else None
        if known is not None:
            return self.messages[known]
        more = {"nonce": body.get("nonce"), "allowed_mentions": body["allowed_mentions"]}
        more |= {"message_reference": body.get("message_reference"), "attachments": [{"filename": e} for e in files]}
        message = self.message(channel_id, body["content"].strip(), user(BOT), **more)
        self._nonces[str(body.get("nonce"))] = message["id"]
        if self.echoes:
            self._echo = asyncio.get_running_loop().create_task(self._emit("MESSAGE_CREATE", message))
        return message

    async def _change(self, request: web.Request, channel_id: str, message_id: str) -> web.Response:
        message = self.messages.get(message_id)
        if message is None or message["channel_id"] != channel_id:
            return reply({"message": "Unknown Message", "code": 10008}, 404)
        message["content"] = (await request.json())["content"].strip()
        return reply(message)

    async def _delete(self, request: web.Request, channel_id: str, message_id: str) -> web.Response:
        self.messages.pop(message_id)
        return web.Response(status=204)


def reply(data: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """A response whose type is exactly `application/json`, as the library requires it."""
    more = {"Content-Type": "application/json", **(headers or {})}
    return web.Response(body=json.dumps(data).encode(), status=status, headers=more)


async def read_body(request: web.Request) -> tuple[dict[str, Any], list[str]]:
    """The JSON of a request, and the names of its files."""
    if not request.content_type.startswith("multipart/"):
        return await request.json(), []
    form = await request.post()
    files = [each.filename for each in form.values() if isinstance(each, web.FileField)]
    return json.loads(str(form["payload_json"])), files
