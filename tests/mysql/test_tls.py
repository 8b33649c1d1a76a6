"""Encrypted connections: which servers are trusted, and which are refused."""

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
"""This machine too, but under a name that only the resolver knows."""
SETUP = (
    "CREATE DATABASE hermes",
    "CREATE USER hermes@'%' IDENTIFIED BY 'secret'",
    "CREATE USER careful@'%' IDENTIFIED BY 'secret' REQUIRE X509",
    "GRANT ALL ON hermes.* TO hermes@'%', careful@'%'",
)


@dataclass(frozen=True, slots=True)
class Place:
    """A server that listens on TCP, and its certificates."""

    administrator: str
    """The DSN of an administrator."""
    port: int
    authority: Path
    """The authority that signed the server's certificate, which names only 127.0.0.1."""
    stranger: Path
    """An authority that signed nothing here."""
    client: tuple[Path, Path]
    """The certificate of a client, and its key."""

    def dsn(self, *options: str, user: str = "hermes", host: str = HOST) -> str:
        """The DSN with options such as `ssl_ca=ca.pem`."""
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
    """A server with TLS."""
    yield from running(has_tls=True)


@pytest.fixture(scope="module")
def open_server() -> Iterator[Place]:
    """A server without TLS."""
    yield from running(has_tls=False)


def cipher(dsn: str) -> str:
    """The cipher of a store's connection; empty if it is not encrypted."""
    with MySQLSessionDBProvider(dsn) as store:
        found: tuple[str, str] = engine_of(store).read(lambda tx: tx.rows("SHOW STATUS LIKE 'Ssl_cipher'"))[0]
    return found[1]


class TestServerWithTls:
    def test_connection_is_encrypted_by_default(self, secret: Place) -> None:
        assert cipher(secret.dsn())

    def test_server_is_trusted_with_its_authority(self, secret: Place) -> None:
        assert cipher(secret.dsn(f"ssl_ca={secret.authority}"))

    def test_server_is_trusted_with_the_right_host_name(self, secret: Place) -> None:
        assert cipher(secret.dsn(f"ssl_ca={secret.authority}", "ssl_verify_identity=true"))

    def test_server_is_used_without_a_check_of_its_certificate(self, secret: Place) -> None:
        assert cipher(secret.dsn("ssl_verify_cert=false"))
        assert cipher(secret.dsn(f"ssl_ca={secret.stranger}", "ssl_verify_cert=false"))

    def test_encryption_can_be_turned_off(self, secret: Place) -> None:
        assert cipher(secret.dsn("ssl_disabled=true")) == ""

    @pytest.mark.parametrize("more", [[], ["ssl_verify_cert=true"], ["ssl_verify_identity=true"]])
    def test_server_is_refused_with_another_authority(self, secret: Place, more: list[str]) -> None:
        with pytest.raises(StoreUnavailable, match="certificate verify failed") as caught:
            MySQLSessionDBProvider(secret.dsn(f"ssl_ca={secret.stranger}", *more))
        assert "ssl_ca" in caught.value.hint

    @pytest.mark.parametrize("option", ["ssl_verify_cert=true", "ssl_verify_identity=true"])
    def test_server_with_an_unknown_authority_is_refused(self, secret: Place, option: str) -> None:
        with pytest.raises(StoreUnavailable, match="certificate verify failed"):
            MySQLSessionDBProvider(secret.dsn(option))

    def test_server_is_refused_under_another_name(self, secret: Place) -> None:
        elsewhere = secret.dsn(f"ssl_ca={secret.authority}", host="localhost")
        assert cipher(elsewhere)
        with pytest.raises(StoreUnavailable, match="localhost") as caught:
            MySQLSessionDBProvider(f"{elsewhere}&ssl_verify_identity=true")
        assert "names the host" in caught.value.hint

    def test_server_may_require_tls(self, secret: Place) -> None:
        with plain(secret.administrator) as outside:
            rows_of(outside, "SET GLOBAL require_secure_transport = ON")
            try:
                assert cipher(secret.dsn())
                with pytest.raises(StoreUnavailable, match="refused the connection") as caught:
                    MySQLSessionDBProvider(secret.dsn("ssl_disabled=true"))
            finally:
                rows_of(outside, "SET GLOBAL require_secure_transport = OFF")
        assert "TLS" in caught.value.hint

    def test_server_checks_the_certificate_of_the_client(self, secret: Place) -> None:
        certificate, key = secret.client
        shown = (f"ssl_ca={secret.authority}", f"ssl_cert={certificate}", f"ssl_key={key}")
        assert cipher(secret.dsn(*shown, user="careful"))
        with pytest.raises(StoreUnavailable):
            MySQLSessionDBProvider(secret.dsn(shown[0], user="careful"))

    def test_store_works_over_tls(self, secret: Place) -> None:
        with MySQLSessionDBProvider(secret.dsn(f"ssl_ca={secret.authority}")) as store:
            store.create_session("s", "cli")
            store.append_messages("s", [{"role": "user", "content": "x" * 50_000} for _ in range(200)])
            assert store.message_count("s") == 200


