"""The connections of a process to one database: as many as are needed at once, up to a limit."""

from __future__ import annotations

import os
import socket
import ssl
import threading
import time

import pymysql  # type: ignore[import-untyped]

from hermes.config import SessionDBConfig
from hermes.errors import ConfigError, HermesError, StoreBusy, StoreClosed, StoreUnavailable
from hermes.state.mysql import errors
from hermes.state.mysql.connection.address import Address
from hermes.state.mysql.connection.server_info import SMALLEST_PACKET, Server
from hermes.state.mysql.connection.statements import CLIENT_ERRORS, FLAGS, DriverConnection
from hermes.state.mysql.connection.tls import is_checked_by_default, tls_options
from hermes.state.server.faults import ConnectFailed, Fault, ServerError, Verdict

IDLE_S = 1.0
"""A connection that was not used for this long is checked before it is lent again."""
SHORTEST_WAIT_S = 0.05
SILENCE_S = 60.0
"""The least time that the server may send nothing before the connection is given up."""
SETTINGS = SessionDBConfig(provider="mysql")
NO_TRUST = (
    "a server on another machine must show a certificate that names its host; name the authority that signed it with"
    " ssl_ca in sessiondb.dsn, or turn the check off with ssl_verify_cert=false, and encryption with ssl_disabled=true"
)
NO_TLS = 2_026
"""The number of the driver's error for a server that cannot encrypt."""

_inherited: list[DriverConnection] = []
"""Connections of the parent process: after a fork, not even closing them is safe."""


