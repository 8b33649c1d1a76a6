"""Addresses of web pages, parsed strictly: what is unusual is refused instead of guessed.

Programs disagree about unusual addresses, and every disagreement is a way around a check. Therefore the request is made
from the parsed parts only, never from the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import quote

from hermes.errors import UnsafeUrl

MAX_CHARACTERS = 4_096
DEFAULT_PORTS = {"http": 80, "https": 443}

_MAX_HOST = 253
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_AUTHORITY = re.compile(r"https?://([^/?#]*)([^#]*)", re.IGNORECASE)
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f-\xa0\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff\ud800-\udfff\\]")
"""Blanks, control and invisible characters, and the backslash, which some programs read as a slash."""
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_KEPT = "/%:@!$&'()*+,;=-._~?[]"
"""What is not percent-encoded in a path and a query."""


@dataclass(frozen=True, slots=True)
class WebUrl:
    """The address of a web page, without user, password and fragment."""

    scheme: str
    host: str
    """In lower case and ASCII; an IPv6 address without brackets."""
    port: int
    target: str
    """The path and the query; it begins with a slash."""
    address: IPv4Address | IPv6Address | None = None
    """The address, if the host is one instead of a name."""

    @property
    def authority(self) -> str:
        """The host with its port, as the `Host` header has it."""
        host = f"[{self.host}]" if isinstance(self.address, IPv6Address) else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def parse_url(text: str) -> WebUrl:
    """Parse an address; raises `UnsafeUrl` if it is not a plain http or https address."""
    text = text.strip(" \t\r\n")
    if not text:
        raise UnsafeUrl("the address is empty")
    if len(text) > MAX_CHARACTERS:
        raise UnsafeUrl(f"the address has {len(text)} characters; the limit is {MAX_CHARACTERS}")
    if _FORBIDDEN.search(text):
        raise UnsafeUrl("the address contains a blank, a backslash, or an invisible character")
    scheme = _SCHEME.match(text)
    if scheme is None or scheme[1].lower() not in DEFAULT_PORTS:
        raise UnsafeUrl("only http:// and https:// addresses are allowed")
    found = _AUTHORITY.fullmatch(text.partition("#")[0])
    if found is None:
        raise UnsafeUrl("the address has no host", hint="write it as https://host/path")
    name = scheme[1].lower()
    host, port_text = _split_authority(found[1])
    address = _parse_address(host)
    path = found[2] if found[2].startswith("/") else f"/{found[2]}"
    return WebUrl(
        scheme=name,
        host=_ascii_name(host) if address is None else str(address),
        port=DEFAULT_PORTS[name] if port_text is None else _parse_port(port_text),
        target=quote(path, safe=_KEPT),
        address=address,
    )


def _split_authority(authority: str) -> tuple[str, str | None]:
    """Return the host (an IPv6 address in brackets) and the text of the port."""
    if "@" in authority:
        raise UnsafeUrl("the address contains a user name or a password")
    if "%" in authority:
        raise UnsafeUrl("the host is percent-encoded, or names a network interface")
    if authority.startswith("["):
        host, bracket, rest = authority.partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise UnsafeUrl("the address in brackets is not valid")
        return f"{host}]", rest[1:] if rest else None
    host, colon, port = authority.partition(":")
    return host, port if colon else None


def _parse_port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) < 65_536):
        raise UnsafeUrl("the port is not a number from 1 to 65535")
    return int(text)


def _parse_address(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a host is, or None for a name; raises `UnsafeUrl` for an unusual notation."""
    try:
        if host.startswith("["):
            return IPv6Address(host[1:-1])
        if not _ends_in_number(host):
            return None
        return IPv4Address(host)
    except AddressValueError:
        raise UnsafeUrl(
            "the host is a number or an address in an unusual notation", hint="write it as 192.0.2.1"
        ) from None


def _ends_in_number(host: str) -> bool:
    """Whether programs would read a host as an IPv4 address, in whatever notation."""
    labels = host.lower().removesuffix(".").split(".")
    return _NUMBER.fullmatch(labels[-1]) is not None


def _ascii_name(host: str) -> str:
    """Return a host name in lower case, with other alphabets in their ASCII form (`xn--`)."""
    labels = [_ascii_label(label) for label in host.lower().removesuffix(".").split(".")]
    name = ".".join(labels)
    if len(name) > _MAX_HOST or not all(_LABEL.fullmatch(label) for label in labels):
        raise UnsafeUrl("the host is not a valid name")
    if _ends_in_number(name):
        raise UnsafeUrl("the host is a number in an unusual notation")
    return name


def _ascii_label(label: str) -> str:
    if label.isascii() and not label.startswith("xn--"):
        return label
    import idna

    try:
        # One label at a time: a character that other programs read as a dot does not make two labels here.
        encoded = idna.encode(label, uts46=True).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        raise UnsafeUrl("the host is not a valid name") from None
    if not encoded.startswith("xn--") or "." in encoded:
        raise UnsafeUrl(f"the host has characters that only look like others; it means {encoded}")
    return encoded
