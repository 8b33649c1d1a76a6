"""The TLS settings of a connection: what the options of a DSN mean."""

from __future__ import annotations

import ssl
from collections.abc import Mapping

from hermes.errors import ConfigError
from hermes.state.server.dsn import is_on_this_machine

Options = Mapping[str, str | bool]

_DECISIONS = ("ssl_ca", "ssl_verify_cert", "ssl_verify_identity", "ssl_disabled")
"""The options that say whether the server is checked."""


def tls_options(options: Options, host: str) -> dict[str, ssl.SSLContext | bool]:
    """Return the driver's TLS arguments.

    If no option decides whether the server is checked, a server on another machine is checked; one on this machine is
    trusted, and encrypts if it can.
    """
    if options.get("ssl_disabled"):
        return {"ssl_disabled": True}
    if is_checked_by_default(options, host):
        options = {**options, "ssl_verify_identity": True}
    # The driver alone would check nothing if only an authority is given, and no host name without one.
    return {"ssl": _context(options)} if options.keys() - {"ssl_disabled"} else {}


def is_checked_by_default(options: Options, host: str) -> bool:
    """Whether the certificate of a server is checked although no option says so."""
    return not is_on_this_machine(host) and not any(name in options for name in _DECISIONS)


def _context(options: Options) -> ssl.SSLContext:
    """Return a context for TLS only; an authority in the options turns the check of certificates on."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = bool(options.get("ssl_verify_identity"))
    is_checked = context.check_hostname or options.get("ssl_verify_cert", "ssl_ca" in options)
    context.verify_mode = ssl.CERT_REQUIRED if is_checked else ssl.CERT_NONE
    authority, certificate, key = (_text(options, name) for name in ("ssl_ca", "ssl_cert", "ssl_key"))
    try:
        if authority is not None:
            context.load_verify_locations(authority)
        elif is_checked:
            context.load_default_certs()
    except OSError as exc:
        raise _unusable("ssl_ca", exc) from None
    try:
        if certificate is not None or key is not None:
            # Without a password argument, OpenSSL would ask for one on the terminal.
            context.load_cert_chain(certificate or "", key, _text(options, "ssl_key_password") or "")
    except OSError as exc:
        raise _unusable("ssl_cert with ssl_key", exc) from None
    return context


def _text(options: Options, name: str) -> str | None:
    value = options.get(name)
    return value if isinstance(value, str) else None


def _unusable(name: str, exc: OSError) -> ConfigError:
    return ConfigError(
        f"{name} in sessiondb.dsn cannot be used: {exc.strerror or exc}", hint="use readable files in PEM format"
    )
