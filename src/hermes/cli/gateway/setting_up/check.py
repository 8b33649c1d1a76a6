"""Checks a token with its platform."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, build_opener
from urllib.request import Request as UrlRequest

from hermes.cli.gateway.setting_up.questions import Request
from hermes.errors import ConfigError, InvalidValue

TIMEOUT_S = 20.0
MAX_BYTES = 256 * 1024
_LOCAL = ("127.0.0.1", "localhost", "::1")


class _NoRedirects(HTTPRedirectHandler):
    """A redirect would send the token to another server."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def checked_address(address: str) -> str:
    """Return an address without a slash at the end; raise `InvalidValue` if a token must not be sent there."""
    parts = urlsplit(address)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOCAL):
        raise InvalidValue("a token is sent only to an address that begins with https://", hint="check the address")
    if not parts.hostname or parts.username or parts.query or parts.fragment:
        raise InvalidValue("this is not the address of a server", hint="write it as https://server.example")
    return address.rstrip("/")


def ask_platform(request: Request, name: str, *, not_there: str = "") -> Mapping[str, Any]:
    """Send a request and return the JSON object of the response; raise `ConfigError` without the token in its text.

    `not_there` says what to do if the address is not that of such a platform; without it, 404 is a wrong token.
    """
    sent = UrlRequest(request.url, method=request.method, headers=dict(request.headers))  # noqa: S310 - checked_address
    try:
        with build_opener(_NoRedirects).open(sent, timeout=TIMEOUT_S) as response:
            answer = response.read(MAX_BYTES)
    except HTTPError as error:
        error.close()
        if error.code == 404 and not_there:
            raise _elsewhere(name, not_there) from None
        if error.code in (400, 401, 403, 404):
            raise refused(name) from None
        raise ConfigError(f"{name} could not check the token: status {error.code}", hint="try again later") from None
    except (URLError, OSError, ValueError):
        raise ConfigError(f"{name} cannot be reached, so the token was not checked", hint="try again later") from None
    try:
        data = json.loads(answer)
    except (ValueError, RecursionError):
        raise _elsewhere(name, not_there or "check the address") from None
    return data if isinstance(data, dict) else {}


def _elsewhere(name: str, hint: str) -> ConfigError:
    return ConfigError(f"this is not the address of a server of {name}; nothing was stored", hint=hint)


def refused(name: str) -> ConfigError:
    """Return the error for a token that is not valid."""
    return ConfigError(f"{name} does not accept this token; nothing was stored", hint="copy it again")
