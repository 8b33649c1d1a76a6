"""Programs that behave like Tirith, or badly."""

from __future__ import annotations

import json
from pathlib import Path

FINDINGS = {
    "findings": [{"rule_id": "curl_pipe_shell", "severity": "HIGH", "title": "Runs a download"}],
    "summary": "one finding",
}


def write_program(path: Path, script: str) -> Path:
    """Write a shell script that only its owner can change."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    return path


def fake_tirith(path: Path, exit_code: int, output: str | None = None) -> Path:
    """A program that prints an output, stores its arguments next to itself, and ends with a code."""
    path.parent.mkdir(parents=True, exist_ok=True)
    printed = path.with_suffix(".json")
    printed.write_text(json.dumps(FINDINGS) if output is None else output)
    return write_program(
        path, f'for each in "$@"; do printf \'%s\\n\' "$each"; done > {path}.args\ncat {printed}\nexit {exit_code}'
    )
