"""A network of one process: the system's own resolver asks a name server of the test, and public addresses are here.

`run_in_private_network` starts this module in new namespaces. They have no interface except loopback, so nothing leaves
the machine, although the guard and the connections are exactly those of the product: nothing is replaced.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from hermes.errors import HermesError
from hermes.web.fetch import Fetcher
from tests.support.name_server import Answer, NameServer
from tests.web.servers import PUBLIC, Server, respond

SEARCHED = "office.example.net"
"""The domain in which the system looks for names that do not exist."""
LIMIT_S = 8.0

_UP = struct.Struct("16sH14s")
_ADDRESS = struct.Struct("16sHH4s8s")
_SET_FLAGS, _SET_ADDRESS, _SET_MASK = 0x8914, 0x8916, 0x891C
_IS_UP = 0x1 | 0x8 | 0x40


@dataclass(frozen=True)
class Scenario:
    """What the name server answers for `example.com` and other names, and what the public server sends."""

    script: dict[str, list[Answer]]
    """By type and name, such as `A example.com`."""
    replies: list[str] = field(default_factory=list)
    """The targets of redirects before the page."""


@dataclass(frozen=True)
class Outcome:
    """What came of reading http://example.com/."""

    error: str
    """The kind of the error; empty if the page was read."""
    message: str
    text: str
    asked: list[list[str]]
    public: int
    """The connections to the public server."""
    private: int
    """The connections to the server on loopback, which has a secret."""


def run_in_private_network(scenarios: dict[str, Scenario]) -> dict[str, Outcome]:
    """Run the scenarios in a child process, and return what came of each."""
    given = json.dumps({name: asdict(each) for name, each in scenarios.items()})
    done = subprocess.run(
        ["unshare", "--map-root-user", "--mount", "--net", sys.executable, "-m", "tests.web.private_network"],
        input=given,
        capture_output=True,
        text=True,
        timeout=100,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    return {name: Outcome(**each) for name, each in json.loads(done.stdout).items()}


def _make_network(directory: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SET_FLAGS, _UP.pack(b"lo", _IS_UP, b""))
        for request, address in ((_SET_ADDRESS, PUBLIC), (_SET_MASK, "255.255.255.255")):
            packed = _ADDRESS.pack(b"lo:1", socket.AF_INET, 0, socket.inet_aton(address), b"")
            fcntl.ioctl(control, request, packed)
    for place, text in {
        "/etc/resolv.conf": f"nameserver 127.0.0.1\nsearch {SEARCHED}\noptions timeout:1 attempts:1\n",
        "/etc/nsswitch.conf": "hosts: files dns\n",
    }.items():
        copy = Path(directory, Path(place).name)
        copy.write_text(text)
        subprocess.run(["mount", "--bind", str(copy), place], check=True)


def _run(scenario: Scenario) -> Outcome:
    script = {(name, kind): answers for key, answers in scenario.script.items() for kind, name in [key.split()]}
    error = message = text = ""
    pages = [*(respond("moved", 302, Location=each) for each in scenario.replies), respond("a public page")]
    with (
        NameServer(script, port=53) as names,
        Server(*pages, address=(PUBLIC, 80)) as public,
        Server(respond("TOP SECRET"), address=("127.0.0.1", 80)) as private,
    ):
        try:
            text = Fetcher().fetch_text("http://example.com/", timeout_s=LIMIT_S).text
        except HermesError as raised:
            error, message = type(raised).__name__, raised.message
    return Outcome(error, message, text, [list(each) for each in names.asked], public.connections, private.connections)


def _scenario(given: dict[str, object]) -> Scenario:
    script: dict[str, list[dict[str, object]]] = given["script"]  # type: ignore[assignment]
    replies: Sequence[str] = given["replies"]  # type: ignore[assignment]
    return Scenario(
        {key: [Answer(**each) for each in answers] for key, answers in script.items()},  # type: ignore[arg-type]
        list(replies),
    )


def _main() -> None:
    scenarios = {name: _scenario(each) for name, each in json.load(sys.stdin).items()}
    with tempfile.TemporaryDirectory() as directory:
        _make_network(directory)
        outcomes = {name: asdict(_run(each)) for name, each in scenarios.items()}
        subprocess.run(["umount", "/etc/resolv.conf", "/etc/nsswitch.conf"], check=True)
    json.dump(outcomes, sys.stdout)


if __name__ == "__main__":
    _main()
