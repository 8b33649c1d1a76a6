"""The figures of a gateway for Prometheus, and a health check, over HTTP on this machine only."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from hermes.errors import ConfigError, HermesError
from hermes.gateway.upkeep.status import age_s, leases_by_node
from hermes.log import warn

if TYPE_CHECKING:
    from hermes.state.lanes.figures import LaneFigures

HOST = "127.0.0.1"
MAX_HEAD_BYTES = 8 * 1024
READ_S = 5.0
MOST_CONNECTIONS = 32
CACHE_S = 5.0
"""How long figures of the database are used again."""
DATABASE_S = 5.0
"""A database that does not respond within this time counts as unavailable."""
MOST_LAG_S = 5.0
"""An event loop that is later than this is not healthy."""
PREFIX = "hermes_gateway_"
TEXT = "text/plain; charset=utf-8"
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"

_HEADERS = "HTTP/1.1 {status} {phrase}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"


@dataclass(frozen=True, slots=True)
class DatabaseFigures:
    """The figures of all nodes; `lanes` is the number of lanes."""

    lanes: int
    queue: LaneFigures


class CachedFigures:
    """Reads the figures of the database at most once in a while, and never waits for it for long."""

    def __init__(self, load: Callable[[], Awaitable[DatabaseFigures]], *, keep_s: float = CACHE_S) -> None:
        self._load = load
        self._keep_s = keep_s
        self._reading: asyncio.Task[DatabaseFigures] | None = None
        self._read_at = float("-inf")
        self._wait_s = DATABASE_S

    async def get(self) -> DatabaseFigures | None:
        """Return the figures, or None if the database cannot be reached."""
        now = time.monotonic()
        if self._reading is None or (self._reading.done() and now - self._read_at >= self._keep_s):
            self._read_at = now
            self._reading = asyncio.ensure_future(self._read())
        with contextlib.suppress(TimeoutError, HermesError):
            async with asyncio.timeout(self._wait_s):
                # The read goes on after the timeout; the next request waits for the same one.
                return await asyncio.shield(self._reading)
        return None

    async def close(self) -> None:
        """Stop waiting for the database."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self) -> DatabaseFigures:
        return await self._load()


class MetricsServer:
    """Serves `/metrics` and `/healthz`."""

    def __init__(self, port: int, live: Callable[[], Mapping[str, Any]], database: CachedFigures) -> None:
        self.port = port
        self._live = live
        self._database = database
        self._server: asyncio.Server | None = None
        self._open = 0

    async def start(self) -> None:
        """Listen; raise `ConfigError` if the port cannot be used."""
        try:
            self._server = await asyncio.start_server(self._serve, HOST, self.port, limit=MAX_HEAD_BYTES)
        except OSError as error:
            raise ConfigError(
                f"the metrics cannot be served on port {self.port}: {error.strerror or error}",
                hint="set gateway.metrics_port to a free port, or remove it",
            ) from error
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()
        await self._database.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._open >= MOST_CONNECTIONS:
            writer.transport.abort()
            return
        self._open += 1
        try:
            status, kind, body, is_head = await self._respond(reader)
            data = body.encode()
            head = _HEADERS.format(status=status.value, phrase=status.phrase, kind=kind, length=len(data))
            writer.write(head.encode("ascii") + (b"" if is_head else data))
            async with asyncio.timeout(READ_S):
                await writer.drain()
        except (OSError, TimeoutError):
            pass  # the client has left
        except Exception as error:  # noqa: BLE001 - a request must not disturb the gateway
            warn(__name__, "a request for the metrics failed: %s: %s", type(error).__name__, error)
        finally:
            self._open -= 1
            writer.close()

    async def _respond(self, reader: asyncio.StreamReader) -> tuple[HTTPStatus, str, str, bool]:
        """Return the status, the type and the text of a response, and whether only its head is wanted."""
        try:
            async with asyncio.timeout(READ_S):
                head = await reader.readuntil(b"\r\n\r\n")
        except TimeoutError:
            return HTTPStatus.REQUEST_TIMEOUT, TEXT, "the request took too long\n", False
        except asyncio.LimitOverrunError:
            return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, TEXT, "the request is too long\n", False
        except asyncio.IncompleteReadError:
            return HTTPStatus.BAD_REQUEST, TEXT, "the request is not complete\n", False
        method, target = _request_line(head)
        is_head = method == "HEAD"
        if method not in ("GET", "HEAD"):
            return HTTPStatus.METHOD_NOT_ALLOWED, TEXT, "only GET and HEAD are supported\n", False
        if target == "/metrics":
            text = format_metrics(self._live(), await self._database.get())
            return HTTPStatus.OK, PROMETHEUS, text, is_head
        if target == "/healthz":
            problem = health_problem(self._live(), await self._database.get())
            status = HTTPStatus.OK if problem is None else HTTPStatus.SERVICE_UNAVAILABLE
            return status, TEXT, f"{problem or 'ok'}\n", is_head
        return HTTPStatus.NOT_FOUND, TEXT, "there are only /metrics and /healthz\n", is_head


