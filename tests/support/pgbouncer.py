"""PgBouncer for tests, in front of a PostgreSQL server."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

from tests.support.privileges import unprivileged
from tests.support.waiting import wait_until

PACKAGES = ("pgbouncer", "libevent-2.1-7", "libc-ares2")
"""Debian's packages with the program and its libraries."""
DOWNLOAD_S = 60
CACHE = Path("/var/cache/hermes-tests/pgbouncer")

_SETTINGS = """
[databases]
postgres = host={server} port=5432 dbname=postgres user=postgres
[pgbouncer]
listen_addr =
unix_socket_dir = {place}
listen_port = 5432
auth_type = any
pool_mode = {mode}
default_pool_size = {size}
query_wait_timeout = {wait_s}
max_client_conn = 100
server_reset_query =
"""


class PgBouncer:
    """A pooler that can be stopped and started."""

    def __init__(
        self, server: str, place: Path, *, mode: str = "transaction", size: int = 3, wait_s: int = 120
    ) -> None:
        self.dsn = f"postgresql://postgres@/postgres?host={place}"
        self._place = place
        self._program = find()
        self._process: subprocess.Popen[bytes] | None = None
        settings = _SETTINGS.format(server=server, place=place, mode=mode, size=size, wait_s=wait_s)
        (place / "settings.ini").write_text(settings)
        place.chmod(0o777)

    def start(self) -> None:
        """Start it, and wait until it accepts connections."""
        libraries = ":".join(str(each) for each in CACHE.glob("usr/lib/*-linux-gnu"))
        self._process = subprocess.Popen(
            [str(self._program), "-q", str(self._place / "settings.ini")],
            env={"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": libraries},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **unprivileged(),
        )
        # The socket exists a moment before the pooler listens on it.
        wait_until(self._listens, "PgBouncer to start")

    def _listens(self) -> bool:
        with socket.socket(socket.AF_UNIX) as client:
            return client.connect_ex(str(self._place / ".s.PGSQL.5432")) == 0

    def stop(self) -> None:
        """Kill it, which closes every connection."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        (self._place / ".s.PGSQL.5432").unlink(missing_ok=True)


def find() -> Path:
    """The program, downloaded if necessary; raise OSError if it is not available."""
    installed = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if installed is not None:
        return Path(installed)
    downloaded = CACHE / "usr" / "sbin" / "pgbouncer"
    if not downloaded.exists():
        _download()
    return downloaded


def _download() -> None:
    """Extract the program from Debian's packages without installing them, which would start a service."""
    if os.geteuid() or shutil.which("apt-get") is None:
        raise OSError("PgBouncer is not installed")
    CACHE.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE.parent) as name:
        unpacked = Path(name) / "unpacked"
        try:
            _run(["apt-get", "download", *PACKAGES], name)
            for package in Path(name).glob("*.deb"):
                _run(["dpkg", "-x", str(package), str(unpacked)], name)
        except (subprocess.SubprocessError, OSError) as exc:
            raise OSError(f"PgBouncer is not installed, and cannot be downloaded: {exc}") from None
        unpacked.chmod(0o755)
        shutil.rmtree(CACHE, ignore_errors=True)
        unpacked.rename(CACHE)


def _run(command: list[str], place: str) -> None:
    subprocess.run(command, cwd=place, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=DOWNLOAD_S)
