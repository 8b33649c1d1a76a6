"""Where a database is: the DSN that somebody gave, and what of it may be shown."""

from __future__ import annotations

from dataclasses import dataclass, field

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hermes.errors import ConfigError

MASK = "***"
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
    def of(cls, dsn: str, connect_timeout_s: float) -> Address:
        """The address in a DSN: a URL, or `key=value` pairs as libpq knows them."""
        try:
            given = {name: str(value) for name, value in conninfo_to_dict(dsn).items() if value is not None}
        except psycopg.Error:
            # What libpq says about it quotes it, and with it perhaps the password.
            raise ConfigError(
                "sessiondb.dsn is not an address of a PostgreSQL database",
                hint="it looks like postgresql://user:password@host:5432/database",
            ) from None
        secrets = tuple(given[name] for name in _SECRETS if given.get(name))
        # The shortest that libpq knows is two seconds.
        timeout = {"connect_timeout": str(max(2, round(connect_timeout_s)))}
        return cls(make_conninfo("", **{**_DEFAULTS, **timeout, **given}), _shown(given), secrets)

    def mask(self, text: str) -> str:
        """A text without the secrets of this address."""
        for secret in self.secrets:
            text = text.replace(secret, MASK)
        return text


def _shown(given: dict[str, str]) -> str:
    user = f"{given['user']}@" if "user" in given else ""
    host = given.get("host") or given.get("hostaddr") or "localhost"
    port = f":{given['port']}" if "port" in given else ""
    return f"postgresql://{user}{host}{port}/{given.get('dbname', '')}"
