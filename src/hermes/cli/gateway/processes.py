"""The gateway processes of this home: which ones run, and requests to them."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes.cli.gateway.control_socket import request_control
from hermes.errors import HermesError, NotFound
from hermes.gateway.node.node_lock import running_gateways

LOOK_S = 0.05


@dataclass(frozen=True, slots=True)
class GatewayProcess:
    """A gateway that runs with this home."""

    home: Path
    node: str
    pid: int
    holder: str

    @property
    def name(self) -> str:
        """The node and the process, for people."""
        return f"{self.node} (process {self.pid})"

    def request(self, command: str, **fields: Any) -> dict[str, Any] | None:
        """Send a request and return its result; None if the process cannot be reached. Raise what it refuses."""
        try:
            result = asyncio.run(request_control(self.home, self.node, command, **fields))
        except (OSError, TimeoutError, ValueError):
            return None
        if "error" in result:
            raise HermesError(str(result["error"].get("message")))
        return result

    def signal(self, number: int) -> bool:
        """Send a signal; False if the process has ended."""
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        except PermissionError as error:
            raise HermesError(f"the gateway {self.name} belongs to another user of this machine") from error
        return True

    @property
    def is_alive(self) -> bool:
        """Whether the process runs; one that has ended and whose parent has not noticed does not."""
        if not self.signal(0):
            return False
        try:
            status = Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:  # not Linux, or it has just ended
            return self.signal(0)
        return status.rpartition(")")[2].split()[0] != "Z"


def find_processes(home: Path, node: str | None = None) -> list[GatewayProcess]:
    """Return the gateways that run with a home, or the one with this name."""
    found = [
        GatewayProcess(home, str(each.get("node")), int(each.get("pid") or 0), str(each.get("holder")))
        for each in running_gateways(home)
    ]
    return [each for each in found if each.pid > 0 and node in (None, each.node)]


def require_processes(home: Path, node: str | None = None) -> list[GatewayProcess]:
    """Return the gateways that run with a home; raise `NotFound` if there is none."""
    found = find_processes(home, node)
    if not found:
        what = "no gateway runs" if node is None else f"no gateway named {node!r} runs"
        raise NotFound(f"{what} with the home {home}", hint="start one with `hermes gateway run`")
    return found


def wait_for_end(process: GatewayProcess, limit_s: float) -> bool:
    """Wait until a process has given its lock back; return False after the time."""
    deadline = time.monotonic() + limit_s
    while any(each.holder == process.holder for each in find_processes(process.home, process.node)):
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_S)
    return True


def wait_for_next(process: GatewayProcess, limit_s: float) -> GatewayProcess | None:
    """Wait until another process of the same node serves; None after the time, or if the old process ends."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        for each in find_processes(process.home, process.node):
            if each.holder != process.holder and each.request("status") is not None:
                return each
        if not process.is_alive:
            return None
        time.sleep(LOOK_S)
    return None