def health_problem(live: Mapping[str, Any], database: DatabaseFigures | None) -> str | None:
    """Return why a gateway is not healthy, or None."""
    if database is None:
        return "the database cannot be reached"
    lag_s = float(live["loop_lag"]["recent_s"])
    return f"the event loop is {lag_s:.1f} s late" if lag_s > MOST_LAG_S else None


def format_metrics(live: Mapping[str, Any], database: DatabaseFigures | None) -> str:
    """Return figures in the text format of Prometheus."""
    return "".join([*_process_metrics(live), *_database_metrics(database)])


def _process_metrics(live: Mapping[str, Any]) -> Iterator[str]:
    """Yield the metrics of this process."""
    cache, lag, turns = live["cache"], live["loop_lag"], live["turns"]
    yield _metric("info", "The node and the version.", 1, node=live["node"], version=live["version"])
    yield _metric("uptime_seconds", "How long the process has run.", live["uptime_s"])
    yield _metric("draining", "Whether no more turns are started.", int(live["is_draining"]))
    yield _metric("process_turns", "Turns that run in this process.", turns["running"])
    yield _metric("process_turns_most", "Turns that may run in this process.", turns["most"])
    yield _metric("threads_abandoned", "Threads of stopped turns that still run.", turns["abandoned"])
    yield _metric("cache_entries", "Conversations that are kept between turns.", cache["entries"])
    yield _metric("cache_bytes", "Approximate size of these conversations.", cache["bytes"])
    for name in ("hits", "misses", "evictions"):
        yield _metric(f"cache_{name}_total", f"{name.capitalize()} of the cache.", cache[name], kind="counter")
    rows = [({"quantile": part}, lag[key]) for part, key in (("0.5", "p50_s"), ("0.99", "p99_s"), ("1", "max_s"))]
    yield _family("loop_lag_seconds", "How late the event loop was in the last minute.", rows)
    limits = live["limits"]
    refused = [({"what": what}, limits[f"refused_{what}"]) for what in ("turns", "messages")]
    yield _family("limit_refusals_total", "Turns and messages that a limit refused.", refused, kind="counter")
    events = [({"event": name}, number) for name, number in live["counters"].items()]
    yield _family("events_total", "Events of the engine since the start.", events, kind="counter")
    deliveries = [({"result": name}, number) for name, number in live["deliveries"].items()]
    yield _family("deliveries_total", "Attempts to send messages, by result.", deliveries, kind="counter")
    states = [({"connector": name}, int(state == "connected")) for name, state in live["connectors"].items()]
    yield _family("connector_up", "Whether a platform is connected.", states)


def _database_metrics(database: DatabaseFigures | None) -> Iterator[str]:
    """Yield the metrics of all nodes together, if the database can be reached."""
    yield _metric("database_up", "Whether the database can be reached.", int(database is not None))
    if database is None:
        return
    queue = database.queue
    yield _metric("lanes", "Lanes in the database.", database.lanes)
    yield _metric("waiting_messages", "Messages that wait for a turn.", queue.waiting_messages)
    yield _metric("waiting_lanes", "Lanes in which messages wait.", queue.waiting_lanes)
    oldest = age_s(queue.oldest_waiting_at, queue.now)
    yield _metric("oldest_waiting_seconds", "Age of the oldest waiting message.", oldest or 0)
    yield _metric("running_turns", "Turns that run on all nodes.", queue.running_turns)
    leases = [({"node": name}, lanes) for name, lanes in sorted(leases_by_node(queue.leases).items())]
    yield _family("leases", "Lanes that a node works on.", leases)
    ended = sum(queue.ended_leases.values())
    yield _metric("ended_leases", "Lanes whose node did not renew its lease in time.", ended)
    yield _metric("outbox_pending", "Messages to platforms that are not sent yet.", queue.undelivered)
    oldest = age_s(queue.oldest_undelivered_at, queue.now)
    yield _metric("outbox_oldest_seconds", "Age of the oldest message that is not sent yet.", oldest or 0)
    dead = [({"direction": "in", "state": state}, number) for state, number in sorted(queue.dead_inbox.items())]
    dead += [({"direction": "out", "state": state}, number) for state, number in sorted(queue.dead_outbox.items())]
    yield _family("dead_messages", "Messages that wait for an operator.", dead)


def _metric(name: str, text: str, value: float, *, kind: str = "gauge", **labels: str) -> str:
    return _family(name, text, [(labels, value)], kind=kind)


def _family(name: str, text: str, rows: Sequence[tuple[Mapping[str, str], float]], *, kind: str = "gauge") -> str:
    lines = [f"# HELP {PREFIX}{name} {text}", f"# TYPE {PREFIX}{name} {kind}"]
    for labels, value in rows:
        shown = ",".join(f'{label}="{_escape(text)}"' for label, text in labels.items())
        lines.append(f"{PREFIX}{name}{{{shown}}} {value:.10g}" if shown else f"{PREFIX}{name} {value:.10g}")
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _request_line(head: bytes) -> tuple[str, str]:
    """Return the method and the path of a request."""
    words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
    return (words[0], words[1].partition("?")[0]) if len(words) == 3 else ("", "")