class TestServerOnAnotherMachine:
    @pytest.mark.parametrize("more", [[], ["ssl_cert={client[0]}", "ssl_key={client[1]}"]])
    def test_server_with_an_unknown_authority_is_refused(self, secret: Place, more: list[str]) -> None:
        with pytest.raises(StoreUnavailable, match="certificate verify failed") as caught:
            MySQLSessionDBProvider(secret.dsn(*(each.format(client=secret.client) for each in more), host=ELSEWHERE))
        assert "ssl_ca" in caught.value.hint
        assert "ssl_disabled=true" in caught.value.hint

    def test_server_with_a_system_authority_is_trusted(self, secret: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(secret.authority))
        assert cipher(secret.dsn(host=ELSEWHERE))

    def test_server_is_refused_under_a_name_not_in_its_certificate(
        self, secret: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(secret.authority))
        with pytest.raises(StoreUnavailable, match=r"0x7f\.1"):
            MySQLSessionDBProvider(secret.dsn(host="0x7f.1"))

    @pytest.mark.parametrize("option", ["ssl_ca={ca}", "ssl_verify_cert=false", "ssl_disabled=true"])
    def test_dsn_decides_how_the_server_is_checked(self, secret: Place, option: str) -> None:
        is_secret = cipher(secret.dsn(option.format(ca=secret.authority), host=ELSEWHERE)) != ""
        assert is_secret is (option != "ssl_disabled=true")

    def test_server_without_tls_is_refused(self, open_server: Place) -> None:
        with pytest.raises(StoreUnavailable, match="SSL is required") as caught:
            MySQLSessionDBProvider(open_server.dsn(host=ELSEWHERE))
        assert "ssl_disabled=true" in caught.value.hint
        assert cipher(open_server.dsn("ssl_disabled=true", host=ELSEWHERE)) == ""


class TestServerWithoutTls:
    @pytest.mark.parametrize("option", ["ssl_ca={ca}", "ssl_verify_cert=false", "ssl_verify_identity=true"])
    def test_server_is_refused_if_tls_is_required(self, open_server: Place, option: str) -> None:
        with pytest.raises(StoreUnavailable, match="SSL is required") as caught:
            MySQLSessionDBProvider(open_server.dsn(option.format(ca=open_server.authority)))
        assert "turn TLS on" in caught.value.hint

    def test_server_is_used_by_default(self, open_server: Place) -> None:
        assert cipher(open_server.dsn()) == ""


class TestUnusableFiles:
    @pytest.mark.parametrize("option", ["ssl_ca", "ssl_cert", "ssl_key"])
    @pytest.mark.parametrize("content", [None, "no certificate"])
    def test_unusable_file_is_an_error_with_its_option(self, tmp_path: Path, option: str, content: str | None) -> None:
        file = tmp_path / "file.pem"
        if content is not None:
            file.write_text(content)
        with pytest.raises(ConfigError, match=option):
            MySQLSessionDBProvider(f"mysql://hermes@{HOST}:1/hermes?{option}={file}")
