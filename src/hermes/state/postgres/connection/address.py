"""Where a database is: the DSN that somebody gave, and what of it may be shown."""

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
    # A server that is gone without a word is noticed within a minute.
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}


@dataclass(frozen=True, slots=True)
class Address:
    """A database that can be connected to."""

    conninfo: str = field(repr=False)
    shown: str
    """Without secrets."""
    secrets: tuple[str, ...] = field(repr=False)

    @classmethod
    def of(cls, dsn: str, connect_timeout_s: float, environ: Mapping[str, str] = os.environ) -> Address:
        """The address in a DSN: a URL, or `key=value` pairs as libpq knows them."""
        try:
            given = {name: str(value) for name, value in conninfo_to_dict(dsn).items() if value is not None}
        except psycopg.Error:
            # What libpq says about it quotes it, and with it perhaps the password.
            raise _unusable() from None
        if is_misread(dsn) or not _is_plausible(given):
            raise _unusable()
        secrets = tuple(given[name] for name in _SECRETS if given.get(name))
        # The shortest that libpq knows is two seconds.
        timeout = {"connect_timeout": str(max(2, round(connect_timeout_s)))}
        chosen = {**_DEFAULTS, **timeout, **_tls_options(given, environ), **given}
        return cls(make_conninfo("", **chosen), _shown(given), secrets)

    def mask(self, text: str) -> str:
        """A text without the secrets of this address."""
        for secret in self.secrets:
            text = text.replace(secret, MASK)
        return text


def _tls_options(given: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """How to check a server on another machine where nothing is said about it; by itself, libpq checks nothing."""
    # What a service says would be overruled, and cannot be seen here.
    if "service" in given or "PGSERVICE" in environ or "sslmode" in given or "PGSSLMODE" in environ:
        return {}
    hosts = given.get("host") or given.get("hostaddr") or environ.get("PGHOST") or environ.get("PGHOSTADDR") or ""
    if all(is_on_this_machine(host) for host in hosts.split(",")):
        return {}
    home = Path("~/.postgresql/root.crt").expanduser()
    if "sslrootcert" in given or "PGSSLROOTCERT" in environ or home.exists():
        return {"sslmode": "verify-full"}
    # A libpq that brings its own OpenSSL may not know where this machine keeps the authorities that it trusts.
    known = ssl.get_default_verify_paths().cafile
    if known is None and psycopg.pq.version() < SYSTEM_AUTHORITIES:
        return {"sslmode": "verify-full"}
    return {"sslmode": "verify-full", "sslrootcert": known or "system"}


def _is_plausible(given: dict[str, str]) -> bool:
    """Whether host, port and database can be what they say, and not the rest of a password."""
    # The name of a socket may begin with an @.
    is_host = all("@" not in each[1:] for each in given.get("host", "").split(",") if not each.startswith("/"))
    return is_host and are_ports(given.get("port", "")) and "://" not in given.get("dbname", "")


def _unusable() -> ConfigError:
    # What was given is not quoted: there may be a password in it.
    return ConfigError(
        "sessiondb.dsn is not an address of a PostgreSQL database",
        hint=f"it looks like postgresql://user:password@host:5432/database; {ESCAPES}",
    )


def _shown(given: dict[str, str]) -> str:
    user = f"{given['user']}@" if "user" in given else ""
    host = given.get("host") or given.get("hostaddr") or "localhost"
    port = f":{given['port']}" if "port" in given else ""
    return f"postgresql://{user}{host}{port}/{given.get('dbname', '')}"
