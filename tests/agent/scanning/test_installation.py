"""The installation of Tirith from a local server."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from hermes.agent.safety.scanning.installation import InstallFailed, Source, install, may_try, unpack
from hermes.agent.safety.scanning.scanner import CommandScanner
from hermes.config import SecurityConfig
from tests.agent.scanning.fake_tirith import write_program

PROGRAM = b"#!/bin/sh\nexit 2\n"


class FileServer:
    """A server with a few files; it notes what was requested."""

    def __init__(self) -> None:
        self.files: dict[str, bytes | str] = {}
        self.requested: list[str] = []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                owner.requested.append(self.path)
                found = owner.files.get(self.path)
                if isinstance(found, str):
                    self.send_response(302)
                    self.send_header("location", found)
                else:
                    self.send_response(404 if found is None else 200)
                body = found if isinstance(found, bytes) else b""
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                """Write nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self._server.serve_forever, daemon=True).start()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._server.server_port}{path}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[FileServer]:
    server = FileServer()
    yield server
    server.close()


def source_of(server: FileServer, data: bytes, key: str | None = None, path: str = "/tirith") -> Source:
    server.files[path] = data
    return Source(server.url(path), hashlib.sha256(data).hexdigest(), key)


def archive_of(name: str, data: bytes, kind: bytes = tarfile.REGTYPE) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.type, member.size = kind, len(data) if kind == tarfile.REGTYPE else 0
        member.linkname = "/bin/sh"
        archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def test_verified_program_is_installed_for_its_owner_only(tmp_path: Path, server: FileServer) -> None:
    path = install(tmp_path, source_of(server, PROGRAM), cosign=None)
    assert path == tmp_path / "bin" / "tirith"
    assert path.read_bytes() == PROGRAM
    assert path.stat().st_mode & 0o777 == 0o700


def test_program_in_an_archive_is_installed(tmp_path: Path, server: FileServer) -> None:
    path = install(tmp_path, source_of(server, archive_of("tirith-1.0/tirith", PROGRAM)), cosign=None)
    assert path.read_bytes() == PROGRAM


def test_other_checksum_installs_nothing(tmp_path: Path, server: FileServer) -> None:
    source = source_of(server, PROGRAM)
    server.files["/tirith"] = PROGRAM + b"# changed"
    with pytest.raises(InstallFailed, match="checksum"):
        install(tmp_path, source, cosign=None)
    assert not (tmp_path / "bin" / "tirith").exists()
    assert os.listdir(tmp_path / "bin") == [".tirith-install-failed"]


@pytest.mark.parametrize(
    "data",
    [b"\x1f\x8bnot gzip", gzip.compress(b"not tar"), archive_of("other", PROGRAM)],
    ids=["not gzip", "not tar", "other file"],
)
def test_archive_without_the_program_is_refused(data: bytes) -> None:
    with pytest.raises(InstallFailed):
        unpack(data)


def test_link_in_an_archive_is_not_the_program() -> None:
    with pytest.raises(InstallFailed):
        unpack(archive_of("tirith", b"", tarfile.SYMTYPE))


def test_redirect_to_an_unencrypted_address_is_refused(tmp_path: Path, server: FileServer) -> None:
    server.files["/tirith"] = "http://example.org/tirith"
    with pytest.raises(Exception, match="https"):
        install(tmp_path, Source(server.url("/tirith"), "0" * 64), cosign=None)
    assert not may_try(tmp_path, (tmp_path / "bin" / ".tirith-install-failed").stat().st_mtime + 3600)


def test_failure_is_remembered_for_a_day(tmp_path: Path, server: FileServer) -> None:
    assert may_try(tmp_path, 0)
    with pytest.raises(InstallFailed, match="status 404"):
        install(tmp_path, Source(server.url("/nothing"), "0" * 64), cosign=None)
    failed_at = (tmp_path / "bin" / ".tirith-install-failed").stat().st_mtime
    assert not may_try(tmp_path, failed_at + 23 * 3600)
    assert may_try(tmp_path, failed_at + 25 * 3600)


class TestSignature:
    def test_accepted_signature_installs(self, tmp_path: Path, server: FileServer) -> None:
        cosign = write_program(tmp_path / "cosign", f'echo "$@" > {tmp_path}/args')
        server.files["/tirith.sig"] = b"signature"
        install(tmp_path / "home", source_of(server, PROGRAM, "/keys/t.pub"), cosign=str(cosign))
        assert (tmp_path / "args").read_text().startswith("verify-blob --key /keys/t.pub --signature ")

    def test_cosign_gets_no_secrets(self, tmp_path: Path, server: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "s3cret")
        server.files["/tirith.sig"] = b"signature"
        cosign = write_program(tmp_path / "cosign", f"env > {tmp_path}/variables")
        install(tmp_path / "home", source_of(server, PROGRAM, "k"), cosign=str(cosign))
        assert "PATH=" in (tmp_path / "variables").read_text()
        assert "s3cret" not in (tmp_path / "variables").read_text()

    def test_rejected_signature_installs_nothing(self, tmp_path: Path, server: FileServer) -> None:
        cosign = write_program(tmp_path / "cosign", "exit 1")
        server.files["/tirith.sig"] = b"signature"
        with pytest.raises(InstallFailed, match="cosign rejects"):
            install(tmp_path / "home", source_of(server, PROGRAM, "k"), cosign=str(cosign))
        assert not (tmp_path / "home" / "bin" / "tirith").exists()

    def test_missing_signature_installs_nothing(self, tmp_path: Path, server: FileServer) -> None:
        cosign = write_program(tmp_path / "cosign", "exit 0")
        with pytest.raises(InstallFailed):
            install(tmp_path / "home", source_of(server, PROGRAM, "k"), cosign=str(cosign))
        assert not (tmp_path / "home" / "bin" / "tirith").exists()


class TestInBackground:
    def settings(self, source: Source, **fields: Any) -> SecurityConfig:
        return SecurityConfig(tirith_install_url=source.url, tirith_sha256=source.sha256, **fields)

    def test_missing_program_is_installed_and_used_for_the_next_command(
        self, tmp_path: Path, server: FileServer
    ) -> None:
        scanner = CommandScanner(self.settings(source_of(server, PROGRAM)), tmp_path, {"PATH": "/usr/bin:/bin"})
        assert scanner.scan("ls").verdict == "allow"
        scanner.wait_for_installation(30)
        assert scanner.scan("ls").verdict == "warn"
        assert server.requested == ["/tirith"]

    def test_configured_program_is_never_downloaded(self, tmp_path: Path, server: FileServer) -> None:
        settings = self.settings(source_of(server, PROGRAM), tirith_path=str(tmp_path / "own"))
        scanner = CommandScanner(settings, tmp_path, {"PATH": "/usr/bin:/bin"})
        scanner.scan("ls")
        scanner.wait_for_installation(5)
        assert server.requested == []

    def test_without_an_address_nothing_is_downloaded(self, tmp_path: Path, server: FileServer) -> None:
        scanner = CommandScanner(SecurityConfig(), tmp_path, {"PATH": "/usr/bin:/bin"})
        scanner.scan("ls")
        scanner.wait_for_installation(5)
        assert server.requested == []
        assert not (tmp_path / "bin").exists()
