"""The metrics of a gateway: the text format, and the server against bad clients."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hermes.errors import ConfigError, StoreUnavailable
from hermes.gateway.upkeep import metrics
from hermes.gateway.upkeep.metrics import CachedFigures, DatabaseFigures, MetricsServer, format_metrics, health_problem
from hermes.state.lanes.figures import LaneFigures

LINE = re.compile(r'hermes_gateway_[a-z_]+(\{[a-z_]+="([^"\\\n]|\\.)*"(,[a-z_]+="([^"\\\n]|\\.)*")*\})? [0-9.e+-]+')
LIVE: dict[str, Any] = {
    "node": 'de"sk\n',
    "version": "1.0",
    "uptime_s": 12.5,
    "is_draining": False,
    "turns": {"running": 2, "waiting_for_a_thread": 0, "abandoned": 0, "most": 50},
    "cache": {"entries": 3, "running": 1, "bytes": 4096, "hits": 7, "misses": 2, "evictions": 0},
    "loop_lag": {"samples": 9, "p50_s": 0.0001, "p99_s": 0.002, "max_s": 0.03, "recent_s": 0.03},
    "counters": {"turns_started": 5},
    "deliveries": {"sent": 4},
    "connectors": {"local": "connected", "telegram": "polled by other"},
    "limits": {"refused_turns": 1, "refused_messages": 2},
}
QUEUE = LaneFigures(
    now=1000.0,
    waiting_lanes=2,
    waiting_messages=3,
    oldest_waiting_at=990.0,
    running_turns=4,
    leases={"a/1": 2, "a/2": 1, "b/1": 1},
    ended_leases={"b/1": 2},
    dead_inbox={"parked": 1},
    dead_outbox={"dead": 2, "expired": 1},
    undelivered=6,
    oldest_undelivered_at=None,
)


def figures() -> DatabaseFigures:
    return DatabaseFigures(100, QUEUE)


class TestFormat:
    def test_every_line_is_valid(self) -> None:
        lines = format_metrics(LIVE, figures()).splitlines()
        assert [line for line in lines if not line.startswith("# ") and not LINE.fullmatch(line)] == []
        names = [line.split()[2] for line in lines if line.startswith("# TYPE ")]
        assert len(names) == len(set(names)) > 20

    def test_figures_of_the_database_are_included(self) -> None:
        text = format_metrics(LIVE, figures())
        for line in (
            "hermes_gateway_lanes 100",
            "hermes_gateway_waiting_messages 3",
            "hermes_gateway_oldest_waiting_seconds 10",
            "hermes_gateway_running_turns 4",
            'hermes_gateway_leases{node="a"} 3',
            "hermes_gateway_ended_leases 2",
            'hermes_gateway_dead_messages{direction="out",state="dead"} 2',
            "hermes_gateway_outbox_pending 6",
            'hermes_gateway_limit_refusals_total{what="turns"} 1',
            'hermes_gateway_loop_lag_seconds{quantile="0.99"} 0.002',
            'hermes_gateway_connector_up{connector="telegram"} 0',
            'hermes_gateway_info{node="de\\"sk\\n",version="1.0"} 1',
        ):
            assert f"\n{line}\n" in f"\n{text}", line

    def test_without_a_database_the_process_still_reports(self) -> None:
        text = format_metrics(LIVE, None)
        assert "hermes_gateway_database_up 0\n" in text
        assert "hermes_gateway_process_turns 2\n" in text
        assert "hermes_gateway_waiting_messages" not in text


class TestHealth:
    def test_loop_that_is_late_is_not_healthy(self) -> None:
        late = {**LIVE, "loop_lag": {**LIVE["loop_lag"], "recent_s": 6.0}}
        assert health_problem(LIVE, figures()) is None
        assert health_problem(late, figures()) == "the event loop is 6.0 s late"

    def test_missing_database_is_not_healthy(self) -> None:
        assert health_problem(LIVE, None) == "the database cannot be reached"


class TestCache:
    def test_figures_are_read_once_in_a_while(self) -> None:
        reads = 0

        async def load() -> DatabaseFigures:
            nonlocal reads
            reads += 1
            await asyncio.sleep(0)
            return figures()

        async def run() -> None:
            cached = CachedFigures(load)
            found = await asyncio.gather(*(cached.get() for _ in range(10)))
            assert all(found)
            fresh = CachedFigures(load, keep_s=0.0)
            await fresh.get()
            await fresh.get()

        asyncio.run(run())
        assert reads == 3

    def test_failure_is_no_figures(self) -> None:
        async def load() -> DatabaseFigures:
            raise StoreUnavailable

        assert asyncio.run(CachedFigures(load).get()) is None

    def test_slow_database_is_read_by_one_reader_only(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(metrics, "DATABASE_S", 0.01)
        reads = 0

        async def load() -> DatabaseFigures:
            nonlocal reads
            reads += 1
            await asyncio.Event().wait()
            return figures()

        async def run() -> None:
            cached = CachedFigures(load, keep_s=0.0)
            assert [await cached.get() for _ in range(3)] == [None, None, None]
            await cached.close()

        asyncio.run(run())
        assert reads == 1


@asynccontextmanager
async def serving(database: DatabaseFigures | None = None) -> AsyncIterator[int]:
    """Serve metrics, and yield the port."""

    async def load() -> DatabaseFigures:
        if database is None:
            raise StoreUnavailable
        return database

    server = MetricsServer(0, lambda: LIVE, CachedFigures(load))
    await server.start()
    try:
        yield server.port
    finally:
        await server.stop()


async def exchange(port: int, request: bytes) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    try:
        async with asyncio.timeout(20):
            return (await reader.read()).decode()
    finally:
        writer.close()


class TestServer:
    @pytest.mark.parametrize(
        ("request_line", "status"),
        [
            (b"GET /metrics HTTP/1.1", "200 OK"),
            (b"GET /metrics?format=text HTTP/1.0", "200 OK"),
            (b"GET /healthz HTTP/1.1", "200 OK"),
            (b"GET / HTTP/1.1", "404 Not Found"),
            (b"POST /metrics HTTP/1.1", "405 Method Not Allowed"),
            (b"nonsense", "405 Method Not Allowed"),
            (b"\xff\xfe\x00 / HTTP/1.1", "405 Method Not Allowed"),
        ],
    )
    def test_status_follows_the_request(self, request_line: bytes, status: str) -> None:
        async def run() -> str:
            async with serving(figures()) as port:
                return await exchange(port, request_line + b"\r\nHost: x\r\n\r\n")

        assert asyncio.run(run()).startswith(f"HTTP/1.1 {status}\r\n")

    def test_head_has_no_body(self) -> None:
        async def run() -> str:
            async with serving(figures()) as port:
                return await exchange(port, b"HEAD /metrics HTTP/1.1\r\n\r\n")

        response = asyncio.run(run())
        assert response.endswith("\r\n\r\n")
        assert "Content-Length: 0" not in response

    def test_missing_database_is_503(self) -> None:
        async def run() -> str:
            async with serving() as port:
                return await exchange(port, b"GET /healthz HTTP/1.1\r\n\r\n")

        response = asyncio.run(run())
        assert response.startswith("HTTP/1.1 503 ")
        assert response.endswith("the database cannot be reached\n")

    def test_endless_request_is_refused(self) -> None:
        async def run() -> str:
            async with serving() as port:
                return await exchange(port, b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 12_000)

        assert asyncio.run(run()).startswith("HTTP/1.1 431 ")

    def test_silent_client_is_disconnected(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(metrics, "READ_S", 0.05)

        async def run() -> str:
            async with serving() as port:
                return await exchange(port, b"GET /met")

        assert asyncio.run(run()).startswith("HTTP/1.1 408 ")

    def test_too_many_clients_are_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(metrics, "MOST_CONNECTIONS", 1)

        async def run() -> None:
            async with serving() as port:
                _, silent = await asyncio.open_connection("127.0.0.1", port)
                silent.write(b"GET /")
                await silent.drain()
                with pytest.raises(ConnectionResetError):
                    await exchange(port, b"GET /metrics HTTP/1.1\r\n\r\n")
                silent.close()

        asyncio.run(run())

    def test_port_in_use_is_an_error_that_names_the_setting(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            server = MetricsServer(taken.getsockname()[1], lambda: LIVE, CachedFigures(None))  # type: ignore[arg-type]
            with pytest.raises(ConfigError) as caught:
                asyncio.run(server.start())
        assert "gateway.metrics_port" in caught.value.hint
