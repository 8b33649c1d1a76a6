"""Finds internet addresses that mislead: foreign letters, punycode, numbers in an odd notation, names before an `@`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from unicodedata import category, normalize
from urllib.parse import unquote

from hermes.agent.safety.scanning.findings import Finding
from hermes.agent.safety.visible_text import has_disguise, make_path_visible

RULE_HOMOGRAPH, RULE_PUNYCODE, RULE_LOGIN, RULE_NUMBER = "homograph_url", "punycode_url", "login_in_url", "number_url"

_ADDRESS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,20}):[/\\]{2,}(?P<authority>[^\s/\\?#\"'`<>|;()]{1,400})")
_WORD = re.compile(r"[^\s@/\\?#\"'`<>|;()=,:]+")
_NUMBER = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]+)){0,3}", re.IGNORECASE)
_MAX_NAME = 253
_DOTS = str.maketrans("\u3002\uff0e\uff61\u2024", "....")
"""Other dots, which browsers and resolvers read as a plain one."""
_PREFIX = "xn--"
_MAX_LABEL = 63
_MAX_FINDINGS = 8
_MAX_ADDRESSES = 400


def find_addresses(texts: Iterable[str]) -> list[Finding]:
    """Return a finding for each suspicious address in the texts."""
    found: dict[str, Finding] = {}
    for host, login in _hosts(texts):
        for each in _judge(host, login):
            found.setdefault(each.text, each)
        if len(found) >= _MAX_FINDINGS:
            break
    return list(found.values())[:_MAX_FINDINGS]


def _hosts(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the hosts in the texts, each with the text before its `@`."""
    seen: set[tuple[str, str]] = set()
    for text in texts:
        for found in _ADDRESS.finditer(text):
            login, _, host = unquote(found["authority"]).rpartition("@")
            seen.add((host.rpartition(":")[0] or host if host.rpartition(":")[2].isdecimal() else host, login))
            if len(seen) >= _MAX_ADDRESSES:
                break
        if not text.isascii() or _PREFIX in text.casefold():
            for found in _WORD.finditer(text):
                name = found[0].translate(_DOTS)
                if len(name) <= _MAX_NAME and "." in name[1:-1] and (not name.isascii() or _PREFIX in name.casefold()):
                    seen.add((found[0], ""))
                if len(seen) >= _MAX_ADDRESSES:
                    break
    yield from sorted(seen)


def _judge(host: str, login: str) -> Iterator[Finding]:
    has_other_dots, host = host != host.translate(_DOTS), host.translate(_DOTS)
    if "." in login:
        yield Finding(RULE_LOGIN, f"uses an address that begins with {_shown(login)} but leads to {_shown(host)}")
    if _NUMBER.fullmatch(host) and (address := _read_number(host)) not in (None, host):
        yield Finding(RULE_NUMBER, f"uses the address {_shown(host)}, which means {address}")
    labels = [each for each in host.split(".") if each]
    coded = [each for each in labels if each.casefold().startswith(_PREFIX)]
    if coded:
        decoded = ".".join(_decode(each) for each in labels)
        yield Finding(RULE_PUNYCODE, f"uses the address {_shown(host)}, which people may see as {_shown(decoded)}")
    elif has_other_dots or any(map(_is_disguised, labels)):
        yield Finding(RULE_HOMOGRAPH, f"uses the address {_shown(host)}, whose letters look like others")


def _read_number(host: str) -> str | None:
    """Return the IPv4 address that programs read in numbers of any notation; None if there is none."""
    from socket import inet_aton, inet_ntoa  # late: few commands need it

    try:
        return inet_ntoa(inet_aton(host))
    except OSError:
        return None


def _is_disguised(label: str) -> bool:
    """Whether a part of a name has letters that look like others, or letters of several alphabets."""
    if label.isascii():
        return False
    return has_disguise(label) or normalize("NFKC", label).isascii() or any(category(each)[0] in "CZ" for each in label)


def _decode(label: str) -> str:
    """Return the letters that a punycode label stands for; the label itself if it stands for none."""
    folded = label.casefold()
    if not folded.startswith(_PREFIX) or len(folded) > _MAX_LABEL:
        return label
    try:
        return folded[len(_PREFIX) :].encode("ascii").decode("punycode")
    except (UnicodeError, ValueError, OverflowError):
        return label


def _shown(text: str) -> str:
    return make_path_visible(text[:120])
