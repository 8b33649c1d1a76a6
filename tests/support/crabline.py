"""Crabline: an independent server of chat platforms, which real client libraries talk to."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.support.fetched import node, npm_package
from tests.support.servers import skip_or_fail
from tests.support.waiting import LIMIT_S, wait_until

PACKAGE, VERSION = "@openclaw/crabline", "0.1.27"
START_S = 60.0


def find() -> Path:
    """Return the program, which is installed if necessary; raise OSError if it cannot be."""
    return npm_package(PACKAGE, VERSION) / "dist" / "src" / "bin" / "crabline.js"


class Crabline:
    """One server of a platform: users write with `say`, and `calls` are the requests of the bot."""

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        self.manifest = manifest
        self.api_root = str(manifest["endpoints"]["apiRoot"])

    def say(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Let a user send a message, in the form that the platform's control address takes; return what it says."""
        headers = {"Content-Type": "application/json", "X-Crabline-Admin-Token": str(self.manifest["adminToken"])}
        address = str(self.manifest["endpoints"]["adminInboundUrl"])
        request = urllib.request.Request(address, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=LIMIT_S) as response:
                found: dict[str, Any] = json.load(response)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"crabline refused a message: {error.read().decode(errors='replace')}") from error
        return found

    @property
    def events(self) -> list[dict[str, Any]]:
        """Everything that the server was asked, the oldest first."""
        file = Path(str(self.manifest["recorderPath"]))
        lines = file.read_text("utf-8").splitlines() if file.exists() else []
        return [json.loads(line) for line in lines]

    def calls(self, method: str) -> list[dict[str, Any]]:
        """The requests of the bot to a path that ends with this method."""
        return [each for each in self.events if str(each.get("path", "")).lower().endswith(f"/{method.lower()}")]


@contextlib.contextmanager
def crabline(platform: str, *options: str, **credentials: str) -> Iterator[Crabline]:
    """Run a server of a platform for one test: `telegram`, `whatsapp` or another that crabline has.

    Credentials such as `botToken` and `accessToken` are made by the server if the test names none.
    """
    try:
        program, script = node(), find()
    except OSError as error:
        skip_or_fail(f"crabline is not available: {error}")
    with tempfile.TemporaryDirectory(prefix="hermes-") as place:
        ready = Path(place, "ready.json")
        files = ("--ready-file", str(ready), "--recorder", str(Path(place, "calls.jsonl")))
        process = subprocess.Popen(
            [str(program), str(script), "--json", "serve", platform, *files, "--credentials-fd", "0", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=place,
            env={"PATH": os.environ.get("PATH", ""), "HOME": place},
        )
        assert process.stdin is not None
        assert process.stderr is not None
        with process.stderr:
            try:
                with process.stdin as stdin:
                    stdin.write(json.dumps(credentials).encode())
                wait_until(lambda: _is_ready(ready) or process.poll() is not None, "crabline to start", START_S)
                if process.poll() is not None:
                    skip_or_fail(f"crabline does not start: {process.stderr.read().decode(errors='replace')[-500:]}")
                yield Crabline(json.loads(ready.read_text("utf-8")))
            finally:
                process.kill()
                process.wait(LIMIT_S)


def _is_ready(file: Path) -> bool:
    try:
        return bool(json.loads(file.read_text("utf-8")))
    except (FileNotFoundError, json.JSONDecodeError):
        return False
