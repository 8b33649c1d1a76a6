"""Certificates for tests of TLS, made with openssl."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.privileges import unprivileged
from tests.support.servers import skip_or_fail


class Certificates:
    """Authorities, and certificates that they have signed, in a directory where a server can read them."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def authority(self, name: str) -> Path:
        """Create an authority, and return its certificate."""
        self._openssl(
            *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"),
            *("-keyout", f"{name}.key", "-out", f"{name}.pem"),
            *("-addext", "keyUsage=critical,keyCertSign,cRLSign"),  # Python 3.13 asks for it
        )
        return self._place / f"{name}.pem"

    def issue(self, authority: Path, name: str, *, names: str = "") -> tuple[Path, Path]:
        """Let an authority sign a certificate for names such as `DNS:db,IP:127.0.0.1`; return it and its key."""
        (self._place / f"{name}.ext").write_text(
            f"authorityKeyIdentifier=keyid\n{f'subjectAltName={names}' if names else ''}\n"
        )
        self._openssl(
            *("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}"),
            *("-keyout", f"{name}.key", "-out", f"{name}.csr"),
        )
        self._openssl(
            *("x509", "-req", "-days", "2", "-in", f"{name}.csr", "-out", f"{name}.pem", "-extfile", f"{name}.ext"),
            *("-CA", str(authority), "-CAkey", str(authority.with_suffix(".key")), "-CAcreateserial"),
        )
        key = self._place / f"{name}.key"
        if owner := unprivileged():
            os.chown(key, owner["user"], owner["group"])
        return self._place / f"{name}.pem", key

    def _openssl(self, *arguments: str) -> None:
        subprocess.run(
            ["openssl", *arguments], cwd=self._place, stdin=subprocess.DEVNULL, capture_output=True, check=True
        )


@contextmanager
def certificates() -> Iterator[Certificates]:
    """A temporary directory for certificates; without openssl the test is skipped, or fails in CI."""
    if shutil.which("openssl") is None:
        skip_or_fail("there is no openssl to make certificates with")
    with tempfile.TemporaryDirectory(prefix="hermes-") as place:
        Path(place).chmod(0o755)
        yield Certificates(Path(place))
