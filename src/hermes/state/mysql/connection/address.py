"""The address of a database: the DSN from the settings, and a form of it without secrets."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit

from hermes.errors import ConfigError
from hermes.state.server.dsn import ESCAPES, is_misread

MASK = "***"
SCHEMES = ("mysql", "mariadb")
SSL = ("ssl_ca", "ssl_cert", "ssl_key", "ssl_key_password")
"""Files and passwords of the TLS settings."""
FLAGS = ("ssl_verify_cert", "ssl_verify_identity", "ssl_disabled")
DEFAULT_PORT = 3306

_truth = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


@dataclass(frozen=True, slots=True)
class Address:
    """A database that can be connected to."""

    database: str
    user: str
    host: str
    port: int
    unix_socket: str | None
    password: str = field(repr=False)
    options: dict[str, str | bool] = field(repr=False)
    """The TLS settings, with the driver's names."""

    @classmethod
    def of(cls, dsn: str, database: str | None = None) -> Address:
        """Return the address in a DSN such as `mysql://user:password@host:3306/database?ssl_ca=ca.pem`."""
        # The parser would drop characters that it does not expect.
        if is_misread(dsn) or not dsn.isprintable():
            raise _unusable()
        try:
            parts = urlsplit(dsn)
            port = parts.port or DEFAULT_PORT
            settings = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
            socket = settings.pop("unix_socket", None)
            options = {name: _truth[value.lower()] if name in FLAGS else value for name, value in settings.items()}
        except (ValueError, KeyError):
            raise _unusable() from None
        name = database or unquote(parts.path.removeprefix("/"))
        if parts.scheme not in SCHEMES or not name or "/" in parts.path[1:] or parts.fragment:
            raise _unusable()
        if not options.keys() <= {*SSL, *FLAGS}:
            raise _unusable()
        return cls(
            database=name,
            user=unquote(parts.username or ""),
            host=unquote(parts.hostname or "localhost"),
            port=port,
            unix_socket=socket,
            password=unquote(parts.password or ""),
            options=options,
        )

    @property
    def display(self) -> str:
        """The address without secrets."""
        user = f"{self.user}@" if self.user else ""
        place = self.host if self.unix_socket else f"{self.host}:{self.port}"
        return f"mysql://{user}{place}/{self.database}"

    def mask(self, text: str) -> str:
        """Return a text without the secrets of this address."""
        for secret in (self.password, self.options.get("ssl_key_password")):
            if isinstance(secret, str) and secret:
                text = text.replace(secret, MASK)
        return text


def _unusable() -> ConfigError:
    # The DSN is not quoted: it may contain a password.
    return ConfigError(
        "sessiondb.dsn is not an address of a MySQL or MariaDB database",
        hint="it looks like mysql://user:password@host:3306/database, perhaps with ?unix_socket= or ?ssl_ca=;"
        f" {ESCAPES}",
    )
