"""MariaDB (or MySQL) for tests: where its programs are, and how a private server is run."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path

from tests.support import packages
from tests.support.privileges import unprivileged

PACKAGES = ("mariadb-server-core", "mariadb-client-core")
"""Debian's packages that bring the programs and start nothing."""

_PLACES = ("/usr/sbin", "/usr/local/sbin", "/usr/libexec")
_SETTINGS = {
    "skip-networking": "1",
    "character-set-server": "utf8mb4",
    "max-connections": "200",
    "innodb-buffer-pool-size": "128M",
    "innodb-log-file-size": "64M",
    # A test's data need not survive anything; what must is tested with servers of their own.
    "innodb-flush-log-at-trx-commit": "0",
    "innodb-flush-method": "nosync",
    "innodb-doublewrite": "0",
    "innodb-stats-persistent": "0",
    "skip-log-bin": "1",
}


def find() -> Path:
    """The server's program, installed if need be; raises OSError if it cannot be had."""
    found = _installed()
    if found is None:
        packages.install(*PACKAGES)
        found = _installed()
    if found is None:
        raise OSError("there is no mariadbd or mysqld, and Debian's mariadb-server-core cannot be installed")
    return found


def prepare(program: Path, place: Path) -> None:
    """Make an empty data directory; raises OSError if that fails."""
    data = f"--datadir={place / 'data'}"
    if program.name == "mysqld":
        command = [str(program), "--no-defaults", data, "--initialize-insecure"]
    else:
        installer = shutil.which("mariadb-install-db") or "mariadb-install-db"
        command = [
            *(installer, "--no-defaults", data, "--auth-root-authentication-method=normal"),
            *("--skip-test-db", "--skip-name-resolve"),
        ]
    done = subprocess.run(
        command,
        cwd=place,
        env=_environment(place),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        **unprivileged(),
    )
    if done.returncode:
        raise OSError(f"the data directory cannot be made: {(done.stdout + done.stderr)[-500:]}")
    (place / "socket").unlink(missing_ok=True)


def command(program: Path, place: Path, settings: dict[str, str]) -> list[str]:
    """What starts a server on a socket in its own directory."""
    chosen = {**_SETTINGS, "socket": str(place / "socket"), "pid-file": str(place / "pid-file"), **settings}
    if program.name == "mysqld":
        chosen = {name: value for name, value in chosen.items() if value != "nosync"} | {"mysqlx": "0"}
    return [
        *(str(program), "--no-defaults", f"--datadir={place / 'data'}"),
        *(f"--{name}={value}" for name, value in chosen.items()),
    ]


def is_up(program: Path, place: Path) -> bool:
    """Whether it takes connections."""
    with socket.socket(socket.AF_UNIX) as line:
        try:
            line.connect(str(place / "socket"))
        except OSError:
            return False
    return True


def dsn(place: Path) -> str:
    """How to connect to it; which database, the test adds."""
    return f"mysql://root@localhost/mysql?unix_socket={place / 'socket'}"


def in_database(dsn: str, name: str) -> str:
    """The same address with another database."""
    before, _, options = dsn.partition("?")
    return f"{before.rpartition('/')[0]}/{name}" + (f"?{options}" if options else "")


def _installed() -> Path | None:
    """The server's program, on the path or where packages put it."""
    for name in ("mariadbd", "mysqld"):
        found = shutil.which(name) or shutil.which(name, path=os.pathsep.join(_PLACES))
        if found:
            return Path(found)
    return None


def _environment(place: Path) -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(place), "LC_ALL": "C"}
