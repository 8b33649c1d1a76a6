"""Addresses of web pages are parsed strictly."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.errors import UnsafeUrl
from hermes.web.urls import MAX_CHARACTERS, parse_url


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("http://example.com", "http://example.com/"),
        ("https://example.com/a/b?c=d&e#f", "https://example.com/a/b?c=d&e"),
        ("  https://example.com/\n", "https://example.com/"),
        ("HTTPS://EXAMPLE.COM/Path", "https://example.com/Path"),
        ("https://example.com./", "https://example.com/"),
        ("https://example.com:443/", "https://example.com/"),
        ("https://example.com:8443/", "https://example.com:8443/"),
        ("http://example.com?q=1", "http://example.com/?q=1"),
        ("https://example.com#@127.0.0.1/", "https://example.com/"),
        ("https://example.com/a@b:c", "https://example.com/a@b:c"),
        ("https://de.wikipedia.org/wiki/Müller", "https://de.wikipedia.org/wiki/M%C3%BCller"),
        ("https://example.com/%41%2f", "https://example.com/%41%2f"),
        ("https://bücher.de/", "https://xn--bcher-kva.de/"),
        ("https://BÜCHER.de/", "https://xn--bcher-kva.de/"),
        ("https://faß.de/", "https://xn--fa-hia.de/"),
        ("https://例え.jp/", "https://xn--r8jz45g.jp/"),
        ("https://my_host.example.com/", "https://my_host.example.com/"),
        ("http://93.184.215.14/", "http://93.184.215.14/"),
        ("http://[2606:4700::1111]/", "http://[2606:4700::1111]/"),
        ("http://[2606:4700:0:0:0:0:0:1111]:80/x", "http://[2606:4700::1111]/x"),
    ],
)
def test_plain_address_is_normalised(text: str, parsed: str) -> None:
    assert str(parse_url(text)) == parsed


def test_homograph_is_shown_in_its_ascii_form() -> None:
    assert parse_url("https://аpple.com/").host == "xn--pple-43d.com"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "example.com",
        "//example.com/",
        "/path",
        "file:///etc/passwd",
        "ftp://example.com/",
        "gopher://example.com/",
        "data:text/html,hello",
        "javascript:alert(1)",
        "jar:http://example.com/!/",
        "dict://example.com:11211/",
        "httpx://example.com/",
        "http:example.com",
        "http:/example.com",
        "http:///example.com",
        "http://",
        "http://:80/",
        "http://?q",
        "http://#x",
    ],
)
def test_only_http_addresses_with_a_host_are_accepted(text: str) -> None:
    with pytest.raises(UnsafeUrl):
        parse_url(text)


@pytest.mark.parametrize(
    "text",
    [
        "http://user@example.com/",
        "http://user:password@example.com/",
        "http://@example.com/",
        "http://example.com@127.0.0.1/",
        "http://example.com:80@127.0.0.1/",
        "http://127.0.0.1:80@example.com/",
        "http://example.com%40127.0.0.1/",
        "http://127.0.0.1%2f@example.com/",
        "http://example.com\\@127.0.0.1/",
        "http:\\\\example.com\\",
        "http://example.com/a\\b",
        "http:/\\127.0.0.1/",
    ],
)
def test_user_names_and_backslashes_are_refused(text: str) -> None:
    with pytest.raises(UnsafeUrl):
        parse_url(text)


@pytest.mark.parametrize(
    "host",
    [
        "2130706433",
        "0",
        "127.1",
        "127.0.1",
        "0177.0.0.1",
        "0177.0.0.01",
        "127.0.0.01",
        "00000177.0.0.1",
        "0x7f.0.0.1",
        "0x7f000001",
        "0X7F.1",
        "0x",
        "127.0.0.0x1",
        "1.2.3.256",
        "1.2.3.4.5",
        "256",
        "99999999999999999999",
        "127.0.0.1.",
        "example.1",
        "a.b.0x1f",
        "１２７.0.0.1",
        "127。0。0。1",
        "127．0．0．1",
        "①②⑦.⓪.⓪.①",
        "٠.0.0.1",
        "ｌｏｃａｌｈｏｓｔ",
        "ⓔxample.com",
        "ex\u00adample.com",
        "example。com",
        "bücher。de",
        "%31%32%37.0.0.1",
        "127.0.0.1%00",
        "local%68ost",
        "[::1",
        "::1",
        "[::1]x",
        "[fe80::1%25eth0]",
        "[fe80::1%eth0]",
        "[::ffff:127.0.0.01]",
        "[v1.fe80::a]",
        "[127.0.0.1]",
        "[]",
        "a..b",
        ".example.com",
        "example.com..",
        "-a.example.com",
        "a-.example.com",
        "exa mple.com",
        "exa\tmple.com",
        "exa\nmple.com",
        "exa\u200bmple.com",
        "exa\u202emple.com",
        "exa\x00mple.com",
        "exa<mple.com",
        "exa'mple.com",
        "exa,mple.com",
        "exa;mple.com",
        "a" * 64 + ".com",
        ".".join(["a" * 60] * 5) + ".com",
        "xn--a.com",
        "xn--.com",
        "\ud800.com",
    ],
)
def test_unusual_host_is_refused(host: str) -> None:
    with pytest.raises(UnsafeUrl):
        parse_url(f"http://{host}/")


@pytest.mark.parametrize("port", ["0", "65536", "99999999", "-1", "+80", "8o", "80x", "８０", "0x50", "080808", ""])
def test_invalid_port_is_refused(port: str) -> None:
    with pytest.raises(UnsafeUrl, match="port"):
        parse_url(f"http://example.com:{port}/")


def test_very_long_address_is_refused() -> None:
    with pytest.raises(UnsafeUrl, match="limit"):
        parse_url("http://example.com/" + "a" * MAX_CHARACTERS)


HOSTS = st.one_of(
    st.text(alphabet="0123456789abcdefxX.:[]%@/\\\\-_#? ", max_size=24),
    st.lists(st.integers(0, 2**33).flatmap(lambda n: st.sampled_from([str(n), hex(n), f"0{n:o}"])), max_size=5).map(
        ".".join
    ),
    st.text(max_size=16),
)


@given(HOSTS)
def test_system_reads_no_accepted_name_as_an_address(host: str) -> None:
    try:
        url = parse_url(f"http://{host}/")
    except UnsafeUrl:
        return
    assert url.host.isascii()
    if url.address is None:
        with pytest.raises(OSError, match="illegal IP address"):
            socket.inet_aton(url.host)


@given(HOSTS)
def test_parsed_address_means_the_same_to_other_programs(host: str) -> None:
    try:
        url = parse_url(f"http://{host}/")
    except UnsafeUrl:
        return
    assert parse_url(str(url)) == url
    parts = urlsplit(str(url))
    assert (parts.hostname, parts.port or 80, parts.username) == (url.host, url.port, None)
