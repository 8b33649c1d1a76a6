"""Chromium for tests: a page as a reader sees it, without a window, driven through two pipes."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support import packages
from tests.support.servers import RUN

PROGRAM = "chromium"
PACKAGES = (PROGRAM, "fonts-dejavu-core")
PATIENCE_S = packages.PATIENCE_S + 60
"""The time limit of a test that needs Chromium, which may have to be installed first."""

_NOTE = f"{PROGRAM}.not-found"
_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
    "--no-first-run",
)


def find() -> str:
    """Return the program, installed if necessary; raise OSError if it is not available."""
    if found := shutil.which(PROGRAM):
        return found
    place = Path(os.environ.get(RUN, tempfile.gettempdir()))
    with open(place / f"{PROGRAM}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if shutil.which(PROGRAM) is None and not (place / _NOTE).exists():
            packages.install(*PACKAGES)
        if found := shutil.which(PROGRAM):
            return found
        reason = "it is not on the path and cannot be installed"
        (place / _NOTE).write_text(reason)
    raise OSError(reason)


class Chromium:
    """A running Chromium inside the block, with one page."""

    def __init__(self, directory: Path) -> None:
        self.events: list[dict[str, Any]] = []
        """What Chromium has reported: requests, messages of the console and so on."""
        self._number = 0
        self._buffer = b""
        to_it, self._to_it = os.pipe()
        self._from_it, from_it = os.pipe()
        script = 'exec 3<&"$1" 4>&"$2"; shift 2; exec "$@"'
        command = [find(), *_OPTIONS, f"--user-data-dir={directory}", "about:blank"]
        self._process = subprocess.Popen(
            ["bash", "-c", script, "bash", str(to_it), str(from_it), *command],
            pass_fds=(to_it, from_it),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_it)
        os.close(from_it)
        self._session = ""

    def __enter__(self) -> Self:
        page = next(each for each in self.call("Target.getTargets")["targetInfos"] if each["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._to_it)
        os.close(self._from_it)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of Chromium's protocol and return its result."""
        self._number += 1
        request: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            request["sessionId"] = self._session
        os.write(self._to_it, json.dumps(request).encode() + b"\0")
        while (message := self._receive()).get("id") != self._number:
            self.events.append(message)
        assert "error" not in message, message
        return dict(message["result"])

    def open(self, file: Path, width: int, height: int = 900, *, is_dark: bool = False) -> None:
        """Show a file in a window of a size, and wait until it is loaded."""
        self.events.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=file.resolve().as_uri())
        while not any(each.get("method") == "Page.loadEventFired" for each in self.events):
            self.events.append(self._receive())

    def value(self, expression: str) -> Any:
        """Return the value of an expression in the page; the page itself can run none."""
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"]["value"]

    def picture(self, top: float, height: int) -> bytes:
        """Return a part of the page as a PNG file."""
        width = self.value("innerWidth")
        clip = {"x": 0, "y": top, "width": width, "height": height, "scale": 1}
        return base64.b64decode(
            self.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)["data"]
        )

    @property
    def requested(self) -> list[str]:
        """The addresses that the page has requested."""
        sent = [each["params"] for each in self.events if each.get("method") == "Network.requestWillBeSent"]
        return [each["request"]["url"] for each in sent]

    @property
    def complaints(self) -> list[str]:
        """What Chromium has logged about the page, such as a policy that stopped something."""
        return [each["params"]["entry"]["text"] for each in self.events if each.get("method") == "Log.entryAdded"]

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            data = os.read(self._from_it, 65_536)
            assert data, "Chromium has ended"
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(line))
