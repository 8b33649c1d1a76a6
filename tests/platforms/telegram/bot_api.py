"""A server of Telegram's Bot API that a test controls: what no independent server has, and every failure."""

from __future__ import annotations

import asyncio
import html.parser
import json
import threading
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aiohttp import web

from tests.support.waiting import LIMIT_S
from tests.support.web_servers import close_runner

TOKEN = "123456:AAEtest-token_of_the_tests"
BOT = {"id": 123456, "is_bot": True, "first_name": "Test", "username": "test_bot", "has_topics_enabled": True}
MOST_UNITS = 4096
_TAGS = {"b", "i", "s", "u", "a", "code", "pre"}


class BotApi:
    """One bot. Its methods are called on the thread of the test; the server has a thread of its own."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.messages: dict[int, dict[str, Any]] = {}
        """What users see, by message id."""
        self.drafts: list[str] = []
        """What users saw of answers that were being written."""
        self.files: dict[str, bytes] = {}
        self.webhook: dict[str, Any] = {}
        self.bot = dict(BOT)
        self.offset = 0
        """The updates before this one are acknowledged."""
        self.polls_at_once = 0
        self.most_polls_at_once = 0
        self._updates: dict[int, Any] = {}
        self._failures: dict[str, deque[Any]] = defaultdict(deque)
        self._next_message = 1000
        self._next_update = 1
        self._loop: asyncio.AbstractEventLoop
        self._news: asyncio.Condition
        self._poll: asyncio.Future[None] | None = None
        self._requests: dict[int, web.Request] = {}
        self._ready = threading.Event()
        self._stopping: asyncio.Event
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    # --- what a test does ---------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Listen."""
        self._thread.start()
        assert self._ready.wait(LIMIT_S)

    def stop(self) -> None:
        """End the server, if it runs."""
        if not self._thread.is_alive():
            return
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(LIMIT_S)
        assert not self._thread.is_alive()

    def deliver(self, update: Any, number: int | None = None) -> int:
        """Let an update wait for the bot; return its number. With a number, the update has it, perhaps again."""
        number = self._next_update if number is None else number
        self._next_update = max(self._next_update, number + 1)
        if isinstance(update, dict):
            update = {"update_id": number, **update}
        self._updates[number] = update
        self._wake()
        return number

    def say(self, text: str = "", **more: Any) -> int:
        """Let a user write; return the message id."""
        message = message_of(self.next_id(), text, **more)
        self.deliver({"channel_post" if message["chat"]["type"] == "channel" else "message": message})
        return int(message["message_id"])

    def next_id(self) -> int:
        """Return an unused message id."""
        self._next_message += 1
        return self._next_message

    def add_file(self, content: bytes, size: int | None = None) -> dict[str, Any]:
        """Store a file, and return how a message names it."""
        name = f"file{len(self.files)}"
        self.files[name] = content
        found = {"file_id": name, "file_unique_id": name, "file_size": len(content) if size is None else size}
        return {**found, "width": 10, "height": 10, "duration": 1, "length": 1}

    def fail(self, method: str, *failures: Any) -> None:
        """Let the next calls of a method fail: `lost`, `hang`, `close`, a status, or a whole response."""
        self._failures[method.lower()].extend(failures)

    def sent(self, method: str) -> list[dict[str, Any]]:
        """The arguments of the calls of a method."""
        return [values for name, values in self.calls if name == method.lower()]

    def texts(self, chat_id: int | None = None) -> list[str]:
        """The texts of the bot that users see, the oldest first."""
        shown = sorted(self.messages.items())
        return [each["text"] for _, each in shown if chat_id is None or each["chat_id"] == str(chat_id)]

    def disconnect(self) -> None:
        """Break all connections."""
        done = threading.Event()

        def break_all() -> None:
            self._break_all()
            done.set()

        self._loop.call_soon_threadsafe(break_all)
        assert done.wait(LIMIT_S)

    # --- the server ---------------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        if self._ready.is_set():
            asyncio.run_coroutine_threadsafe(self._notify(), self._loop)

    async def _notify(self) -> None:
        async with self._news:
            self._news.notify_all()

    async def _serve(self) -> None:
        self._loop, self._stopping, self._news = asyncio.get_running_loop(), asyncio.Event(), asyncio.Condition()
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", f"/bot{TOKEN}/{{method}}", self._call)
        app.router.add_get(f"/file/bot{TOKEN}/{{name}}", self._file)
        app.router.add_route("*", "/bot{token}/{method}", self._unknown_token)
        runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        self.base_url = f"http://127.0.0.1:{port}"
        self._ready.set()
        await self._stopping.wait()
        await site.stop()
        await asyncio.sleep(0.01)  # a connection that was just accepted is known then
        self._break_all()
        await close_runner(runner)

    def _break_all(self) -> None:
        for request in list(self._requests.values()):
            if request.transport is not None:
                request.transport.abort()

    async def _unknown_token(self, request: web.Request) -> web.Response:
        return _error(401, "Unauthorized")

    async def _file(self, request: web.Request) -> web.Response:
        failures = self._failures["file"]
        if failures and (failure := failures.popleft()) != "ok":
            return web.Response(status=failure)
        content = self.files.get(request.match_info["name"])
        return web.Response(status=404) if content is None else web.Response(body=content)

    async def _call(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"].lower()
        values: dict[str, Any] = dict(request.query)
        posted = await request.post()
        for name, value in posted.items():
            values[name] = value.file.read() if isinstance(value, web.FileField) else value
        self.calls.append((method, values))
        self._requests[id(request)] = request
        try:
            failures = self._failures[method]
            failure = failures.popleft() if failures else None
            if isinstance(failure, web.Response):
                return failure
            if isinstance(failure, int):
                return _error(failure, "the server failed")
            if isinstance(failure, dict):
                return _error(failure.pop("status", 400), failure.pop("description"), **failure)
            result = None if failure == "close" else await self._answer(method, values)
            if failure in ("lost", "close") and request.transport is not None:
                request.transport.abort()
            if failure == "hang":
                await asyncio.sleep(3600)
            return result if isinstance(result, web.Response) else web.json_response({"ok": True, "result": result})
        finally:
            del self._requests[id(request)]

    async def _answer(self, method: str, values: dict[str, Any]) -> Any:
        if method == "getme":
            return self.bot
        if method == "getupdates":
            return await self._get_updates(values)
        if method == "setwebhook":
            self.webhook = values
        if method == "deletewebhook":
            self.webhook = {}
        if method == "getfile":
            name = values["file_id"]
            if name not in self.files:
                return _error(400, "Bad Request: invalid file_id")
            return {"file_id": name, "file_unique_id": name, "file_path": name}
        if method == "editmessagetext":
            return self._edit(values)
        if method == "deletemessage":
            known = self.messages.pop(int(values["message_id"]), None)
            return True if known else _error(400, "Bad Request: message to delete not found")
        if method == "sendmessagedraft":
            return self._draft(values)
        if method.startswith("send") and method != "sendchataction":
            return self._send(values)
        return True

    async def _get_updates(self, values: dict[str, Any]) -> Any:
        if self.webhook:
            return _error(409, "Conflict: can't use getUpdates method while webhook is active")
        if self._poll is not None and not self._poll.done():
            self._poll.set_result(None)  # the older request loses
        poll = self._poll = self._loop.create_future()
        self.offset = int(values.get("offset", self.offset))
        for number in [each for each in self._updates if each < self.offset]:
            del self._updates[number]
        deadline = self._loop.time() + float(values.get("timeout", 0))
        self.polls_at_once += 1
        self.most_polls_at_once = max(self.most_polls_at_once, self.polls_at_once)
        try:
            while not self._updates and (left := deadline - self._loop.time()) > 0:
                if poll.done():
                    return _error(409, "Conflict: terminated by other getUpdates request")
                async with self._news:
                    try:
                        await asyncio.wait_for(self._news.wait(), min(left, 0.05))
                    except TimeoutError:
                        continue
            return [self._updates[number] for number in sorted(self._updates)][: int(values.get("limit", 100))]
        finally:
            self.polls_at_once -= 1

    def _send(self, values: dict[str, Any]) -> Any:
        text = self._shown(values, values.get("text", values.get("caption", "")))
        if isinstance(text, web.Response):
            return text
        number = self.next_id()
        self.messages[number] = {**values, "text": text, "chat_id": values["chat_id"]}
        return message_of(number, text, chat=int(values["chat_id"]), user=None) | {"from": BOT}

    def _draft(self, values: dict[str, Any]) -> Any:
        if int(values["chat_id"]) < 0:
            return _error(400, "Bad Request: method is available only for private chats")
        if not 0 < int(values["draft_id"]) < 2**31:
            return _error(400, "Bad Request: draft_id is invalid")
        text = self._shown(values, values["text"])
        if isinstance(text, web.Response):
            return text
        self.drafts.append(text)
        return True

    def _edit(self, values: dict[str, Any]) -> Any:
        known = self.messages.get(int(values["message_id"]))
        if known is None:
            return _error(400, "Bad Request: message to edit not found")
        text = self._shown(values, values["text"])
        if isinstance(text, web.Response):
            return text
        if text == known["text"]:
            return _error(400, "Bad Request: message is not modified: specified new message content is the same")
        known["text"] = text
        return message_of(int(values["message_id"]), text, chat=int(values["chat_id"]), user=None) | {"from": BOT}

    def _shown(self, values: dict[str, Any], text: str) -> str | web.Response:
        if values.get("parse_mode") == "HTML":
            try:
                text = plain_text(text)
            except ValueError as error:
                return _error(400, f"Bad Request: can't parse entities: {error}")
        if "text" in values and not text.strip():
            return _error(400, "Bad Request: message text is empty")
        if len(text.encode("utf-16-le")) // 2 > MOST_UNITS:
            return _error(400, "Bad Request: message is too long")
        return text


@contextmanager
def bot_api() -> Iterator[BotApi]:
    """Run a server for one test."""
    server = BotApi()
    server.start()
    try:
        yield server
    finally:
        server.stop()


def message_of(
    number: int,
    text: str = "",
    *,
    chat: int = 7,
    user: int | None = 7,
    kind: str = "private",
    sender: Any = None,
    **more: Any,
) -> dict[str, Any]:
    """Return a message as Telegram sends it."""
    place: dict[str, Any] = {"id": chat, "type": kind}
    place |= {"first_name": "Alice"} if kind == "private" else {"title": "Team"}
    if more.pop("is_forum", False):
        place["is_forum"] = True
    message: dict[str, Any] = {"message_id": number, "date": 1_790_000_000, "chat": place}
    if text:
        message["text"] = text
    if user is not None and kind != "channel":
        message["from"] = {"id": user, "is_bot": False, "first_name": "Alice", "last_name": "Liddell"}
    if sender is not None:
        message["from"] = sender
    if kind == "channel":
        message["sender_chat"] = place
    return message | more


def mention(text: str, named: str = "@test_bot") -> dict[str, Any]:
    """Return the entities of a text that mentions the bot."""
    offset = len(text[: text.index(named)].encode("utf-16-le")) // 2
    return {"entities": [{"type": "mention", "offset": offset, "length": len(named)}]}


def rate_limit(seconds: int) -> dict[str, Any]:
    """Return the failure with which Telegram asks for a pause."""
    text = f"Too Many Requests: retry after {seconds}"
    return {"status": 429, "description": text, "parameters": {"retry_after": seconds}}


def plain_text(text: str) -> str:
    """Return what users see of a text in HTML; raise ValueError if Telegram would refuse it."""
    reader = _Reader(convert_charrefs=True)
    reader.feed(text)
    reader.close()
    if reader.open:
        raise ValueError(f"unclosed tag {reader.open[-1]}")
    return "".join(reader.found)


class _Reader(html.parser.HTMLParser):
    """Reads the small part of HTML that Telegram knows."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.open: list[str] = []
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        """Open a tag."""
        if tag not in _TAGS:
            raise ValueError(f'unsupported start tag "{tag}"')
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close the last tag."""
        if not self.open or self.open.pop() != tag:
            raise ValueError(f"unexpected end tag {tag}")

    def handle_data(self, data: str) -> None:
        """Keep text."""
        self.found.append(data)


def _error(status: int, description: str, **more: Any) -> web.Response:
    body = {"ok": False, "error_code": status, "description": description, **more}
    return web.Response(status=status, text=json.dumps(body), content_type="application/json")
