"""Connections that are encrypted: to whom, and what is refused."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from hermes.errors import ConfigError, StoreUnavailable
from hermes.state.mysql.provider import MySQLSessionDBProvider
from tests.mysql.conftest import plain, rows_of
from tests.support.certificates import certificates
from tests.support.servers import private_server, server_or_skip
from tests.support.stores import engine_of

HOST = "127.0.0.1"
ELSEWHERE = "127.1"
"""This machine too, but written so that only the resolver of names knows it."""
SETUP = (
    "CREATE DATABASE hermes",
    "CREATE USER hermes@'%' IDENTIFIED BY 'secret'",
    "CREATE USER careful@'%' IDENTIFIED BY 'secret' REQUIRE X509",
    "GRANT ALL ON hermes.* TO hermes@'%', careful@'%'",
)


@dataclass(frozen=True, slots=True)
class Place:
    """A server that can be reached over TCP, and the certificates around it."""

    administrator: str
    """The DSN of somebody who may do everything."""
    port: int
    authority: Path
    """Has signed the server's certificate, which names 127.0.0.1 and no other host."""
    stranger: Path
    """An authority that has signed nothing here."""
    client: tuple[Path, Path]
    """The certificate of a client, and its key."""

    def dsn(self, *options: str, user: str = "hermes", host: str = HOST) -> str:
        """How to connect to it with options such as `ssl_ca=ca.pem`."""
        return f"mysql://{user}:secret@{host}:{self.port}/hermes?{'&'.join(options)}".removesuffix("?")


def running(*, has_tls: bool) -> Iterator[Place]:
    """A private server that listens on a port of this machine."""
    with socket.create_server((HOST, 0)) as line:
        port = line.getsockname()[1]
    with ExitStack() as stack:
        made = stack.enter_context(certificates())
        authority, stranger = made.authority("authority"), made.authority("stranger")
        certificate, key = made.issue(authority, "server", names=f"IP:{HOST},DNS:{ELSEWHERE}")
        settings = {"skip-networking": "0", "bind-address": HOST, "port": str(port), "ssl": "0"}
        if has_tls:
            settings |= {"ssl": "1", "ssl-ca": str(authority), "ssl-cert": str(certificate), "ssl-key": str(key)}
        server = server_or_skip(lambda: stack.enter_context(private_server("mysql", **settings)))
        with plain(server.dsn) as outside:
            for statement in SETUP:
                rows_of(outside, statement)
        yield Place(server.dsn, port, authority, stranger, made.issue(authority, "client"))


@pytest.fixture(scope="module")
def secret() -> Iterator[Place]:
    """A server that can encrypt."""
    yield from running(has_tls=True)


@pytest.fixture(scope="module")
def open_server() -> Iterator[Place]:
    """A server that cannot."""
    yield from running(has_tls=False)


def cipher(dsn: str) -> str:
    """With what a store's connection is encrypted; empty: with nothing."""
    with MySQLSessionDBProvider(dsn) as store:
        found: tuple[str, str] = engine_of(store).read(lambda tx: tx.rows("SHOW STATUS LIKE 'Ssl_cipher'"))[0]
    return found[1]


