"""The address of a database: the DSN from the settings, and a form of it without secrets."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hermes.errors import ConfigError
from hermes.state.server.dsn import ESCAPES, are_ports, is_misread, is_on_this_machine

MASK = "***"
SYSTEM_AUTHORITIES = 160_000
"""The version of libpq that knows `sslrootcert=system`."""
_SECRETS = ("password", "sslpassword")
_DEFAULTS = {
    "application_name": "hermes",
    "client_encoding": "utf8",
    # A server that disappears without closing the connection is noticed within a minute.
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}


@dataclass(frozen=True, slots=True)
class Address:
    """A database that can be connected to."""

    conninfo: str = field(repr=False)
    display: str
    """The address without secrets."""
    secrets: tuple[str, ...] = field(repr=False)

    @classmethod
    def of(cls, dsn: str, connect_timeout_s: float, environ: Mapping[str, str] = os.environ) -> Address:
        """Return the address in a DSN: a URL, or `key=value` pairs of libpq."""
        try:
            settings = {name: str(value) for name, value in conninfo_to_dict(dsn).items() if value is not None}
        except psycopg.Error:
            # libpq's error text quotes the DSN, which may contain a password.
            raise _unusable() from None
        if is_misread(dsn) or not _is_plausible(settings):
            raise _unusable()
        secrets = tuple(settings[name] for name in _SECRETS if settings.get(name))
        # libpq allows no shorter timeout than two seconds.
        timeout = {"connect_timeout": str(max(2, round(connect_timeout_s)))}
        chosen = {**_DEFAULTS, **timeout, **_tls_options(settings, environ), **settings}
        return cls(make_conninfo("", **chosen), _display(settings), secrets)

    def mask(self, text: str) -> str:
        """Return a text without the secrets of this address."""
        for secret in self.secrets:
            text = text.replace(secret, MASK)
        return text


def _tls_options(settings: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """The TLS check of a server on another machine if no setting decides it; by default, libpq checks nothing."""
    # A service file may decide it too, but its settings cannot be read here.
    if "service" in settings or "PGSERVICE" in environ or "sslmode" in settings or "PGSSLMODE" in environ:
        return {}
    hosts = settings.get("host") or settings.get("hostaddr") or environ.get("PGHOST") or environ.get("PGHOSTADDR") or ""
    if all(is_on_this_machine(host) for host in hosts.split(",")):
        return {}
    home = Path("~/.postgresql/root.crt").expanduser()
    if "sslrootcert" in settings or "PGSSLROOTCERT" in environ or home.exists():
        return {"sslmode": "verify-full"}
    # A libpq with its own OpenSSL may not know where this machine keeps its trusted authorities.
    known = ssl.get_default_verify_paths().cafile
    if known is None and psycopg.pq.version() < SYSTEM_AUTHORITIES:
        return {"sslmode": "verify-full"}
    return {"sslmode": "verify-full", "sslrootcert": known or "system"}


def _is_plausible(settings: dict[str, str]) -> bool:
    """Whether host, port and database are plausible, and not the rest of a password."""
    # The name of a socket may begin with an @.
    is_host = all("@" not in each[1:] for each in settings.get("host", "").split(",") if not each.startswith("/"))
    return is_host and are_ports(settings.get("port", "")) and "://" not in settings.get("dbname", "")


def _unusable() -> ConfigError:
    # The DSN is not quoted: it may contain a password.
    return ConfigError(
        "sessiondb.dsn is not an address of a PostgreSQL database",
        hint=f"it looks like postgresql://user:password@host:5432/database; {ESCAPES}",
    )


def _display(settings: dict[str, str]) -> str:
    user = f"{settings['user']}@" if "user" in settings else ""
    host = settings.get("host") or settings.get("hostaddr") or "localhost"
    port = f":{settings['port']}" if "port" in settings else ""
    return f"postgresql://{user}{host}{port}/{settings.get('dbname', '')}"
