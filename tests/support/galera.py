"""Three nodes of a Galera cluster on this machine: MariaDB's server with Debian's package `galera-4`."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pymysql  # type: ignore[import-untyped]

from hermes.state.mysql.connection.address import Address
from tests.support import mysql, packages
from tests.support.servers import KINDS, NoServer, Server, give_to_server
from tests.support.waiting import wait_until

NODES = 3
JOIN_S = 60.0

_PLACES = ("/usr/lib/galera", "/usr/lib64/galera-4", "/usr/lib/galera-4")
_TRANSFER = """#!/bin/sh
# Tells a node that joins the position of the one that it joins; the data is there already.
while [ $# -gt 0 ]; do
  case "$1" in
    --role) role=$2; shift ;;
    --address) address=$2; shift ;;
    --gtid) position=$2; shift ;;
    --datadir) data=$2; shift ;;
  esac
  shift
done
if [ "$role" = joiner ]; then
  rm -f "$data/../position"
  echo "ready $address$data/../position"
  while [ ! -s "$data/../position" ]; do sleep 0.02; done
  cat "$data/../position"
else
  note=/${address#*/}
  echo "$position" > "$note.new" && mv "$note.new" "$note"
  echo "done $position"
fi
"""


class Cluster:
    """Nodes that all accept writes."""

    def __init__(self, place: Path, provider: Path) -> None:
        self._place = place
        self._provider = provider
        self._ports = _free_ports(2 * NODES)
        self.nodes = [self._node(number) for number in range(NODES)]

    def start(self) -> None:
        """Start all nodes, one after the other."""
        first = self.nodes[0]
        first.prepare()
        # A node stopped in order records its position; one that joins with the same data needs only newer changes.
        first.start()
        wait_until(lambda: _has_joined(first.dsn, 1), "the first node to be there", JOIN_S)
        first.stop()
        transfer = self._place / "bin" / "wsrep_sst_hermes"
        transfer.parent.mkdir()
        transfer.write_text(_TRANSFER)
        transfer.chmod(0o755)
        for node in self.nodes[1:]:
            node.prepare()
            shutil.rmtree(node.place / "data")
            shutil.copytree(first.place / "data", node.place / "data", ignore=shutil.ignore_patterns("galera.cache"))
            for path in (node.place / "data", *(node.place / "data").rglob("*")):
                _own_like(path, first.place)
        for size, node in enumerate(self.nodes, start=1):
            node.start()
            wait_until(lambda node=node, size=size: _has_joined(node.dsn, size), "a node to join", JOIN_S)  # type: ignore[misc]

    def stop(self) -> None:
        """Stop all nodes and delete their data."""
        for node in self.nodes:
            with contextlib.suppress(ProcessLookupError, AssertionError):
                os.kill(node.pid, 9)
            node.stop()

    def dsn(self, node: int, database: str = "hermes") -> str:
        """The DSN of a database through one node."""
        return mysql.in_database(self.nodes[node % NODES].dsn, database)

    def _node(self, number: int) -> Server:
        group, incremental = self._ports[2 * number : 2 * number + 2]
        options = {
            "gmcast.listen_addr": f"tcp://127.0.0.1:{group}",
            "ist.recv_addr": f"127.0.0.1:{incremental}",
            "base_port": str(group),
            "gcache.size": "32M",
            "pc.recovery": "0",
        }
        peers = "" if number == 0 else f"127.0.0.1:{self._ports[0]}"
        settings = {
            "binlog-format": "ROW",
            "innodb-autoinc-lock-mode": "2",
            "innodb-buffer-pool-size": "64M",
            "innodb-log-file-size": "16M",
            "wsrep-on": "1",
            "wsrep-provider": str(self._provider),
            "wsrep-cluster-name": "hermes",
            "wsrep-cluster-address": f"gcomm://{peers}",
            "wsrep-node-address": "127.0.0.1",
            "wsrep-sst-method": "hermes",
            "wsrep-slave-threads": "2",
            "wsrep-provider-options": ";".join(f"{name}={value}" for name, value in options.items()),
        }
        place = self._place / str(number)
        place.mkdir()
        path = f"{self._place / 'bin'}:/usr/bin:/bin:/usr/sbin:/sbin"
        return Server(KINDS["mysql"], place, settings, {"PATH": path, "LC_ALL": "C"})


@contextlib.contextmanager
def cluster() -> Iterator[Cluster]:
    """A cluster for some tests; raise `NoServer` if it is not available."""
    try:
        provider = find()
    except OSError as exc:
        raise NoServer(replace(KINDS["mysql"], title="Galera"), str(exc)) from None
    place = Path(tempfile.mkdtemp(prefix="hermes-"))
    give_to_server(place)
    made = Cluster(place, provider)
    try:
        try:
            made.start()
        except NoServer as exc:
            # What is installed must work; only what is missing may be skipped.
            raise AssertionError(f"a node of the cluster does not start: {exc}") from None
        yield made
    finally:
        made.stop()
        shutil.rmtree(place, ignore_errors=True)


def find() -> Path:
    """The Galera library for MariaDB, installed if necessary; raise OSError if it is not available."""
    if KINDS["mysql"].find().resolve().name != "mariadbd":
        raise OSError("Galera needs MariaDB")
    if _installed() is None:
        packages.install("galera-4")
    if (found := _installed()) is None:
        raise OSError("there is no libgalera_smm.so, and Debian's galera-4 cannot be installed")
    return found


def _installed() -> Path | None:
    paths = (Path(place) / "libgalera_smm.so" for place in _PLACES)
    return next((each for each in paths if each.exists()), None)


def _own_like(path: Path, model: Path) -> None:
    owner = model.stat()
    os.chown(path, owner.st_uid, owner.st_gid)


def _has_joined(dsn: str, size: int) -> bool:
    address = Address.of(dsn)
    try:
        with pymysql.connect(user=address.user, unix_socket=address.unix_socket) as connection:
            cursor = connection.cursor()
            cursor.execute("SHOW STATUS WHERE Variable_name IN ('wsrep_ready', 'wsrep_cluster_size')")
            return dict(cursor.fetchall()) == {"wsrep_ready": "ON", "wsrep_cluster_size": str(size)}
    except pymysql.Error:
        return False


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        lines = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [line.getsockname()[1] for line in lines]