class TestAServerThatCanEncrypt:
    def test_is_asked_to_without_any_option(self, secret: Place) -> None:
        assert cipher(secret.dsn())

    def test_is_trusted_if_its_authority_is_named(self, secret: Place) -> None:
        assert cipher(secret.dsn(f"ssl_ca={secret.authority}"))

    def test_is_trusted_if_it_also_is_who_it_says(self, secret: Place) -> None:
        assert cipher(secret.dsn(f"ssl_ca={secret.authority}", "ssl_verify_identity=true"))

    def test_is_spoken_to_by_whoever_does_not_look(self, secret: Place) -> None:
        assert cipher(secret.dsn("ssl_verify_cert=false"))
        assert cipher(secret.dsn(f"ssl_ca={secret.stranger}", "ssl_verify_cert=false"))

    def test_is_not_asked_to_if_that_is_said(self, secret: Place) -> None:
        assert cipher(secret.dsn("ssl_disabled=true")) == ""

    @pytest.mark.parametrize("more", [[], ["ssl_verify_cert=true"], ["ssl_verify_identity=true"]])
    def test_is_refused_if_another_authority_is_named(self, secret: Place, more: list[str]) -> None:
        with pytest.raises(StoreUnavailable, match="certificate verify failed") as caught:
            MySQLSessionDBProvider(secret.dsn(f"ssl_ca={secret.stranger}", *more))
        assert "ssl_ca" in caught.value.hint

    @pytest.mark.parametrize("option", ["ssl_verify_cert=true", "ssl_verify_identity=true"])
    def test_is_refused_if_nobody_on_this_machine_knows_its_authority(self, secret: Place, option: str) -> None:
        with pytest.raises(StoreUnavailable, match="certificate verify failed"):
            MySQLSessionDBProvider(secret.dsn(option))

    def test_is_refused_under_another_name_if_that_is_looked_at(self, secret: Place) -> None:
        elsewhere = secret.dsn(f"ssl_ca={secret.authority}", host="localhost")
        assert cipher(elsewhere)
        with pytest.raises(StoreUnavailable, match="localhost") as caught:
            MySQLSessionDBProvider(f"{elsewhere}&ssl_verify_identity=true")
        assert "names the host" in caught.value.hint

    def test_may_insist_on_it(self, secret: Place) -> None:
        with plain(secret.administrator) as outside:
            rows_of(outside, "SET GLOBAL require_secure_transport = ON")
            try:
                assert cipher(secret.dsn())
                with pytest.raises(StoreUnavailable, match="refused the connection") as caught:
                    MySQLSessionDBProvider(secret.dsn("ssl_disabled=true"))
            finally:
                rows_of(outside, "SET GLOBAL require_secure_transport = OFF")
        assert "TLS" in caught.value.hint

    def test_sees_the_certificate_of_the_client(self, secret: Place) -> None:
        certificate, key = secret.client
        shown = (f"ssl_ca={secret.authority}", f"ssl_cert={certificate}", f"ssl_key={key}")
        assert cipher(secret.dsn(*shown, user="careful"))
        with pytest.raises(StoreUnavailable):
            MySQLSessionDBProvider(secret.dsn(shown[0], user="careful"))

    def test_keeps_everything_that_a_store_does(self, secret: Place) -> None:
        with MySQLSessionDBProvider(secret.dsn(f"ssl_ca={secret.authority}")) as store:
            store.create_session("s", "cli")
            store.append_messages("s", [{"role": "user", "content": "x" * 50_000} for _ in range(200)])
            assert store.message_count("s") == 200


class TestAServerOnAnotherMachine:
    @pytest.mark.parametrize("more", [[], ["ssl_cert={client[0]}", "ssl_key={client[1]}"]])
    def test_is_refused_if_nobody_on_this_machine_knows_its_authority(self, secret: Place, more: list[str]) -> None:
        with pytest.raises(StoreUnavailable, match="certificate verify failed") as caught:
            MySQLSessionDBProvider(secret.dsn(*(each.format(client=secret.client) for each in more), host=ELSEWHERE))
        assert "ssl_ca" in caught.value.hint
        assert "ssl_disabled=true" in caught.value.hint

    def test_is_trusted_if_this_machine_knows_its_authority(
        self, secret: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(secret.authority))
        assert cipher(secret.dsn(host=ELSEWHERE))

    def test_is_refused_under_a_name_that_its_certificate_lacks(
        self, secret: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(secret.authority))
        with pytest.raises(StoreUnavailable, match=r"0x7f\.1"):
            MySQLSessionDBProvider(secret.dsn(host="0x7f.1"))

    @pytest.mark.parametrize("option", ["ssl_ca={ca}", "ssl_verify_cert=false", "ssl_disabled=true"])
    def test_is_checked_as_the_dsn_says(self, secret: Place, option: str) -> None:
        is_secret = cipher(secret.dsn(option.format(ca=secret.authority), host=ELSEWHERE)) != ""
        assert is_secret is (option != "ssl_disabled=true")

    def test_is_refused_if_it_cannot_encrypt(self, open_server: Place) -> None:
        with pytest.raises(StoreUnavailable, match="SSL is required") as caught:
            MySQLSessionDBProvider(open_server.dsn(host=ELSEWHERE))
        assert "ssl_disabled=true" in caught.value.hint
        assert cipher(open_server.dsn("ssl_disabled=true", host=ELSEWHERE)) == ""


class TestAServerThatCannot:
    @pytest.mark.parametrize("option", ["ssl_ca={ca}", "ssl_verify_cert=false", "ssl_verify_identity=true"])
    def test_is_refused_if_it_must(self, open_server: Place, option: str) -> None:
        with pytest.raises(StoreUnavailable, match="SSL is required") as caught:
            MySQLSessionDBProvider(open_server.dsn(option.format(ca=open_server.authority)))
        assert "turn TLS on" in caught.value.hint

    def test_is_used_if_nothing_is_said(self, open_server: Place) -> None:
        assert cipher(open_server.dsn()) == ""


class TestFilesThatCannotBeUsed:
    @pytest.mark.parametrize("option", ["ssl_ca", "ssl_cert", "ssl_key"])
    @pytest.mark.parametrize("content", [None, "no certificate"])
    def test_are_named(self, tmp_path: Path, option: str, content: str | None) -> None:
        file = tmp_path / "file.pem"
        if content is not None:
            file.write_text(content)
        with pytest.raises(ConfigError, match=option):
            MySQLSessionDBProvider(f"mysql://hermes@{HOST}:1/hermes?{option}={file}")
