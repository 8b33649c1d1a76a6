"""Requests that a fuzzer makes from the API's own description: each gets what the description says, and none a 5xx."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from hermes.platforms.http.openapi import document
from tests.platforms.http.api_gateway import KEYS, ApiGateway, serving
from tests.platforms.local_gateway import run
from tests.support.modelserver import ModelServer

FUZZER = Path(sys.executable).with_name("schemathesis")
CHECKS = (
    "not_a_server_error",
    "content_type_conformance",
    "response_schema_conformance",
    "status_code_conformance",
    "ignored_auth",
)


LIMIT_S = 240.0


def fuzz(url: str, folder: Path, known: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the fuzzer against a server; `known` are the ids that it uses."""
    config = folder / "fuzz.toml"
    lines = [f'"path.{name}" = {json.dumps(value)}' for name, value in known.items()]
    config.write_text("\n".join(["[parameters]", *lines]))
    command = [str(FUZZER), "--config-file", str(config), "run", f"{url}/openapi.json"]
    command += ["--header", f"Authorization: Bearer {KEYS['ann']}", "--checks", ",".join(CHECKS)]
    command += ["--phases", "coverage" if known else "fuzzing", "--max-examples", "5", "--seed", "1", "--no-color"]
    command += ["--exclude-method", "DELETE"] if known else []
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=LIMIT_S, check=False)


async def ids(gateway: ApiGateway) -> dict[str, str]:
    """Return the ids of a conversation that exists."""
    headers = {"Authorization": f"Bearer {KEYS['ann']}"}
    async with httpx.AsyncClient(base_url=gateway.server.url, headers=headers, trust_env=False, timeout=60) as client:
        answer: dict[str, Any] = (await client.post("/v1/responses", json={"input": "hi"})).json()
        conversation = answer["conversation"]["id"]
        items = (await client.get(f"/v1/conversations/{conversation}/items")).json()["data"]
    found = {"response_id": answer["id"], "conversation_id": conversation, "session_id": answer["session_id"]}
    return {**found, "item_id": items[0]["id"], "model": "hermes"}


@pytest.mark.timeout(2 * LIMIT_S)
@pytest.mark.parametrize("has_ids", [False, True])
def test_a_fuzzer_gets_what_the_description_says(home: Path, has_ids: bool) -> None:
    async def test() -> None:
        with ModelServer() as model:
            async with serving(home, model.base_url) as gateway:
                known = await ids(gateway) if has_ids else {}
                result = await asyncio.to_thread(fuzz, gateway.server.url, home, known)
                assert result.returncode == 0, result.stdout[-6000:] + result.stderr[-2000:]
                tested = re.search(r"Selected: (\d+)/(\d+)", result.stdout)
                operations = sum(len(methods) for methods in document()["paths"].values())
                assert tested is not None, result.stdout
                assert int(tested[2]) == operations

    run(test(), LIMIT_S)
