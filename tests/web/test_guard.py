"""The guard refuses addresses that a page, a person or a model must not reach."""

from __future__ import annotations

import contextlib
import socket
from base64 import b16encode, b32encode, b64encode, urlsafe_b64encode
from binascii import hexlify
from collections.abc import Callable
from ipaddress import ip_address
from urllib.parse import quote

import pytest

from hermes.errors import UnsafeUrl, WebUnavailable
from hermes.web.addresses import refusal_of
from hermes.web.guard import MAX_ADDRESSES, Guard, resolve_name
from tests.web.servers import OTHER_PUBLIC, PUBLIC, Names

FORBIDDEN = [
    *("127.0.0.1", "127.255.255.254", "::1", "0.0.0.0", "0.1.2.3", "::"),
    *("10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.255.255"),
    *("169.254.0.1", "169.254.169.254", "169.254.170.2", "fe80::1", "febf::1", "fe80::a9fe:a9fe"),
    *("100.64.0.1", "100.127.255.255", "100.100.100.200", "168.63.129.16"),
    *("fc00::1", "fd00::1", "fd00:ec2::254", "fdff::1", "fec0::1"),
    *("224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"),
    *("240.0.0.1", "255.255.255.255", "192.0.0.1", "192.0.0.192", "192.0.2.1", "198.18.0.1", "198.19.255.255"),
    *("198.51.100.1", "203.0.113.1", "192.88.99.1"),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:7f00:1"),
    *("::127.0.0.1", "::10.0.0.1", "::ffff:0:127.0.0.1"),
    *("64:ff9b::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "64:ff9b:1::7f00:1"),
    *("2002:7f00:1::", "2002:a00:1::1", "2002:808:808::1", "2001:0:7f00:1::", "2001::1", "2001:10::1", "2001:20::1"),
    *("2a00:1450::5efe:10.0.0.1", "2606:4700::200:5efe:127.0.0.1"),
    *("2001:db8::1", "3fff::1", "100::1", "4000::1", "5f00::1", "8000::1", "1::1"),
]
ALLOWED = [
    *("1.1.1.1", "8.8.8.8", "93.184.215.14", "9.255.255.255", "11.0.0.1", "172.15.255.255", "172.32.0.1"),
    *("192.167.255.255", "192.169.0.1", "100.63.255.255", "100.128.0.1", "169.253.255.255", "169.255.0.1"),
    *("126.255.255.255", "128.0.0.1", "223.255.255.255", "198.17.255.255", "198.20.0.1"),
    *("2606:4700:4700::1111", "2a00:1450:4001::1", "2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"),
    *("2a00:1450::5eff:1:1", "2a00:5efe::1", "2a00:1450::5efe:1"),
]


@pytest.mark.parametrize("address", FORBIDDEN)
def test_address_that_is_not_public_is_refused(address: str) -> None:
    assert refusal_of(ip_address(address)) is not None


@pytest.mark.parametrize("address", ALLOWED)
def test_public_address_is_allowed(address: str) -> None:
    assert refusal_of(ip_address(address)) is None


@pytest.mark.parametrize("address", FORBIDDEN)
def test_forbidden_address_in_the_url_is_refused_without_a_look_up(address: str) -> None:
    names = Names()
    host = f"[{address}]" if ":" in address else address
    with pytest.raises(UnsafeUrl):
        Guard(resolve=names).check(f"http://{host}/")
    assert names.asked == []


@pytest.mark.parametrize("address", FORBIDDEN)
def test_name_with_a_forbidden_address_is_refused(address: str) -> None:
    with pytest.raises(UnsafeUrl, match=r"example\.com"):
        Guard(resolve=Names({"example.com": [[address]]})).check("https://example.com/")


@pytest.mark.parametrize("address", FORBIDDEN)
def test_one_forbidden_address_among_public_ones_is_enough(address: str) -> None:
    names = Names({"example.com": [[PUBLIC, OTHER_PUBLIC, address]]})
    with pytest.raises(UnsafeUrl):
        Guard(resolve=names).check("https://example.com/")


def test_checked_url_has_every_address_once_and_in_order() -> None:
    names = Names({"example.com": [[OTHER_PUBLIC, PUBLIC, OTHER_PUBLIC, "::ffff:8.8.4.4"]]})
    checked = Guard(resolve=names).check("https://Example.com./a")
    assert checked.addresses == (OTHER_PUBLIC, PUBLIC, "8.8.4.4")
    assert str(checked.url) == "https://example.com/a"
    assert names.asked == ["example.com"]


@pytest.mark.parametrize(
    "host",
    [
        *("metadata.google.internal", "METADATA.GOOGLE.INTERNAL", "metadata.google.internal.", "metadata.goog"),
        *("metadata", "localhost", "LOCALHOST", "localhost.", "a.localhost", "printer.local", "db.internal"),
        *("intranet", "wiki.corp", "router.lan", "nas.home.arpa", "kubernetes.default.svc", "a.b.svc.cluster.local"),
        *("host.docker.internal", "1.0.0.127.in-addr.arpa", "x.onion", "localhost.localdomain"),
    ],
)
def test_name_of_a_local_or_metadata_server_is_refused_without_a_look_up(host: str) -> None:
    names = Names()
    with pytest.raises(UnsafeUrl, match="public server"):
        Guard(resolve=names).check(f"http://{host}/")
    assert names.asked == []


class TestNames:
    def test_unknown_name_is_refused(self) -> None:
        with pytest.raises(WebUnavailable, match="was not found"):
            Guard(resolve=Names({"example.com": [[]]})).check("https://example.com/")

    @pytest.mark.parametrize("failure", [socket.gaierror(-3, "later"), TimeoutError(), UnicodeError("label too long")])
    def test_failure_of_the_name_server_is_refused(self, failure: Exception) -> None:
        def fail(_: str) -> list[str]:
            raise failure

        with pytest.raises(WebUnavailable):
            Guard(resolve=fail).check("https://example.com/")

    @pytest.mark.parametrize("found", [["nonsense"], [""], [PUBLIC, "x"], ["300.1.1.1"]])
    def test_unreadable_address_is_refused(self, found: list[str]) -> None:
        with pytest.raises(WebUnavailable):
            Guard(resolve=lambda _: found).check("https://example.com/")

    def test_interface_after_an_address_does_not_hide_it(self) -> None:
        with pytest.raises(UnsafeUrl, match="link-local"):
            Guard(resolve=lambda _: ["fe80::1%eth0"]).check("https://example.com/")

    def test_too_many_addresses_are_refused(self) -> None:
        found = [f"8.8.8.{number}" for number in range(MAX_ADDRESSES + 1)]
        with pytest.raises(UnsafeUrl, match="more than"):
            Guard(resolve=lambda _: found).check("https://example.com/")

    def test_system_resolver_finds_all_addresses_of_this_machine(self) -> None:
        assert {"127.0.0.1", "::1"} & set(resolve_name("localhost"))


class TestPorts:
    @pytest.mark.parametrize("url", ["http://example.com/", "https://example.com/", "http://example.com:443/"])
    def test_standard_ports_are_allowed(self, url: str) -> None:
        Guard().check_text(url)

    @pytest.mark.parametrize("port", [21, 22, 25, 3306, 5432, 6379, 8080, 8443, 9200, 11211])
    def test_other_ports_are_refused(self, port: int) -> None:
        with pytest.raises(UnsafeUrl, match=r"web\.extra_ports"):
            Guard().check_text(f"http://example.com:{port}/")

    def test_configured_port_is_allowed_too(self) -> None:
        assert Guard(extra_ports=[8080]).check_text("http://example.com:8080/").port == 8080
        Guard(extra_ports=[8080]).check_text("https://example.com/")

    def test_configured_port_does_not_open_private_addresses(self) -> None:
        with pytest.raises(UnsafeUrl, match="loopback"):
            Guard(extra_ports=[8080]).check("http://127.0.0.1:8080/")


KEY = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
ENCODINGS = (b64encode, urlsafe_b64encode, b32encode, b16encode, hexlify)


class TestKeys:
    @pytest.mark.parametrize(
        "url",
        [
            f"https://example.com/?q={KEY}",
            f"https://example.com/{KEY}/x",
            f"https://example.com/#{KEY}",
            f"https://{KEY.replace('_', '-')}.example.com/?api_key=abcdef123456",
            "https://example.com/?api_key=abcdef123456",
            "https://example.com/?access_token=abcdef123456",
            "https://example.com/?x=1&password=hunter22",
            "https://example.com/?x=sk-abcdefghijklmnop0123456789",
            "https://example.com/?k=AKIAABCDEFGHIJKLMNOP",
        ],
    )
    def test_url_with_a_key_is_refused(self, url: str) -> None:
        with pytest.raises(UnsafeUrl, match="key or a password"):
            Guard().check_text(url)

    @pytest.mark.parametrize("times", [1, 2, 3, 9])
    def test_percent_encoding_does_not_hide_a_key(self, times: int) -> None:
        hidden = "".join(f"%{ord(char):02x}" for char in KEY)
        for _ in range(times - 1):
            hidden = quote(hidden, safe="")
        with pytest.raises(UnsafeUrl):
            Guard().check_text(f"https://example.com/?q={hidden}")

    @pytest.mark.parametrize("secret", [KEY, "squeamish-ossifrage", "password=hunter22"])
    @pytest.mark.parametrize("encode", ENCODINGS)
    @pytest.mark.parametrize("before", ["", " ", "x=", "xy:", "xyz: "])
    def test_encoding_does_not_hide_a_secret(self, secret: str, encode: Callable[[bytes], bytes], before: str) -> None:
        hidden = encode(f"{before}{secret}".encode()).decode().rstrip("=")
        guard = Guard(secrets=["squeamish-ossifrage"])
        for url in (
            f"https://example.com/?q={hidden}",
            f"https://example.com/a/{hidden}",
            f"https://example.com/{hidden}/b",
        ):
            with pytest.raises(UnsafeUrl, match="key or a password"):
                guard.check_text(url)

    @pytest.mark.parametrize(
        "address",
        [
            "https://SQUEAMISH-OSSIFRAGE.example.com/",
            "https://squeamish.ossifrage.example.com/",
            "https://example.com/?a=squea&b=1#squeamish+ossifrage",
            "https://example.com/s/q/u/e/a/m/i/s/h/o/s/s/i/f/r/a/g/e",
        ],
    )
    def test_other_cases_and_separators_do_not_hide_a_secret(self, address: str) -> None:
        with pytest.raises(UnsafeUrl, match="key or a password"):
            Guard(secrets=["squeamish-ossifrage"]).check_text(address)

    def test_encoded_secret_of_other_letters_is_found_too(self) -> None:
        hidden = b64encode("pässwörter-überall".encode()).decode()
        with pytest.raises(UnsafeUrl):
            Guard(secrets=["pässwörter-überall"]).check_text(f"https://example.com/?q={quote(hidden)}")

    def test_very_long_encoded_text_takes_little_time(self) -> None:
        for char in "Aa2/-%":
            with contextlib.suppress(UnsafeUrl):
                Guard(secrets=["squeamish-ossifrage"]).check_text(f"https://example.com/{char * 4_000}")

    @pytest.mark.parametrize("shown", ["squeamish-ossifrage", "squeamish%2Dossifrage", "squeamish%252dossifrage"])
    def test_url_with_a_value_of_the_environment_is_refused(self, shown: str) -> None:
        with pytest.raises(UnsafeUrl):
            Guard(secrets=["squeamish-ossifrage"]).check_text(f"https://example.com/{shown}")

    def test_error_does_not_quote_the_key(self) -> None:
        with pytest.raises(UnsafeUrl) as caught:
            Guard().check_text(f"https://example.com/?q={KEY}")
        assert KEY not in str(caught.value)

    @pytest.mark.parametrize(
        "url",
        [
            "https://example.com/reset-password?lang=de",
            "https://docs.example.com/api-keys/rotate",
            "https://example.com/sk-learn/tutorial",
            "https://example.com/?q=how+to+store+a+token",
            "https://example.com/a%20b%252Fc",
            "https://example.com/commit/3f786850e387550fdab836ed7e6dc881de23001b",
            "https://example.com/watch?v=dQw4w9WgXcQ&list=PLrAXtmErZgOeiKm4sgNOknGvNjby9efdf",
            "https://example.com/?text=SGVsbG8gd29ybGQsIHRoaXMgaXMgcGxhaW4gdGV4dA",
            "https://example.com/6ba7b810-9dad-11d1-80b4-00c04fd430c8/",
        ],
    )
    def test_url_about_keys_is_allowed(self, url: str) -> None:
        Guard().check_text(url)
