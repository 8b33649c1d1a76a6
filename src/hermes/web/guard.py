"""The guard: decides whether an address that a person, a page or a model gave may be fetched, and from where.

It is always on, and no setting turns it off. Endpoints that the operator has configured do not pass through it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import unquote, unquote_plus

from hermes.errors import UnsafeUrl, WebUnavailable
from hermes.web.addresses import Address, refusal_of, without_embedding
from hermes.web.encoded_text import decode_parts
from hermes.web.urls import DEFAULT_PORTS, WebUrl, parse_url

Resolve = Callable[[str], Iterable[str]]
"""Returns all addresses of a host name; raises OSError if there are none."""

STANDARD_PORTS = frozenset(DEFAULT_PORTS.values())
MAX_ADDRESSES = 16
"""A name with more addresses is refused: all must be checked."""

_METADATA_NAMES = frozenset(
    (
        *("metadata.google.internal", "metadata.goog", "metadata.azure.com", "metadata.azure.internal"),
        *("metadata.platformequinix.com", "metadata.packet.net", "metadata.tencentyun.com", "metadata.nws.cloud"),
        *("instance-data.ec2.internal", "kubernetes.default.svc", "host.docker.internal", "gateway.docker.internal"),
    )
)
_LOCAL_ENDINGS = (
    *(".localhost", ".local", ".localdomain", ".internal", ".intranet", ".lan", ".home", ".corp", ".private"),
    *(".home.arpa", ".in-addr.arpa", ".ip6.arpa", ".onion", ".svc", ".cluster.local"),
)
"""Endings of names that never belong to a public server."""
_DECODINGS = 4
"""How often a percent-encoded address is decoded to look for a key."""
_MIN_SECRET_CHARACTERS = 8
_MIN_LETTERS = 12
"""A secret with so many letters and digits is found in other cases and between separators too."""
_NO_LETTERS = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class CheckedUrl:
    """An address that may be fetched, only from one of these network addresses."""

    url: WebUrl
    addresses: tuple[str, ...]


def resolve_name(host: str) -> list[str]:
    """Return all addresses of a host name, as the system knows them."""
    import socket

    return [str(found[4][0]) for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]


class Guard:
    """The rules for addresses; `resolve` is replaced only by tests that have a name server of their own."""

    def __init__(
        self,
        *,
        extra_ports: Collection[int] = (),
        secrets: Collection[str] = (),
        resolve: Resolve = resolve_name,
    ) -> None:
        self._ports = STANDARD_PORTS | frozenset(extra_ports)
        self._secrets = tuple(each for each in secrets if len(each) >= _MIN_SECRET_CHARACTERS)
        """Values that no address may contain, such as the keys of the backends."""
        self._secret_letters = tuple(found for each in self._secrets if len(found := _letters(each)) >= _MIN_LETTERS)
        self._secret_bytes = tuple(each.encode("utf-8", "surrogateescape") for each in self._secrets)
        self._resolve = resolve

    def check(self, text: str) -> CheckedUrl:
        """Check an address, and look its host up once; raises `UnsafeUrl`, or `WebUnavailable` for an unknown host."""
        url = self.check_text(text)
        if url.address is not None:
            addresses: Sequence[Address] = [url.address]
        else:
            addresses = self._look_up(url.host)
        for address in addresses:
            reason = refusal_of(address)
            if reason is not None:
                shown = url.host if url.address is not None else f"{url.host} has the address {address}, and"
                raise UnsafeUrl(f"{shown} must not be reached from the web: {reason}")
        return CheckedUrl(url, tuple(dict.fromkeys(str(without_embedding(each)) for each in addresses)))

    def check_text(self, text: str) -> WebUrl:
        """Check what the text of an address shows, without looking its host up."""
        url = parse_url(text)
        if url.address is None and _is_local_name(url.host):
            raise UnsafeUrl(f"{url.host} is not the name of a public server")
        if url.port not in self._ports:
            allowed = ", ".join(map(str, sorted(self._ports)))
            raise UnsafeUrl(
                f"port {url.port} is not allowed",
                hint=f"allowed: {allowed}; web.extra_ports in config.yaml adds others",
            )
        if self.carries_secret(text):
            raise UnsafeUrl(
                "the address contains something that looks like a key or a password", hint="remove it from the address"
            )
        return url

    def carries_secret(self, text: str) -> bool:
        """Whether an address contains a secret, also percent-encoded several times, or in base64 and the like."""
        from hermes.secrets import redact

        for _ in range(_DECODINGS):
            forms = {text, unquote_plus(text)}
            if any(redact(form)[1] for form in forms):
                return True
            if any(secret in form for form in forms for secret in self._secrets):
                return True
            if any(secret in _letters(form) for form in forms for secret in self._secret_letters):
                return True
            if any(self._is_secret(data) for form in forms for data in decode_parts(form)):
                return True
            decoded = unquote(text)
            if decoded == text:
                return False
            text = decoded
        return True  # so many layers have no other purpose

    def _is_secret(self, data: bytes) -> bool:
        """Whether decoded data contains a secret; what is not readable has no shape of a key."""
        from hermes.secrets import redact

        if any(secret in data for secret in self._secret_bytes):
            return True
        text = data.decode("ascii", "replace")
        return text.isprintable() and text.isascii() and bool(redact(text)[1])

    def _look_up(self, host: str) -> list[Address]:
        try:
            found = list(dict.fromkeys(self._resolve(host)))
            # An interface may follow the address (`fe80::1%eth0`).
            addresses = [ip_address(each.partition("%")[0]) for each in found]
        except (OSError, ValueError):  # UnicodeError is a ValueError
            addresses = []
        if not addresses:
            raise WebUnavailable(f"the host {host} was not found", hint="check the address")
        if len(addresses) > MAX_ADDRESSES:
            raise UnsafeUrl(f"{host} has more than {MAX_ADDRESSES} addresses")
        return addresses


def _letters(text: str) -> str:
    """Return the letters and digits of a text in lower case, as names of hosts have them."""
    return _NO_LETTERS.sub("", text.lower())


def _is_local_name(host: str) -> bool:
    return "." not in host or host in _METADATA_NAMES or host.endswith(_LOCAL_ENDINGS)
