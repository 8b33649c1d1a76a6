"""DSNs that are URLs: checks of what must be escaped in them."""

from __future__ import annotations

import re
from ipaddress import ip_address

ESCAPES = "in a user name or a password, write @ as %40, / as %2F, ? as %3F, # as %23 and % as %25"
"""The hint for a DSN that cannot be parsed; a hint never quotes the DSN, because it may contain a password."""

_scheme = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://")
_bad_escape = re.compile(r"%(?![0-9A-Fa-f]{2})")
_port = re.compile(r"[0-9]{1,5}")


def is_misread(dsn: str) -> bool:
    """Whether a character in a URL ends its password too early, so that the rest would be parsed as something else."""
    found = _scheme.match(dsn)
    if found is None:
        return False
    rest = dsn[found.end() :]
    authority, _, path = rest.partition("/")
    host = authority.partition("@")[2].partition("?")[0]
    return "@" in host or "@" in path.partition("?")[0] or _bad_escape.search(rest) is not None


def is_on_this_machine(host: str) -> bool:
    """Whether the host of a DSN is this machine, so that the connection cannot be intercepted on the way."""
    if not host or host == "localhost" or host.startswith(("/", "@")):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def are_ports(text: str) -> bool:
    """Whether a text is a port, or several separated by commas; an empty one is the default."""
    return all(not each or (_port.fullmatch(each) and 0 < int(each) < 65_536) for each in text.split(","))
