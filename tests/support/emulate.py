"""emulate: an independent Slack, with its Web API and signed events, which real client libraries talk to."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.support.fetched import node, npm_package
from tests.support.servers import skip_or_fail

PACKAGE, VERSION = "emulate", "0.12.2"

_SCRIPT = Path(__file__).with_name("slack_emulator.mjs")


def find() -> Path:
    """Return the folder of its modules, which are installed if necessary; raise OSError if they cannot be."""
    return npm_package(PACKAGE, VERSION) / "dist"


@contextlib.contextmanager
def slack_emulator(events_url: str, seed: Mapping[str, Any]) -> Iterator[str]:
    """Run a Slack for one test, which sends events to a URL; give its address."""
    try:
        program, folder = node(), find()
    except OSError as error:
        skip_or_fail(f"emulate is not available: {error}")
    process = subprocess.Popen(
        [str(program), str(_SCRIPT), str(folder), json.dumps({"events": events_url, "seed": seed})],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PATH": os.environ.get("PATH", "")},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        try:
            if not (url := process.stdout.readline().strip()):
                skip_or_fail(f"emulate does not start: {process.stderr.read()[-500:]}")
            yield url
        finally:
            process.kill()
            process.wait()
