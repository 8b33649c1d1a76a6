"""Encrypted connections: libpq makes them, and our settings do not get in its way."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from hermes.errors import StoreUnavailable
from hermes.state.postgres.provider import PostgreSQLSessionDBProvider
from tests.support.certificates import certificates
from tests.support.servers import private_server, server_or_skip
from tests.support.stores import engine_of

NAME = "db.internal"


@dataclass(frozen=True, slots=True)
class Place:
    """A server that listens on TCP, and its certificates."""

    address: str
    authority: Path
    """The authority that signed the server's certificate, which names one host."""
    stranger: Path
    """An authority that signed nothing here."""

    def dsn(self, *options: str, host: str = NAME) -> str:
        """The DSN for a host name, with options such as `sslmode=require`."""
        return f"postgresql://postgres@{host}/postgres?hostaddr={self.address}&{'&'.join(options)}"


@pytest.fixture(scope="module", params=["on", "off"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """A server with or without TLS, on an address of this machine that no other server uses."""
    address = f"127.{'.'.join(str(1 + secrets.randbelow(253)) for _ in range(3))}"
    with ExitStack() as stack:
        made = stack.enter_context(certificates())
        authority, stranger = made.authority("authority"), made.authority("stranger")
        certificate, key = made.issue(authority, "server", names=f"DNS:{NAME}")
        files = {"ssl_cert_file": str(certificate), "ssl_key_file": str(key)} if request.param == "on" else {}
        running = private_server("postgresql", listen_addresses=address, ssl=request.param, **files)
        server_or_skip(lambda: stack.enter_context(running))
        yield Place(address, authority, stranger)


def is_encrypted(dsn: str) -> bool:
    """Whether a store's connection is encrypted."""
    with PostgreSQLSessionDBProvider(dsn) as store:
        sql = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
        return bool(engine_of(store).read(lambda tx: tx.value(sql)))


@pytest.mark.parametrize("place", ["on"], indirect=True)
class TestServerWithTls:
    @pytest.mark.parametrize("mode", ["require", "verify-ca", "verify-full"])
    def test_server_is_trusted_with_its_authority(self, place: Place, mode: str) -> None:
        assert is_encrypted(place.dsn(f"sslmode={mode}", f"sslrootcert={place.authority}"))

    def test_server_is_refused_with_another_authority(self, place: Place) -> None:
        with pytest.raises(StoreUnavailable, match="certificate verify failed") as caught:
            PostgreSQLSessionDBProvider(place.dsn("sslmode=verify-ca", f"sslrootcert={place.stranger}"))
        assert caught.value.hint

    def test_server_is_refused_under_another_name(self, place: Place) -> None:
        with pytest.raises(StoreUnavailable, match="does not match host name"):
            PostgreSQLSessionDBProvider(
                place.dsn("sslmode=verify-full", f"sslrootcert={place.authority}", host="elsewhere")
            )

    def test_encryption_can_be_turned_off(self, place: Place) -> None:
        assert not is_encrypted(place.dsn("sslmode=disable"))


@pytest.mark.parametrize("place", ["on"], indirect=True)
class TestServerOnAnotherMachine:
    def test_server_with_an_unknown_authority_is_refused(self, place: Place) -> None:
        with pytest.raises(StoreUnavailable, match="certificate verify failed") as caught:
            PostgreSQLSessionDBProvider(place.dsn())
        assert "sslrootcert" in caught.value.hint
        assert "sslmode=disable" in caught.value.hint

    def test_server_is_trusted_with_its_authority(self, place: Place) -> None:
        assert is_encrypted(place.dsn(f"sslrootcert={place.authority}"))

    def test_server_with_a_system_authority_is_trusted(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(place.authority))
        assert is_encrypted(place.dsn())

    def test_server_is_refused_under_a_name_not_in_its_certificate(self, place: Place) -> None:
        with pytest.raises(StoreUnavailable, match="does not match host name"):
            PostgreSQLSessionDBProvider(place.dsn(f"sslrootcert={place.authority}", host="elsewhere"))

    @pytest.mark.parametrize("mode", ["disable", "prefer", "require"])
    def test_dsn_decides_how_the_server_is_checked(self, place: Place, mode: str) -> None:
        assert is_encrypted(place.dsn(f"sslmode={mode}")) is (mode != "disable")

    def test_environment_decides_how_the_server_is_checked(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PGSSLMODE", "require")
        assert is_encrypted(place.dsn())

    def test_server_is_checked_if_one_of_several_hosts_is_remote(self, place: Place) -> None:
        with pytest.raises(StoreUnavailable, match="certificate verify failed"):
            PostgreSQLSessionDBProvider(
                place.dsn(host=f"localhost,{NAME}").replace("hostaddr=", f"hostaddr={place.address},")
            )


@pytest.mark.parametrize("place", ["off"], indirect=True)
def test_remote_server_without_tls_is_refused(place: Place) -> None:
    with pytest.raises(StoreUnavailable, match="does not support SSL") as caught:
        PostgreSQLSessionDBProvider(place.dsn())
    assert "sslmode=disable" in caught.value.hint


@pytest.mark.parametrize("place", ["on", "off"], indirect=True)
def test_a_server_on_this_machine_needs_no_certificate(place: Place) -> None:
    with PostgreSQLSessionDBProvider(f"postgresql://postgres@{place.address}/postgres") as store:
        assert store.session_count() >= 0


@pytest.mark.parametrize("place", ["off"], indirect=True)
def test_server_without_tls_is_refused_if_tls_is_required(place: Place) -> None:
    assert not is_encrypted(place.dsn("sslmode=prefer"))
    with pytest.raises(StoreUnavailable, match="does not support SSL"):
        PostgreSQLSessionDBProvider(place.dsn("sslmode=require"))
