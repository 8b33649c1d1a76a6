"""The peers, each installed into its own environment and never mixed with ours."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.remarks import without_places

INSTALL_TIMEOUT_S = 900
NOT_INSTALLED = "not installed"


@dataclass(frozen=True, slots=True)
class Peer:
    """A package from the index, the import an application writes, and its terminal command if it has one."""

    name: str
    requirement: str
    import_statement: str
    command: str | None = None


PEERS = (
    Peer("hermes-agent", "hermes-agent==0.19.0", "from hermes_state import SessionDB", "hermes"),
    Peer("openai-agents", "openai-agents==0.10.5", "from agents import SQLiteSession"),
)


@dataclass(frozen=True, slots=True)
class Environment:
    """The environment of a peer, or why it does not exist."""

    peer: Peer
    python: Path | None
    missing: str | None = None

    @property
    def command(self) -> Path | None:
        """The peer's terminal command, if it exists."""
        if self.python is None or self.peer.command is None:
            return None
        command = self.python.parent / self.peer.command
        return command if command.exists() else None


def install(peer: Peer, root: Path, report: Callable[[str], None]) -> Environment:
    """Create the peer's environment under `root` once; later runs find it by its stamp."""
    home = root / "peers" / peer.name
    python = home / "bin" / "python"
    stamp = home / "installed.txt"
    if stamp.exists() and stamp.read_text() == peer.requirement:
        return Environment(peer, python)
    report(f"installing {peer.requirement} (once)")
    shutil.rmtree(home, ignore_errors=True)
    home.parent.mkdir(parents=True, exist_ok=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1"]
    try:
        _run([sys.executable, "-m", "venv", str(home)])
        _run([*pip, peer.requirement])
    except (subprocess.SubprocessError, OSError) as error:
        shutil.rmtree(home, ignore_errors=True)
        return Environment(peer, None, f"{NOT_INSTALLED}: {reason_of(error)}")
    stamp.write_text(peer.requirement)
    return Environment(peer, python)


def reason_of(error: Exception) -> str:
    """The most useful line of a failed installation, without addresses and paths."""
    if isinstance(error, subprocess.TimeoutExpired):
        return "the installation took too long"
    output = error.stderr if isinstance(error, subprocess.CalledProcessError) else str(error)
    lines = [line.strip() for line in str(output).splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith("ERROR:")] or lines or ["no reason was given"]
    return without_places(telling[-1].removeprefix("ERROR:").strip())


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S)
