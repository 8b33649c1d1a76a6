"""Network addresses that a page from the web must not reach.

The tables are written out instead of using `ipaddress.is_private`, whose meaning differs between versions of Python.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address

_METADATA = frozenset(
    map(
        ip_address,
        (
            *("169.254.169.254", "169.254.169.253", "169.254.169.123", "169.254.170.2", "169.254.170.23"),
            *("100.100.100.200", "168.63.129.16", "192.0.0.192"),
            *("fd00:ec2::254", "fd00:ec2::253", "fd00:ec2::23", "fd20:ce::254", "fe80::a9fe:a9fe"),
        ),
    )
)
"""Services of clouds that give keys to the machine itself; some of them have public addresses."""

_IPV4 = {
    IPv4Network(network): kind
    for network, kind in {
        "0.0.0.0/8": "unspecified",
        "10.0.0.0/8": "private",
        "100.64.0.0/10": "shared by a provider's customers (CGNAT)",
        "127.0.0.0/8": "loopback",
        "169.254.0.0/16": "link-local",
        "172.16.0.0/12": "private",
        "192.0.0.0/24": "reserved",
        "192.0.2.0/24": "reserved for documents",
        "192.31.196.0/24": "reserved",
        "192.52.193.0/24": "reserved",
        "192.88.99.0/24": "reserved (6to4)",
        "192.168.0.0/16": "private",
        "192.175.48.0/24": "reserved",
        "198.18.0.0/15": "reserved for measurements",
        "198.51.100.0/24": "reserved for documents",
        "203.0.113.0/24": "reserved for documents",
        "224.0.0.0/4": "multicast",
        "240.0.0.0/4": "reserved",
    }.items()
}
_GLOBAL_IPV6 = IPv6Network("2000::/3")
"""The only IPv6 addresses that are given out for public use."""
_IPV6 = {
    IPv6Network(network): kind
    for network, kind in {
        "::/128": "unspecified",
        "::1/128": "loopback",
        "fc00::/7": "private",
        "fe80::/10": "link-local",
        "fec0::/10": "private",
        "ff00::/8": "multicast",
        "2001::/32": "a tunnel (Teredo)",
        "2001::/23": "reserved",
        "2001:db8::/32": "reserved for documents",
        "2002::/16": "a tunnel (6to4)",
        "2620:4f:8000::/48": "reserved",
        "3fff::/20": "reserved for documents",
    }.items()
}
_NAT64 = IPv6Network("64:ff9b::/96")
_ISATAP = frozenset((0x0000_5EFE, 0x0200_5EFE))
"""The middle of an IPv6 address that leads through a tunnel to the IPv4 address at its end, in any network."""


def refusal_of(address: Address) -> str | None:
    """Return why an address must not be reached, or None if it is a public one."""
    address = without_embedding(address)
    if address in _METADATA:
        return "it is the metadata service of a cloud"
    if isinstance(address, IPv4Address):
        kind = next((kind for network, kind in _IPV4.items() if address in network), None)
    else:
        kind = next((kind for network, kind in _IPV6.items() if address in network), None)
        if kind is None and address not in _GLOBAL_IPV6:
            kind = "reserved"
        if kind is None and int(address) >> 32 & 0xFFFF_FFFF in _ISATAP:
            kind = "a tunnel (ISATAP)"
    return None if kind is None else f"it is {kind}"


def without_embedding(address: Address) -> Address:
    """Return the IPv4 address inside an IPv6 address that only stands for it (IPv4-mapped, NAT64)."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return IPv4Address(int(address) & 0xFFFF_FFFF) if address in _NAT64 else address