class Pool:
    """Lends connections, each to one thread at a time; several stores may share one pool."""

    def __init__(self, dsn: str, settings: SessionDBConfig = SETTINGS) -> None:
        self._address = Address.of(dsn, settings.schema)
        self._settings = settings
        self._server: Server | None = None
        self._is_closed = False
        self._idle: list[DriverConnection] = []
        self._start_over()

    @property
    def where(self) -> str:
        """The address of the database, without secrets."""
        return self._address.display

    @property
    def max_size(self) -> int:
        """The most connections at once."""
        return self._settings.pool_max_size

    @property
    def server(self) -> Server:
        """The server, according to its greeting on the newest connection."""
        if self._server is None:
            self.release(self.acquire(self._settings.pool_timeout_s))
        assert self._server is not None
        return self._server

    def acquire(self, timeout_s: float) -> DriverConnection:
        """Return a connection that no other thread uses."""
        if self._process != os.getpid():
            _inherited.extend(self._idle)
            self._start_over()
        connection = self._reserve(
            time.monotonic() + max(SHORTEST_WAIT_S, min(timeout_s, self._settings.pool_timeout_s))
        )
        try:
            while (
                connection is not None and time.monotonic() - connection.used_at > IDLE_S and not connection.is_alive()
            ):
                connection.close()
                connection = self._pop_idle()
            return connection or self._connect(self._silence_s)
        except BaseException:
            self._free_slot()
            raise

    def release(self, connection: DriverConnection) -> None:
        """Take a connection back; one that is not sound is closed."""
        if self._process != os.getpid():
            _inherited.append(connection)
            return
        is_kept = connection.is_sound and not connection.is_in_transaction and not self._is_closed
        if is_kept:
            connection.used_at = time.monotonic()
        else:
            connection.close()
        self._free_slot(connection if is_kept else None)

    def connect(self) -> DriverConnection:
        """Open a connection outside of the pool, for work of unknown length; the caller closes it."""
        return self._connect(None)

    def stats(self) -> dict[str, int]:
        """How many connections exist, are free, and are waited for."""
        with self._changed:
            return {"connections": self._lent + len(self._idle), "free": len(self._idle), "waiting": self._waiting}

    def close(self) -> None:
        """Close every connection; those in use are closed when they are released."""
        self._is_closed = True
        if self._process != os.getpid():
            return
        with self._changed:
            idle, self._idle = self._idle, []
            self._changed.notify_all()
        for connection in idle:
            connection.close()

    def _start_over(self) -> None:
        self._process = os.getpid()
        self._changed = threading.Condition()
        self._idle = []
        self._lent = self._waiting = 0

    @property
    def _silence_s(self) -> float:
        return max(SILENCE_S, 2 * self._settings.write_timeout_s)

    def _reserve(self, deadline: float) -> DriverConnection | None:
        """Wait for a free slot; return an idle connection, or None if one must be opened."""
        with self._changed:
            self._waiting += 1
            try:
                while not self._is_closed and self._lent >= self.max_size:
                    if not self._changed.wait(deadline - time.monotonic()):
                        raise self._all_in_use()
                if self._is_closed:
                    raise StoreClosed
                self._lent += 1
                # The one that was used last, because it is the most likely to be alive.
                return self._idle.pop() if self._idle else None
            finally:
                self._waiting -= 1

    def _pop_idle(self) -> DriverConnection | None:
        with self._changed:
            return self._idle.pop() if self._idle else None

    def _free_slot(self, connection: DriverConnection | None = None) -> None:
        with self._changed:
            self._lent -= 1
            if connection is not None:
                self._idle.append(connection)
            self._changed.notify()

    def _all_in_use(self) -> HermesError:
        return StoreBusy(
            f"all {self.max_size} connections to {self.where} are in use",
            hint="try again, or raise sessiondb.pool_max_size",
        )

    def _connect(self, silence_s: float | None) -> DriverConnection:
        address = self._address
        try:
            driver = pymysql.connect(
                host=address.host,
                port=address.port,
                unix_socket=address.unix_socket,
                user=address.user,
                password=address.password,
                database=address.database,
                charset="utf8mb4",
                autocommit=True,
                client_flag=FLAGS,
                connect_timeout=max(1, round(self._settings.connect_timeout_s)),
                read_timeout=self._settings.connect_timeout_s,
                write_timeout=silence_s,
                program_name="hermes",
                defer_connect=True,
                **self._tls_options(),
            )
            self._dial(driver)
            # A server that accepts connections but never responds is given up sooner than one that is working.
            driver._read_timeout = silence_s
        except pymysql.Error as exc:
            raise self._connect_error(exc) from None
        except RuntimeError:
            # The driver does not install the package that it needs for this.
            raise ConfigError(
                f"{self.where} requires an encrypted password without TLS, and the package for that is not installed:"
                " pip install 'hermes-sessions[mysql]'",
                hint="or use TLS or a unix_socket in sessiondb.dsn",
            ) from None
        except (OSError, ValueError) as exc:
            raise StoreUnavailable(
                f"{self.where} cannot be reached: {address.mask(str(exc))}", hint="check sessiondb.dsn"
            ) from None
        try:
            return self._prepare(driver)
        except BaseException:
            driver._force_close()
            raise

    def _prepare(self, driver: pymysql.Connection) -> DriverConnection:
        server = self._server = Server.of(driver.get_server_info(), self.where)
        connection = DriverConnection(driver, server.setup_statements(self._settings.write_timeout_s))
        if connection.most_bytes < SMALLEST_PACKET - SMALLEST_PACKET // 16:
            raise StoreUnavailable(
                f"{self.where} accepts packets of only {connection.most_bytes} bytes",
                hint="raise max_allowed_packet of the server to 4 MB or more",
            )
        return connection

    def _dial(self, driver: pymysql.Connection) -> None:
        if not self._address.unix_socket:
            driver.connect()
            return
        # The driver does not close a socket that cannot be connected.
        line = socket.socket(socket.AF_UNIX)
        try:
            line.settimeout(self._settings.connect_timeout_s)
            line.connect(self._address.unix_socket)
        except OSError as exc:
            line.close()
            raise ConnectFailed(f"{exc.strerror or exc}: {self._address.unix_socket}", _connect_hint(exc)) from None
        driver._secure = True
        driver.connect(line)

    def _tls_options(self) -> dict[str, ssl.SSLContext | bool]:
        """The TLS arguments; a socket of this machine needs no encryption."""
        options = self._address.options
        if self._address.unix_socket:
            return tls_options(options, "") if options else {"ssl_disabled": True}
        return tls_options(options, self._address.host)

    def _connect_error(self, exc: pymysql.Error) -> Exception:
        """Return the error for a connection that could not be opened."""
        number = exc.args[0] if exc.args and isinstance(exc.args[0], int) else 0
        reason = self._address.mask(str(exc.args[1] if len(exc.args) > 1 else exc))
        if (hint := _tls_hint(exc, number)) is not None:
            if is_checked_by_default(self._address.options, self._address.host):
                hint = NO_TRUST
            return StoreUnavailable(f"{self.where} cannot be reached: {reason}", hint=hint)
        if number == 0 or number in CLIENT_ERRORS or str(number) in errors.GONE:
            return ConnectFailed(reason, _connect_hint(getattr(exc, "original_exception", None)))
        fault: Fault = ServerError(str(number), reason)
        return errors.translate(fault, self.where) if errors.verdict(fault) is Verdict.NEVER else fault


def _connect_hint(cause: object) -> str:
    """The hint for a server that cannot be connected to."""
    if isinstance(cause, socket.gaierror):
        return "check the host in sessiondb.dsn"
    if isinstance(cause, ConnectionRefusedError | FileNotFoundError):
        return "check that the server is up, and the host, port or unix_socket in sessiondb.dsn"
    return "check that the server is up and can be reached from here, and the address in sessiondb.dsn"


def _tls_hint(exc: pymysql.Error, number: int) -> str | None:
    """The hint for a server that is reachable, but not with TLS; a retry would fail too."""
    if number == NO_TLS:
        return "turn TLS on at the server, or remove the ssl_ options from sessiondb.dsn"
    cause = getattr(exc, "original_exception", None)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return "check ssl_ca in sessiondb.dsn, and that the server's certificate names the host"
    return None
