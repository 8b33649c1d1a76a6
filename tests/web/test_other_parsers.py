"""The tables and the parser of the guard, compared with programs that know nothing of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_network
from urllib.parse import urlsplit

import httpx2
import pytest
import yarl

from hermes.errors import UnsafeUrl
from hermes.web.addresses import Address, refusal_of
from hermes.web.urls import parse_url

SPECIAL_PURPOSE = [
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24"),
    *("192.0.0.8/32", "192.0.0.9/32", "192.0.0.10/32", "192.0.0.170/31", "192.0.2.0/24", "192.31.196.0/24"),
    *("192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24"),
    *("203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "255.255.255.255/32", "::/128", "::1/128", "64:ff9b:1::/48"),
    *("100::/64", "100:0:0:1::/64", "2001::/23", "2001:1::1/128", "2001:1::2/128", "2001:1::3/128", "2001:2::/48"),
    *("2001:3::/32", "2001:4:112::/48", "2001:10::/28", "2001:20::/28", "2001:30::/28", "2001:db8::/32", "2002::/16"),
    *("2620:4f:8000::/48", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"),
]
"""The registries of special-purpose addresses, and the networks for multicast."""
PARTS = [
    *("a", "b", ".", "/", "@", ":", "#", "?", "%", "[", "]", "1", "0", "0x7f", "127", "::1", "80", "443", "%2e", "%40"),
    *("\\", "\t", "\n", "\u3002", "\u24db", "\u00e9", "\u00df", "xn--", "-", "_", "~", "&", "=", ";", "|", "^", "'"),
    *('"', "<", "{", "`", "localhost", "example.com", "http:", "//", "\u200d", "\uff0f", "\uff1a", "\uff20"),
]
READERS: dict[str, Callable[[str], tuple[str | None, int | None]]] = {
    "urllib": lambda text: (urlsplit(text).hostname, urlsplit(text).port),
    "httpx2": lambda text: (httpx2.URL(text).raw_host.decode(), httpx2.URL(text).port),
    "yarl": lambda text: (yarl.URL(text).raw_host, yarl.URL(text).explicit_port),
}


@pytest.mark.parametrize("network", SPECIAL_PURPOSE)
def test_special_purpose_network_is_refused(network: str) -> None:
    found = ip_network(network)
    for address in (found[0], found[-1], found[found.num_addresses // 2]):
        assert refusal_of(address) is not None, address


def test_no_address_is_allowed_that_python_calls_private() -> None:
    numbers = random.Random(21)
    for _ in range(10_000):
        either: tuple[Address, Address] = (
            IPv4Address(numbers.getrandbits(32)),
            IPv6Address((0b001 << 125) | numbers.getrandbits(125)),
        )
        for address in either:
            assert refusal_of(address) is not None or (address.is_global and not address.is_multicast), address


@pytest.mark.parametrize("reader", READERS)
def test_other_programs_find_the_same_host_in_an_accepted_address(reader: str) -> None:
    choose, accepted = random.Random(21), 0
    for _ in range(20_000):
        text = choose.choice(["http://", "https://", "HTTP://"]) + "".join(
            choose.choices(PARTS, k=choose.randint(1, 6))
        )
        try:
            url = parse_url(text)
        except UnsafeUrl:
            continue
        accepted += 1
        host, port = READERS[reader](str(url))
        assert host is not None
        assert (host.strip("[]"), port or {"http": 80, "https": 443}[url.scheme]) == (url.host, url.port), text
    assert accepted > 100
