"""A session store on a server of any kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from hermes.clock import Clock, system_clock
from hermes.config import SessionDBConfig
from hermes.errors import ConfigError, InvalidValue
from hermes.state import loop_guard
from hermes.state.engine import Engine
from hermes.state.provider import SessionDBProvider

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class ServerKind:
    """A kind of server, with its names for settings and messages."""

    name: str
    """Its name in `sessiondb.provider`."""
    title: str
    driver: str
    """The package with its driver."""
    extra: str
    """The extra of this package that installs the driver."""
    pool: str
    """The type of a pool of its connections."""


class ServerProvider(SessionDBProvider, ABC, Generic[P]):
    """A session store on a server: for many processes, on many machines.

    Without a DSN and a pool, `initialize` opens it. The caller closes a pool that it passes in.
    """

    kind: ClassVar[ServerKind]

    def __init__(
        self,
        dsn: str | None = None,
        pool: P | None = None,
        *,
        settings: SessionDBConfig | None = None,
        read_only: bool = False,
        clock: Clock = system_clock,
    ) -> None:
        super().__init__(clock=clock)
        self._settings = SessionDBConfig(provider=self.kind.name) if settings is None else settings
        self._read_only = read_only
        if dsn is not None or pool is not None or self._settings.dsn is not None:
            self.initialize(dsn, pool)

    def _open(self, dsn: str | None, pool: Any) -> Engine:
        if loop_guard.is_on:
            loop_guard.refuse_on_loop("open")
        expected = self._loaded_pool_type()
        if pool is not None and not isinstance(pool, expected):
            raise InvalidValue(f"pool must be a {self.kind.pool}, not {type(pool).__name__}")
        chosen = self._settings.dsn if dsn is None else dsn
        if pool is None and (not isinstance(chosen, str) or not chosen):
            raise InvalidValue(f"dsn must be an address such as {self.kind.name}://user:password@host/database")
        return self._connect(chosen or "", pool)

    def _loaded_pool_type(self) -> type[P]:
        try:
            return self._pool_type()
        except ImportError as exc:
            # An error without a name is the driver's own: a library that it needs is missing.
            if not (exc.name or self.kind.driver).startswith(self.kind.driver):
                raise
            raise ConfigError(
                f"{self.kind.title} needs a package that is not installed:"
                f" pip install 'hermes-sessions[{self.kind.extra}]'"
            ) from None

    @abstractmethod
    def _pool_type(self) -> type[P]:
        """The type of a pool; loads the driver."""

    @abstractmethod
    def _connect(self, dsn: str, pool: P | None) -> Engine:
        """Return an engine over the connections of a pool, or over its own if there is none."""
