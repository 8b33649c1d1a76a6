"""One process per node and home: a lock file that names the process and its leases."""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from pathlib import Path

from hermes.errors import Conflict

_HOLDER = re.compile(r"[A-Za-z0-9._-]{1,60}/[0-9a-f]{8}")
_TRIES, _PAUSE_S = 4, 0.05


class NodeLock:
    """The lock of a node; `previous` is the holder of leases that the last process of this node left behind."""

    def __init__(self, home: Path, node: str, holder: str) -> None:
        self.path = home / f"gateway-{node}.lock"
        self.previous: str | None = None
        self._node = node
        self._holder = holder
        self._file: int | None = None

    def acquire(self) -> None:
        """Take the lock; raise `Conflict` while another process has it, or if the path is no file."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise Conflict(
                f"the lock file {self.path} cannot be used: {error.strerror}", hint="remove it if it is a link"
            ) from None
        try:
            self._take(file)
        except BaseException:
            os.close(file)
            raise
        self._file = file

    def _take(self, file: int) -> None:
        for is_last in (*[False] * _TRIES, True):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if is_last:
                    raise self._conflict(file) from None
                time.sleep(_PAUSE_S)  # `running_gateways` takes the lock for a moment
        found = _read(file)
        holder = found.get("before", found.get("holder"))
        # Only a holder with this node's name: leases of other nodes are not its own.
        is_own = isinstance(holder, str) and _HOLDER.fullmatch(holder) and holder.startswith(f"{self._node}/")
        self.previous = holder if is_own else None
        self._write(file, {} if self.previous is None else {"before": self.previous})

    def forget_previous(self) -> None:
        """Note that the leases of the last process have ended; a start that fails before leaves that to the next."""
        if self._file is not None:
            self._write(self._file, {})

    def _write(self, file: int, more: dict[str, str]) -> None:
        os.ftruncate(file, 0)
        data = {"pid": os.getpid(), "node": self._node, "holder": self._holder, **more}
        os.pwrite(file, json.dumps(data).encode(), 0)

    def _conflict(self, file: int) -> Conflict:
        pid = _read(file).get("pid", "unknown")
        return Conflict(
            f"a gateway named {self._node!r} is running with this home already (process {pid})",
            hint="stop it with `hermes gateway stop`, or start this one with another name: --node NAME",
        )

    def release(self) -> None:
        """Give the lock back; a second call does nothing."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def running_gateways(home: Path) -> list[dict[str, str]]:
    """Return the gateways that run with this home: their node, process and holder."""
    found = []
    for path in sorted(home.glob("gateway-*.lock")):
        try:
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            found.append(_read(file))
        finally:
            os.close(file)
    return [each for each in found if each]


def _read(file: int) -> dict[str, str]:
    try:
        data = json.loads(os.pread(file, 4096, 0) or b"{}")
    except (ValueError, RecursionError, OSError):
        return {}
    return data if isinstance(data, dict) else {}
