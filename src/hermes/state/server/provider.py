"""A session store on a server, whatever kind of server it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from hermes.clock import Clock, system_clock
from hermes.config import SessionDBConfig
from hermes.errors import ConfigError, InvalidValue
from hermes.state.engine import Engine
from hermes.state.provider import SessionDBProvider

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class ServerKind:
    """A kind of server, as people are told about it."""

    name: str
    """What `sessiondb.provider` calls it."""
    title: str
    driver: str
    """The package that speaks to it."""
    extra: str
    """What of ours brings that package."""
    pool: str
    """What a pool of its connections is."""


class ServerProvider(SessionDBProvider, ABC, Generic[P]):
    """A session store on a server: for many processes, on many machines.

    Without a DSN and a pool it is opened by `initialize`. A pool that is passed in stays the caller's to close.
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
        """What a pool must be; loads the driver."""

    @abstractmethod
    def _connect(self, dsn: str, pool: P | None) -> Engine:
        """An engine over the connections of a pool, or where there is none, over its own."""
