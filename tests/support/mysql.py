"""MariaDB (or MySQL) for tests: finding its programs and running a private server."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path

from tests.support import packages
from tests.support.privileges import unprivileged

PACKAGES = ("mariadb-server-core", "mariadb-client-core")
"""Debian's packages with the programs, which start no service."""

_PLACES = ("/usr/sbin", "/usr/local/sbin", "/usr/libexec")
_SETTINGS = {
    "skip-networking": "1",
    "character-set-server": "utf8mb4",
    "max-connections": "200",
    "innodb-buffer-pool-size": "128M",
    "innodb-log-file-size": "64M",
    # The data of most tests need not survive a crash; durability is tested with separate servers.
    "innodb-flush-log-at-trx-commit": "0",
    "innodb-flush-method": "nosync",
    "innodb-doublewrite": "0",
    "innodb-stats-persistent": "0",
    "skip-log-bin": "1",
}


def find() -> Path:
    """The server's program, installed if necessary; raise OSError if it is not available."""
    found = _installed()
    if found is None:
        packages.install(*PACKAGES)
        found = _installed()
    if found is None:
        raise OSError("there is no mariadbd or mysqld, and Debian's mariadb-server-core cannot be installed")
    return found


def prepare(program: Path, place: Path) -> None:
    """Create an empty data directory; raise OSError if that fails."""
    data = f"--datadir={place / 'data'}"
    if _is_mysql(program):
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
    """The command that starts a server on a socket in its own directory."""
    files = {"socket": place / "socket", "pid-file": place / "pid-file", "tmpdir": place}
    chosen = {**_SETTINGS, **{name: str(path) for name, path in files.items()}, **settings}
    if _is_mysql(program):
        chosen = _mysql_names(chosen)
    return [
        *(str(program), "--no-defaults", f"--datadir={place / 'data'}"),
        *(f"--{name}={value}" for name, value in chosen.items()),
    ]


def is_up(program: Path, place: Path) -> bool:
    """Whether the server accepts connections."""
    with socket.socket(socket.AF_UNIX) as line:
        try:
            line.connect(str(place / "socket"))
        except OSError:
            return False
    return True


def dsn(place: Path) -> str:
    """The DSN; the test adds the database."""
    return f"mysql://root@localhost/mysql?unix_socket={place / 'socket'}"


def in_database(dsn: str, name: str) -> str:
    """The same address with another database."""
    before, _, options = dsn.partition("?")
    return f"{before.rpartition('/')[0]}/{name}" + (f"?{options}" if options else "")


def _is_mysql(program: Path) -> bool:
    """Whether it is MySQL's server; with MariaDB that name is a link."""
    return program.resolve().name == "mysqld"


def _mysql_names(settings: dict[str, str]) -> dict[str, str]:
    """The same settings with MySQL's names; features that tests do not need are turned off."""
    shared = {name: value for name, value in settings.items() if name not in ("innodb-log-file-size", "ssl")}
    secrecy = {"tls-version": ""} if settings.get("ssl") == "0" else {}
    return {**shared, **secrecy, "mysqlx": "0", "secure-file-priv": "NULL"}


def _installed() -> Path | None:
    """The server's program, on the path or where packages put it."""
    for places in (None, os.pathsep.join(_PLACES)):
        for name in ("mariadbd", "mysqld"):
            if (found := shutil.which(name, path=places)) is not None:
                return Path(found)
    return None


def _environment(place: Path) -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(place), "TMPDIR": str(place), "LC_ALL": "C"}
