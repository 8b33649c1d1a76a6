"""A gateway in the foreground: what it prints, the signals it handles, and the requests it carries out."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.agent.models.selection import Models
from hermes.agent.safety.environment import hide_own_secrets
from hermes.cli.display.terminal import discard_output, printable, write_stderr, write_stdout
from hermes.cli.errors import FAILED
from hermes.cli.gateway.control_socket import ControlSocket
from hermes.cli.gateway.wording import span
from hermes.cli.store import read_config
from hermes.config import Config, load_variables
from hermes.errors import HermesError, InvalidValue
from hermes.gateway.engine.ports import Adapter
from hermes.gateway.node.connectors import name_of
from hermes.gateway.node.runner import GatewayRunner
from hermes.gateway.upkeep.loop_lag import LoopLag
from hermes.gateway.upkeep.metrics import HOST, CachedFigures, DatabaseFigures, MetricsServer
from hermes.gateway.upkeep.status import live_figures
from hermes.home import get_hermes_home
from hermes.log import make_ready, warn
from hermes.phrases import plural
from hermes.platforms.local.adapter import LocalAdapter
from hermes.platforms.local.descriptors import raise_limit
from hermes.platforms.local.pump import LOCAL
from hermes.platforms.registry import make_adapters
from hermes.state.lanes.figures import read_figures
from hermes.state.transfer.store_address import display_address

if TYPE_CHECKING:
    from hermes.platforms.http.server import HttpServer

REPEAT_S = 60.0
"""A warning of a library appears at most once in this time."""
MOST_WARNINGS = 1000
"""How many warnings of libraries are remembered for that."""
ADAPTER_S = 2.0
"""How long the start waits for adapters before it prints what they do."""
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def run_in_foreground(node: str | None) -> int:
    """Run a gateway until it is stopped, and return the exit code; a restart replaces the process by a new one."""
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # until it can be handled
    config = read_config(as_json=False)
    make_ready()
    logging.getLogger().addHandler(_Warnings())
    hide_own_secrets()
    raise_limit()
    exit_code, wants_restart = asyncio.run(_run(config, get_hermes_home(), node))
    if wants_restart:
        sys.stdout.flush()
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # also in the new program, which starts with it
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - the same command line
    return exit_code


async def _run(config: Config, home: Path, node: str | None) -> tuple[int, bool]:
    foreground = Foreground(config, home, node)
    exit_code = await foreground.run()
    return exit_code, foreground.runner.wants_restart


class Foreground:
    """One gateway process."""

    def __init__(self, config: Config, home: Path, node: str | None) -> None:
        self.runner = GatewayRunner(config, home, node=node, adapters=self._make_adapters, guards_all=True)
        self._lag = LoopLag()
        self._control_socket = ControlSocket(home, self.runner.settings.node, self.control)
        self._metrics: MetricsServer | None = None
        self._http: HttpServer | None = None
        self._local: LocalAdapter | None = None
        self._problems: Mapping[str, str] = {}
        """Why platforms could not be started, by name."""
        self._signals = 0
        self._background: list[asyncio.Task[None]] = []

    async def run(self) -> int:
        """Start, work until a stop is requested, drain and stop; return the exit code."""
        loop, runner = asyncio.get_running_loop(), self.runner
        for each in _STOP_SIGNALS:
            if signal.getsignal(each) is not signal.SIG_IGN:  # nohup and shells let a process ignore some
                loop.add_signal_handler(each, self._on_stop_signal)
        loop.add_signal_handler(signal.SIGUSR1, runner.request_restart)
        try:
            await runner.start()
            await self._start_services()
            for line in await self._describe():
                _print(line)
            await runner.wait()
            self._say_draining()
        except BaseException:
            await self._stop_services()
            await runner.stop()
            raise
        is_clean = await runner.stop()
        await self._stop_services()
        cut = runner.parts.counters.get("turns_cut", 0)
        if is_clean:
            _print("Restarting." if runner.wants_restart else "Stopped.")
            return 0
        what = f"{plural(cut, 'turn')} {'was' if cut == 1 else 'were'}" if cut else "turns were"
        _print(f"Stopped; {what} cut off. The next start, or another node, continues the work.")
        return FAILED

    async def control(self, command: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Carry out an operator's request."""
        runner = self.runner
        match command:
            case "status":
                return self.figures()
            case "drain":
                runner.drain()
            case "undrain":
                runner.undrain()
            case "stop":
                asyncio.get_running_loop().call_soon(
                    runner.expel if request.get("now") is True else runner.request_stop
                )
            case "restart":
                asyncio.get_running_loop().call_soon(runner.request_restart)
            case _:
                raise InvalidValue(f"there is no command {command!r}")
        return {
            "node": runner.settings.node,
            "pid": os.getpid(),
            "is_draining": runner.parts.draining.is_set(),
            "running": len(runner.running_turns()),
            "drain_timeout_s": runner.settings.drain_timeout_s,
        }

    def figures(self) -> dict[str, Any]:
        """Return the figures of this process."""
        figures = live_figures(self.runner, self._lag)
        if self._local is not None and self._local.confirmed:
            sent = figures["deliveries"].get("sent", 0) + self._local.confirmed
            figures["deliveries"] = {**figures["deliveries"], "sent": sent}
        return {
            **figures,
            "socket": None if self._local is None else self._local.status,
            "clients": 0 if self._local is None else self._local.clients,
            "metrics_port": None if self._metrics is None else self._metrics.port,
        }

    # --- services of the process --------------------------------------------------------------------------------------

    def _make_adapters(self, runner: GatewayRunner) -> Sequence[Adapter]:
        self._local = LocalAdapter(runner.home, runner.db.outbox, node=runner.settings.node, control=self.control)
        api = self._make_http(runner)
        made = make_adapters(runner.parts.gateway_config.platforms, runner.home, self._http, runner.doorkeeper.may_talk)
        for name, problem in made.problems.items():
            warn(__name__, "the platform %s was not started: %s", name, problem)
        self._problems = made.problems
        return [self._local, *api, *made.adapters]

    def _make_http(self, runner: GatewayRunner) -> Sequence[Adapter]:
        """Make the HTTP server, if it is enabled, and return its adapter; without it the gateway serves the others."""
        settings = runner.config.api_server
        if not settings.enabled:
            return []
        from hermes.platforms.http import adapter as http  # late: most gateways need no HTTP server

        try:
            self._http, api = http.make(runner, settings)
        except HermesError as error:
            warn(__name__, "the HTTP server was not started: %s", error)
            return []
        http.serve_figures(self._http, settings.keys, self.figures, CachedFigures(self._read_database))
        return [api]

    async def _start_services(self) -> None:
        self._start_task(self._lag.run(), "hermes-loop-lag")
        await self._control_socket.start()
        if self._http is not None:
            try:
                await self._http.start()
            except HermesError as error:
                warn(__name__, "%s", error)
                self._http = None
        port = self.runner.config.gateway.metrics_port
        if port is None:
            return
        server = MetricsServer(port, self.figures, CachedFigures(self._read_database))
        try:
            await server.start()
            self._metrics = server
        except HermesError as error:
            warn(__name__, "%s", error)

    def _start_task(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self._background.append(asyncio.create_task(work, name=name))

    async def _stop_services(self) -> None:
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self._control_socket.stop()
        if self._http is not None:
            await self._http.stop()
        if self._metrics is not None:
            await self._metrics.stop()

    async def _read_database(self) -> DatabaseFigures:
        db = self.runner.db
        return DatabaseFigures(await db.lanes.count(), await asyncio.to_thread(read_figures, db.store))

    # --- what people see ----------------------------------------------------------------------------------------------

    async def _describe(self) -> list[str]:
        """Return what the gateway serves, as lines."""
        runner = self.runner
        await self._wait_for_adapters()
        choice = await asyncio.to_thread(lambda: Models(runner.config, load_variables(runner.home)).choice())
        address = await asyncio.to_thread(display_address, runner.db.store)
        socket = "not started" if self._local is None else self._local.status
        lines = [
            f"Gateway {runner.settings.node} (process {os.getpid()})",
            f"  Store:     {runner.config.sessiondb.provider}, {address}",
            f"  Model:     {choice.describe()}",
            f"  Socket:    {socket}",
            *platform_lines(runner.adapters, runner.connectors.states, self._problems),
        ]
        if self._http is not None:
            lines.append(f"  HTTP:      {self._http.url}")
        if self._metrics is not None:
            lines.append(f"  Metrics:   http://{HOST}:{self._metrics.port}/metrics")
        if runner.resumed:
            lines.append(f"  Resumed:   {plural(runner.resumed, 'lane')} whose turn was cut off")
        lines.append("Talk to it with `hermes gateway talk`. Ctrl-C drains and stops it.")
        return lines

    async def _wait_for_adapters(self) -> None:
        """Wait a moment, so that the first lines can say which adapters are connected."""
        deadline = asyncio.get_running_loop().time() + ADAPTER_S
        while len(self.runner.connectors.states) < len(self.runner.adapters):
            if asyncio.get_running_loop().time() > deadline:
                return
            await asyncio.sleep(0.01)

    def _say_draining(self) -> None:
        number = len(self.runner.running_turns())
        if not number:
            return
        _print(
            f"Draining: {plural(number, 'turn')} {'runs' if number == 1 else 'run'}, at most"
            f" {span(self.runner.settings.drain_timeout_s)}. A second signal stops at once."
        )

    def _on_stop_signal(self) -> None:
        self._signals += 1
        if self._signals == 1:
            self.runner.request_stop()
        elif self._signals == 2:
            write_stderr("Stopping at once.")
            self.runner.expel()
        else:
            os._exit(FAILED)


def platform_lines(adapters: Sequence[Adapter], states: Mapping[str, str], problems: Mapping[str, str]) -> list[str]:
    """Return one line per platform: what it does now, and where users find the bot."""
    lines = [f"{name} was not started: {problem}" for name, problem in problems.items()]
    for adapter in adapters:
        name = name_of(adapter)
        if name == LOCAL:
            continue
        state = states.get(name, "connecting")
        describe = getattr(adapter, "describe", None)  # not every adapter can say who it is
        who = describe() if state == "connected" and describe is not None else ""
        lines.append(f"{name} {state}{f' as {who}' if who else ''}")
    lines = lines or ["none; only the local socket is served"]
    return [f"  {'Platforms:' if place == 0 else '':10} {printable(line)}" for place, line in enumerate(lines)]


def _print(line: str) -> None:
    """Write a line to stdout; a gateway works on if its reader has left."""
    try:
        write_stdout(line)
    except (BrokenPipeError, HermesError):
        discard_output()


class _Warnings(logging.Handler):
    """Writes warnings to stderr too: a gateway has an operator who looks there."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._shown_at: dict[str, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Write the first line of a warning; the log file has all of it."""
        if self._is_repeated(record):
            return
        try:
            write_stderr(f"{record.levelname.capitalize()}: {record.getMessage().partition(chr(10))[0]}")
        except (OSError, TypeError, ValueError):
            return

    def _is_repeated(self, record: logging.LogRecord) -> bool:
        """Whether a library repeats itself: a driver does that every second while the database is unavailable."""
        key = f"{record.name} {record.msg}"
        if record.name.startswith("hermes.") or len(self._shown_at) > MOST_WARNINGS:
            return False
        if record.created < self._shown_at.get(key, 0.0) + REPEAT_S:
            return True
        self._shown_at[key] = record.created
        return False
