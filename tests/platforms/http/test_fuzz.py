"""Requests that a fuzzer makes from the API's own description: none of them makes the server fail."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from tests.platforms.http.api_gateway import KEYS, serving
from tests.platforms.local_gateway import run
from tests.support.modelserver import ModelServer

FUZZER = Path(sys.executable).with_name("schemathesis")


def fuzz(url: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the fuzzer against a server."""
    command = [str(FUZZER), "--config-file", str(folder / "none.toml"), "run", f"{url}/openapi.json"]
    command += ["--header", f"Authorization: Bearer {KEYS['ann']}", "--checks", "not_a_server_error"]
    command += ["--phases", "fuzzing", "--max-examples", "8", "--seed", "1", "--no-color"]
    (folder / "none.toml").write_text("")
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=100, check=False)


def test_no_request_of_a_fuzzer_makes_the_server_fail(home: Path) -> None:
    async def test() -> None:
        with ModelServer() as model:
            async with serving(home, model.base_url) as gateway:
                result = await asyncio.to_thread(fuzz, gateway.server.url, home)
                assert result.returncode == 0, result.stdout[-6000:] + result.stderr[-2000:]

    run(test())
