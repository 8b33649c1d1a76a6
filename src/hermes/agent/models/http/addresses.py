"""Addresses to which a key may be sent without encryption: this machine and private networks."""

from __future__ import annotations

import re
from ipaddress import IPv6Address, ip_address, ip_network
from urllib.parse import parse_qsl, urlsplit

_NETWORKS = tuple(
    map(
        ip_network,
        (
            *("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"),
            *("::1/128", "fc00::/7", "fe80::/10"),
        ),
    )
)
_LOCAL_NAME = re.compile(r"(?:[a-z0-9-]{1,63}\.){0,8}(?:localhost|(?<=\.)local)\.?", re.IGNORECASE)
_SECRET_PARAMETER = re.compile(r"key|token|secret|sig|pass|auth|code", re.IGNORECASE)


def is_near(host: str) -> bool:
    """Whether a host is this machine or in a private network, by its address or its name alone.

    Names are never looked up: a public name may resolve to any address, and to another one tomorrow.
    """
    try:
        address = ip_address(host)
    except ValueError:
        return _LOCAL_NAME.fullmatch(host) is not None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return any(address in network for network in _NETWORKS if network.version == address.version)


def carries_secret(url: str) -> bool:
    """Whether an address itself contains a password or a key."""
    parts = urlsplit(url)
    return parts.username is not None or any(_SECRET_PARAMETER.search(name) for name, _ in parse_qsl(parts.query))


def is_in_clear(url: str) -> bool:
    """Whether others can read requests to an address on the network."""
    parts = urlsplit(url)
    return parts.scheme == "http" and not is_near(parts.hostname or "")
