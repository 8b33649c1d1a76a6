"""Timelines: a server that takes over begins the next one, so a server on an earlier timeline has been replaced.

A primary that was cut off or frozen while another server took over may come back and accept writes that the others
never see. A process that has seen the later timeline does not use it any more. This is checked only if a DSN has
several hosts, because only then is there a choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hermes.state.postgres.connection.pipeline import BoundStatement, DriverConnection, statement_text
from hermes.state.server.faults import Fault, ServerError

REPLACED = "it has been replaced by a server that took over"

ANSWER_S = 5.0
"""How long a server may take to return its timeline."""

_TIMELINE = BoundStatement(
    statement_text(
        "SELECT CASE WHEN NOT pg_is_in_recovery() THEN substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END"
    )
)
_LISTS = ("host", "hostaddr", "port")
"""The settings with a value for each of several hosts."""


class Timelines:
    """The latest timeline of one database that this process has seen."""

    def __init__(self) -> None:
        self._latest = 0

    def admits(self, timeline: int) -> bool:
        """Whether no later timeline has been seen; 0 means that the server does not say."""
        self._latest = max(self._latest, timeline)
        return timeline == 0 or timeline == self._latest


class CheckedConnection(psycopg.Connection[Any]):
    """A connection to a server that, as far as this process knows, was not replaced."""

    timeline = 0
    """The timeline of the server when it was connected to; 0 if unknown."""

    @classmethod
    def connect(cls, conninfo: str = "", *, timelines: Timelines, **settings: Any) -> CheckedConnection:  # type: ignore[override]
        """Connect to the first host that was not replaced; the driver does not check that."""
        choices = list(_rotations(conninfo))
        for each in choices:
            connection = super().connect(each, **settings)
            assert isinstance(connection, cls)
            connection.timeline = timeline_of(connection) if len(choices) > 1 else 0
            if timelines.admits(connection.timeline):
                return connection
            connection.close()
        raise psycopg.OperationalError(f"the server is on an earlier timeline than before: {REPLACED}")


def timeline_of(connection: psycopg.Connection[Any]) -> int:
    """The timeline that a server writes to; 0 if it is read-only, or does not say."""
    driver = DriverConnection(connection)
    driver.enter_pipeline()
    try:
        ((timeline,),) = driver.rows(driver.execute([_TIMELINE], ANSWER_S)[-1])
    except ServerError:
        # Servers that are only compatible with PostgreSQL do not have these functions.
        timeline = None
    except Fault as fault:
        connection.close()
        raise psycopg.OperationalError(f"connection is bad: {fault}") from None
    driver.leave_pipeline()
    return 0 if timeline is None else int(timeline, 16)


def _rotations(conninfo: str) -> Iterator[str]:
    """The same address, starting with each of its hosts in turn."""
    settings = conninfo_to_dict(conninfo)
    lists = {name: str(settings[name]).split(",") for name in _LISTS if settings.get(name)}
    count = max((len(values) for values in lists.values()), default=1)
    for first in range(count):
        turned = {
            name: ",".join(values if len(values) == 1 else [*values[first:], *values[:first]])
            for name, values in lists.items()
        }
        yield make_conninfo("", **{**settings, **turned})
