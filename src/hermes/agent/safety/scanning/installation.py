"""Installs Tirith from the address that the operator has configured; nothing runs before its checksum is verified."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import tarfile
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from hermes.agent.safety.environment import command_environment
from hermes.agent.safety.scanning.scanner import INSTALLED
from hermes.errors import ConfigError
from hermes.home import ensure_private_dir, sync_directory

BIN, _, NAME = INSTALLED.partition("/")
RETRY_S = 24 * 3600.0
"""After a failure the download is not tried again for this time."""

_MAX_BYTES = 64 * 1024 * 1024
_MAX_REDIRECTS = 5
_TIMEOUT_S = 60.0
_FAILED = ".tirith-install-failed"
_GZIP = b"\x1f\x8b"
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class InstallFailed(Exception):
    """Tirith was not installed."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where Tirith comes from, and how a download is verified."""

    url: str
    sha256: str
    """The checksum of the downloaded file."""
    cosign_key: str | None = None
    """A public key for cosign, if the operator has one."""


def installed_path(home: Path) -> Path:
    """Return where Tirith is installed."""
    return home / INSTALLED


def may_try(home: Path, now: float) -> bool:
    """Whether no download has failed in the last day."""
    try:
        return now - (home / BIN / _FAILED).stat().st_mtime > RETRY_S
    except OSError:
        return True


def install(home: Path, source: Source, *, cosign: str | None, timeout_s: float = _TIMEOUT_S) -> Path:
    """Download, verify and store Tirith, and return its path; raise `InstallFailed` and remember the failure.

    `cosign` is the path of that program; None: only the checksum is verified.
    """
    ensure_private_dir(home / BIN)
    try:
        data = download(source.url, timeout_s)
        verify_checksum(data, source.sha256)
        if cosign is not None and source.cosign_key is not None:
            verify_signature(data, download(f"{source.url}.sig", timeout_s), source.cosign_key, cosign)
        _store(installed_path(home), unpack(data))
    except (InstallFailed, ConfigError):
        (home / BIN / _FAILED).touch(0o600)
        raise
    (home / BIN / _FAILED).unlink(missing_ok=True)
    return installed_path(home)


def verify_checksum(data: bytes, sha256: str) -> None:
    """Raise `InstallFailed` unless the data has this checksum."""
    found = hashlib.sha256(data).hexdigest()
    if found != sha256.strip().lower():
        raise InstallFailed(f"the downloaded file has the checksum {found}, which is not security.tirith_sha256")


def verify_signature(data: bytes, signature: bytes, key: str, cosign: str) -> None:
    """Raise `InstallFailed` unless cosign accepts the signature."""
    with tempfile.TemporaryDirectory(prefix="hermes-cosign-") as directory:
        blob, proof = Path(directory, "blob"), Path(directory, "blob.sig")
        blob.write_bytes(data)
        proof.write_bytes(signature)
        command = [cosign, "verify-blob", "--key", os.path.expanduser(key), "--signature", str(proof), str(blob)]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TIMEOUT_S,
                env=command_environment(os.environ),  # without secrets
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InstallFailed(f"cosign could not be run: {type(error).__name__}") from None
    if done.returncode != 0:
        raise InstallFailed("cosign rejects the signature of the downloaded file")


def unpack(data: bytes) -> bytes:
    """Return the program in a download: the download itself, or the file `tirith` in a .tar.gz archive."""
    if not data.startswith(_GZIP):
        return data
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r|gz") as archive:
            read = 0
            for member in archive:
                read += member.size
                if read > _MAX_BYTES:
                    raise InstallFailed("the archive is too large")
                if member.isreg() and member.name.rpartition("/")[2] == NAME:
                    file = archive.extractfile(member)
                    assert file is not None
                    return file.read(_MAX_BYTES)
    except (tarfile.TarError, OSError, EOFError):
        raise InstallFailed("the downloaded archive cannot be read") from None
    raise InstallFailed(f"the downloaded archive has no file {NAME}")


def check_url(url: str) -> None:
    """Raise `ConfigError` for an address without encryption, unless it is on this machine."""
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        raise ConfigError(
            "security.tirith_install_url must begin with https://", hint="write the address of a release file"
        )


def download(url: str, timeout_s: float) -> bytes:
    """Return the file at an address; it has a maximum size and a maximum time."""
    import httpx2

    def refuse_plain(request: httpx2.Request) -> None:
        check_url(str(request.url))

    deadline, data = time.monotonic() + timeout_s, bytearray()
    try:
        with (
            httpx2.Client(
                follow_redirects=True,
                max_redirects=_MAX_REDIRECTS,
                timeout=timeout_s,
                event_hooks={"request": [refuse_plain]},
            ) as client,
            client.stream("GET", url) as response,
        ):
            if response.status_code != httpx2.codes.OK:
                raise InstallFailed(f"the server returned status {response.status_code}")
            for chunk in response.iter_bytes():
                data += chunk
                if len(data) > _MAX_BYTES or time.monotonic() > deadline:
                    raise InstallFailed("the download is too large or took too long")
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        raise InstallFailed(f"the download failed: {type(error).__name__}") from None
    return bytes(data)


def _store(path: Path, program: bytes) -> None:
    draft = path.with_name(f".{NAME}-{os.urandom(6).hex()}.tmp")
    try:
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700)
        with os.fdopen(fd, "wb") as file:
            file.write(program)
            os.fchmod(fd, 0o700)
            file.flush()
            os.fsync(fd)
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)
